// SPDX-License-Identifier: Apache-2.0
#include "timeline/read.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "timeline/perfetto.h"
#include "timeline/read_private.h"

enum {
	IN_BYTES = 1 << 16,
	BLOCK_BYTES = 1 << 20, /* grows to TIMELINE_PACKET_MAX */
	HEAD_BYTES = 2 * PROTO_VARINT_MAX,
};

int read_refuse(struct timeline_reader *r, const char *reason)
{
	r->read.reason = reason;
	return -EBADMSG;
}

/* ---- bytes of the file ---- */

static int grow_bytes(uint8_t **bytes, size_t *room, size_t wanted)
{
	uint8_t *grown = realloc(*bytes, wanted);

	if (!grown)
		return -ENOMEM;
	*bytes = grown;
	*room = wanted;
	return 0;
}

/* Until there are @n bytes, or the file is at its end. */
static int fill_in(struct timeline_reader *r, size_t n)
{
	ssize_t got;

	if (r->in_begin + n > r->in_room) {
		memmove(r->in, r->in + r->in_begin, r->in_end - r->in_begin);
		r->in_end -= r->in_begin;
		r->in_begin = 0;
	}
	if (n > r->in_room && grow_bytes(&r->in, &r->in_room, n) < 0)
		return -ENOMEM;
	while (!r->at_end && r->in_end - r->in_begin < n) {
		got = read(r->fd, r->in + r->in_end, r->in_room - r->in_end);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		r->at_end = got == 0;
		r->in_end += (size_t)got;
		r->read.bytes += (uint64_t)got;
	}
	return 0;
}

/* ---- packets ---- */

/* 1: a packet, 0: @in has no whole one; -EBADMSG. */
static int next_packet(struct timeline_reader *r, struct proto_in *in, struct proto_field *packet)
{
	struct proto_in at = *in;
	int n = proto_get_head(&at, packet);

	if (n == 0)
		return 0;
	if (n < 0 || packet->number != TRACE_PACKET || packet->wire != PROTO_BYTES)
		return read_refuse(r, r->read.packets == 0 ?
					      "it is no timeline in Perfetto's format (.pftrace)" :
					      "there is no packet of Perfetto's format");
	if (packet->value > TIMELINE_PACKET_MAX)
		return read_refuse(r, "a packet has more than 16 MiB");
	if (packet->value > (uint64_t)(at.end - at.p))
		return 0;
	packet->data = at.p;
	in->p = at.p + packet->value;
	return 1;
}

/* 0, also where the deflated bytes are cut; -EBADMSG, -ENOMEM. */
static int inflate_all(struct timeline_reader *r, const struct proto_field *deflated, bool whole)
{
	int z = inflateReset(&r->z);

	r->z.next_in = (Bytef *)deflated->data;
	r->z.avail_in = (uInt)deflated->value;
	r->z.next_out = r->block;
	r->z.avail_out = (uInt)r->block_room;
	while (z == Z_OK) {
		size_t n = r->block_room - r->z.avail_out;

		if (r->z.avail_out == 0 && r->block_room == TIMELINE_PACKET_MAX)
			return read_refuse(r, "a deflated block has more than 16 MiB");
		if (r->z.avail_out == 0 && grow_bytes(&r->block, &r->block_room, 2 * r->block_room) < 0)
			return -ENOMEM;
		r->z.next_out = r->block + n;
		r->z.avail_out = (uInt)(r->block_room - n);
		z = inflate(&r->z, Z_NO_FLUSH);
	}
	if (z == Z_STREAM_END || (z == Z_BUF_ERROR && !whole))
		return 0;
	return z == Z_MEM_ERROR ? -ENOMEM : read_refuse(r, "a block cannot be inflated");
}

static int begin_block(struct timeline_reader *r, const struct proto_field *deflated, bool whole)
{
	int n;

	if (r->in_block)
		return read_refuse(r, "a deflated block is in another one");
	n = inflate_all(r, deflated, whole);
	if (n < 0)
		return n;
	r->in_block = true;
	r->whole = whole;
	r->rest = (struct proto_in){ r->block, r->z.next_out };
	r->read.blocks++;
	return 0;
}

int read_block(struct timeline_reader *r, const struct proto_field *deflated)
{
	return begin_block(r, deflated, true);
}

/* The file ends within this packet. What a block of ours has before is told. */
static int begin_cut(struct timeline_reader *r, struct proto_in in)
{
	struct proto_field packet, deflated;

	r->read.cut_bytes = (uint64_t)(in.end - in.p);
	if (proto_get_head(&in, &packet) <= 0 || proto_get_head(&in, &deflated) <= 0 ||
	    deflated.number != PACKET_COMPRESSED || deflated.wire != PROTO_BYTES || in.p == in.end)
		return 0;
	deflated.data = in.p;
	deflated.value = (uint64_t)(in.end - in.p);
	return begin_block(r, &deflated, false);
}

static struct proto_in what_is_in(const struct timeline_reader *r)
{
	return (struct proto_in){ r->in + r->in_begin, r->in + r->in_end };
}

/* 1: go on, 0: the end. */
static int read_of_file(struct timeline_reader *r)
{
	struct proto_field packet = { 0 };
	struct proto_in in;
	int n = fill_in(r, HEAD_BYTES);

	if (n < 0)
		return n;
	in = what_is_in(r);
	if (in.p == in.end)
		return 0;
	n = next_packet(r, &in, &packet);
	if (n == 0) {
		n = fill_in(r, HEAD_BYTES + packet.value);
		in = what_is_in(r);
		n = n < 0 ? n : next_packet(r, &in, &packet);
	}
	if (n == 0) {
		n = begin_cut(r, in);
		r->in_begin = r->in_end;
		return n < 0 ? n : r->in_block;
	}
	if (n > 0)
		n = read_packet(r, proto_in(&packet));
	if (n < 0)
		return n;
	r->read.packets++;
	r->next_offset = r->read.offset + (uint64_t)(in.p - (r->in + r->in_begin));
	r->in_begin = (size_t)(in.p - r->in);
	if (!r->in_block)
		r->read.offset = r->next_offset;
	return 1;
}

/* The same. */
static int read_of_block(struct timeline_reader *r)
{
	struct proto_field packet;
	int n = next_packet(r, &r->rest, &packet);

	if (n > 0)
		n = read_packet(r, proto_in(&packet));
	else if (n == 0 && r->whole && r->rest.p != r->rest.end)
		n = read_refuse(r, "a deflated block ends within a packet");
	else if (n == 0) {
		r->in_block = false;
		r->read.offset = r->next_offset;
	}
	if (n < 0)
		return n;
	r->read.in_block = r->in_block ? (uint64_t)(r->rest.p - r->block) : 0;
	return 1;
}

static uint64_t count_open(const struct timeline_reader *r)
{
	uint64_t open = 0;

	for (uint32_t i = 0; i < r->tracks.n; i++)
		for (uint32_t at = ((struct read_track *)r->tracks.list)[i].open; at;
		     at = ((struct open_slice *)r->open.list)[at - 1].below)
			open++;
	return open;
}

int timeline_read_next(struct timeline_reader *r, struct timeline_event *ret_event)
{
	int n;

	r->has_told = false;
	do
		n = r->in_block ? read_of_block(r) : read_of_file(r);
	while (n > 0 && !r->has_told);
	if (n > 0)
		*ret_event = r->told;
	else
		r->read.unended = count_open(r);
	return n;
}

const struct timeline_read *timeline_read_status(const struct timeline_reader *r)
{
	return &r->read;
}

/* ---- the reader ---- */

int timeline_reader_new(int fd, struct timeline_reader **ret_reader)
{
	_cleanup_(timeline_reader_freep) struct timeline_reader *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->fd = fd;
	if (inflateInit(&r->z) != Z_OK || read_packets_init(r) < 0 ||
	    grow_bytes(&r->in, &r->in_room, IN_BYTES) < 0 ||
	    grow_bytes(&r->block, &r->block_room, BLOCK_BYTES) < 0)
		return -ENOMEM;
	*ret_reader = TAKE_PTR(r);
	return 0;
}

void timeline_reader_free(struct timeline_reader *r)
{
	if (!r)
		return;
	inflateEnd(&r->z);
	read_packets_done(r);
	free(r->in);
	free(r->block);
	free(r);
}
