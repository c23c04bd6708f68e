// SPDX-License-Identifier: Apache-2.0
/*
 * Perfetto's trace format (perfetto.h). A block is one packet of deflated packets.
 */
#include "timeline/perfetto.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "base/clock.h"
#include "timeline/private.h"
#include "timeline/proto.h"

enum { SEQUENCE = 1 };

enum {
	SMALL = 256, /* a message without texts */
	ARG_MAX = 64,
	STACK_MAX = SMALL + TIMELINE_STACK_FRAMES * 8, /* a frame's number has 3 bytes at most */
	EVENT_MAX = SMALL + TIMELINE_ARGS * ARG_MAX,
	EVENT_HEAD = 128, /* what a packet has before its event */
	/* With one more event, at most the 512 KB that Perfetto allows, whatever zlib makes of it. */
	BLOCK_BYTES = 448 << 10,
	/* Of a time: most are shorter, and where all have one length, all else is at the same distances. */
	TIME_BYTES = 3,
	DIMENSIONS_IID =
		TIMELINE_TEXTS_MAX + 1, /* from here on: of dimensions, by their place in the block */
};

struct perfetto {
	z_stream z;
	struct strbuf packets; /* of the block */
	uint32_t categories; /* bits of those that the block's interned data have */
	struct hashmap dimensions; /* the same, with their identifiers */
	uint32_t dimensions_n;
	uint64_t begin_ns, end_ns; /* of the incremental clocks, now */
};

static void add_packet(struct perfetto *p, const uint8_t *from, const uint8_t *to)
{
	uint8_t head[2 * PROTO_VARINT_MAX];
	uint8_t *end = proto_varint(proto_tag(head, TRACE_PACKET, PROTO_BYTES), (uint64_t)(to - from));

	strbuf_add(&p->packets, head, (size_t)(end - head));
	strbuf_add(&p->packets, from, (size_t)(to - from));
}

/* ---- what events refer to ---- */

static uint8_t *put_clock(uint8_t *to, unsigned id, int64_t ns)
{
	uint8_t clock[SMALL], *end = proto_u64(clock, CLOCK_ID, id);

	end = proto_u64(end, CLOCK_TIMESTAMP, (uint64_t)ns);
	if (id >= CLOCK_BEGINS)
		end = proto_u64(end, CLOCK_INCREMENTAL, 1);
	return proto_bytes(to, SNAPSHOT_CLOCK, clock, (size_t)(end - clock));
}

/* Nothing of earlier blocks is needed from here on. The clocks of one snapshot are of one moment. */
static void add_head(struct perfetto *p, int64_t since_ns)
{
	struct clock_offsets offsets;
	uint8_t packet[2 * SMALL], part[SMALL], *to = packet, *end = part;

	clock_offsets(&offsets);
	end = put_clock(end, CLOCK_MONOTONIC_ID, since_ns);
	end = put_clock(end, CLOCK_BOOTTIME_ID, since_ns + offsets.boot_ns);
	end = put_clock(end, CLOCK_REALTIME_ID, since_ns + offsets.real_ns);
	end = put_clock(end, CLOCK_BEGINS, since_ns);
	end = put_clock(end, CLOCK_ENDS, since_ns);
	end = proto_u64(end, SNAPSHOT_PRIMARY, CLOCK_MONOTONIC_ID);
	to = proto_bytes(to, PACKET_CLOCK_SNAPSHOT, part, (size_t)(end - part));
	to = proto_u64(to, PACKET_SEQUENCE, SEQUENCE);
	to = proto_u64(to, PACKET_FLAGS, FLAG_CLEARED);
	end = proto_u64(part, DEFAULTS_CLOCK, CLOCK_BEGINS);
	to = proto_bytes(to, PACKET_DEFAULTS, part, (size_t)(end - part));
	add_packet(p, packet, to);
}

/* Texts are numbered from 0, identifiers from 1. */
static void add_entry(struct perfetto *p, unsigned field, uint64_t iid, const char *text)
{
	uint8_t packet[3 * SMALL + TIMELINE_TEXT_MAX], entry[SMALL + TIMELINE_TEXT_MAX],
		data[2 * SMALL + TIMELINE_TEXT_MAX];
	uint8_t *end = proto_text(proto_u64(entry, ENTRY_IID, iid), ENTRY_NAME, text);
	uint8_t *to = proto_bytes(data, field, entry, (size_t)(end - entry));

	end = proto_u64(packet, PACKET_SEQUENCE, SEQUENCE);
	end = proto_u64(end, PACKET_FLAGS, FLAG_NEEDS_STATE);
	end = proto_bytes(end, PACKET_INTERNED, data, (size_t)(to - data));
	add_packet(p, packet, end);
}

/* @known: of the text; number of the newest block that has it in this field. */
static void need_text(struct timeline *t, uint32_t text, uint32_t *known, unsigned field)
{
	if (*known != t->block)
		add_entry(t->state, field, (uint64_t)text + 1, text_at(t, text));
	*known = t->block;
}

static void need_name(struct timeline *t, uint32_t text)
{
	need_text(t, text, &t->used[text].named, INTERNED_NAMES);
}

static void need_key(struct timeline *t, uint32_t text)
{
	need_text(t, text, &t->used[text].keyed, INTERNED_KEYS);
}

static void need_value(struct timeline *t, uint32_t text)
{
	need_text(t, text, &t->used[text].valued, INTERNED_VALUES);
}

/* Without memory for another one it has an identifier of its own. */
static uint64_t need_dimensions(struct timeline *t, uint64_t dimensions)
{
	struct perfetto *p = t->state;
	char text[TIMELINE_DIMENSIONS_TEXT];
	uint32_t iid;

	if (hashmap_get(&p->dimensions, dimensions, &iid))
		return iid;
	iid = DIMENSIONS_IID + p->dimensions_n++;
	timeline_dimensions_text(dimensions, text);
	add_entry(p, INTERNED_VALUES, iid, text);
	hashmap_put(&p->dimensions, dimensions, iid);
	return iid;
}

static void need_category(struct timeline *t, unsigned category)
{
	struct perfetto *p = t->state;

	if (!(p->categories >> category & 1))
		add_entry(p, INTERNED_CATEGORIES, (uint64_t)category + 1, timeline_category_names[category]);
	p->categories |= 1U << category;
}

/* ---- stacks ---- */

static void add_interned(struct perfetto *p, unsigned field, const uint8_t *entry, const uint8_t *end)
{
	uint8_t packet[STACK_MAX + 3 * SMALL], data[STACK_MAX + 2 * SMALL];
	uint8_t *to = proto_bytes(data, field, entry, (size_t)(end - entry));

	end = proto_u64(packet, PACKET_SEQUENCE, SEQUENCE);
	end = proto_u64((uint8_t *)end, PACKET_FLAGS, FLAG_NEEDS_STATE);
	end = proto_bytes((uint8_t *)end, PACKET_INTERNED, data, (size_t)(to - data));
	add_packet(p, packet, end);
}

static void need_frame(struct timeline *t, uint32_t index)
{
	struct timeline_frame_row *row = timeline_frame_at(&t->stacks, index);
	const struct timeline_frame *frame = &row->frame;
	uint8_t entry[SMALL], *to = proto_u64(entry, ENTRY_IID, (uint64_t)index + 1);

	if (row->block == t->block)
		return;
	row->block = t->block;
	need_text(t, frame->function, &t->used[frame->function].function, INTERNED_FUNCTIONS);
	to = proto_u64(to, FRAME_FUNCTION, (uint64_t)frame->function + 1);
	if (text_at(t, frame->file)[0]) {
		need_text(t, frame->file, &t->used[frame->file].file, INTERNED_SOURCES);
		to = proto_u64(to, FRAME_SOURCE, (uint64_t)frame->file + 1);
	}
	if (frame->line)
		to = proto_u64(to, FRAME_LINE, frame->line);
	to = proto_u64(to, FRAME_KIND, frame->interpreted ? KIND_INTERPRETED : KIND_NATIVE);
	add_interned(t->state, INTERNED_FRAMES, entry, to);
}

/* The outermost frame first. */
static void need_stack(struct timeline *t, uint32_t stack)
{
	struct timeline_stack_row *row = timeline_stack_at(&t->stacks, stack - 1);
	const uint32_t *numbers = timeline_stack_numbers(&t->stacks, row);
	uint8_t entry[STACK_MAX], *to = proto_u64(entry, ENTRY_IID, stack);

	if (row->block == t->block)
		return;
	row->block = t->block;
	for (uint32_t i = row->n; i-- > 0;) {
		need_frame(t, numbers[i]);
		to = proto_u64(to, CALLSTACK_FRAME, (uint64_t)numbers[i] + 1);
	}
	add_interned(t->state, INTERNED_CALLSTACKS, entry, to);
}

/* ---- tracks ---- */

static uint64_t track_uuid(const struct timeline *t, uint32_t index)
{
	return t->tracks_before + index + 1;
}

static uint8_t *put_kind(uint8_t *to, const struct timeline *t, const struct timeline_track *track)
{
	uint8_t part[SMALL + TIMELINE_TEXT_MAX], *end = part;

	switch (track->kind) {
	case TIMELINE_PROCESS:
		end = proto_text(proto_u64(end, PROCESS_PID, track->pid), PROCESS_NAME,
				 text_at(t, track->name));
		return proto_bytes(to, TRACK_PROCESS, part, (size_t)(end - part));
	case TIMELINE_THREAD:
		end = proto_u64(proto_u64(end, THREAD_PID, track->pid), THREAD_TID, track->tid);
		end = proto_text(end, THREAD_NAME, text_at(t, track->name));
		return proto_bytes(to, TRACK_THREAD, part, (size_t)(end - part));
	case TIMELINE_COUNTER:
		end = proto_u64(end, COUNTER_UNIT, track->unit == TIMELINE_BYTES ? UNIT_BYTES : UNIT_COUNT);
		return proto_bytes(to, TRACK_COUNTER, part, (size_t)(end - part));
	default:
		return to;
	}
}

/* Parents first. */
static void need_track(struct timeline *t, uint32_t index)
{
	const struct timeline_track *track = &t->tracks[index];
	uint8_t packet[3 * SMALL + 2 * TIMELINE_TEXT_MAX], part[2 * SMALL + 2 * TIMELINE_TEXT_MAX];
	uint8_t *end = part, *to = packet;

	if (t->described[index] == t->block)
		return;
	t->described[index] = t->block;
	if (track->parent != TIMELINE_NONE)
		need_track(t, track->parent);
	end = proto_u64(end, TRACK_UUID, track_uuid(t, index));
	if (track->parent != TIMELINE_NONE)
		end = proto_u64(end, TRACK_PARENT, track_uuid(t, track->parent));
	if (track->kind != TIMELINE_PROCESS && track->kind != TIMELINE_THREAD)
		end = proto_text(end, TRACK_NAME, text_at(t, track->name));
	end = put_kind(end, t, track);
	to = proto_u64(to, PACKET_SEQUENCE, SEQUENCE);
	to = proto_bytes(to, PACKET_TRACK_DESCRIPTOR, part, (size_t)(end - part));
	add_packet(t->state, packet, to);
}

/* ---- events ---- */

_Static_assert(ARG_MAX < 128, "a length of one byte");

/* Its length has one byte, which is written last: to copy each argument would cost more than all else. */
static uint8_t *put_arg(uint8_t *to, struct timeline *t, const struct timeline_arg *arg)
{
	uint8_t *length = proto_tag(to, EVENT_ARG, PROTO_BYTES),
		*end = proto_u64(length + 1, ARG_KEY_IID, (uint64_t)arg->key + 1);

	need_key(t, arg->key);
	switch ((enum timeline_arg_type)arg->type) {
	case TIMELINE_UNSIGNED:
		end = proto_u64(end, ARG_UNSIGNED, arg->value);
		break;
	case TIMELINE_SIGNED:
		end = proto_u64(end, ARG_SIGNED, arg->value);
		break;
	case TIMELINE_POINTER:
		end = proto_u64(end, ARG_POINTER, arg->value);
		break;
	case TIMELINE_TEXT:
		need_value(t, (uint32_t)arg->value);
		end = proto_u64(end, ARG_TEXT_IID, arg->value + 1);
		break;
	case TIMELINE_DIMENSIONS:
		end = proto_u64(end, ARG_TEXT_IID, need_dimensions(t, arg->value));
		break;
	}
	*length = (uint8_t)(end - length - 1);
	return end;
}

/* Events that come late are before the clock's previous time, which only differences to cannot tell. */
static uint8_t *put_time(uint8_t *to, unsigned clock, uint64_t *clock_ns, uint64_t time_ns)
{
	if (time_ns < *clock_ns)
		return proto_u64(proto_u64(to, PACKET_TIMESTAMP, time_ns), PACKET_CLOCK, CLOCK_MONOTONIC_ID);
	to = proto_tag(to, PACKET_TIMESTAMP, PROTO_VARINT);
	to = proto_varint_wide(to, time_ns - *clock_ns, TIME_BYTES);
	*clock_ns = time_ns;
	return clock == CLOCK_BEGINS ? to : proto_u64(to, PACKET_CLOCK, clock);
}

/*
 * Both times of a slice are next to each other, the last of one packet and the first of the next: what
 * differs is in one place, and what is between these places is as it was in the slice before. There are
 * EVENT_HEAD bytes of room before @event, for the rest of the packet, and SMALL behind it.
 */
static void add_event(struct perfetto *p, unsigned clock, uint64_t time_ns, uint8_t *event, uint8_t *end)
{
	uint8_t head[2 * PROTO_VARINT_MAX], inner[EVENT_HEAD - sizeof(head)], *to = inner, *head_end;

	if (clock == CLOCK_ENDS)
		to = put_time(to, clock, &p->end_ns, time_ns);
	to = proto_u64(to, PACKET_SEQUENCE, SEQUENCE);
	to = proto_u64(to, PACKET_FLAGS, FLAG_NEEDS_STATE);
	to = proto_varint(proto_tag(to, PACKET_TRACK_EVENT, PROTO_BYTES), (uint64_t)(end - event));
	if (clock == CLOCK_BEGINS)
		end = put_time(end, clock, &p->begin_ns, time_ns);
	event -= to - inner;
	memcpy(event, inner, (size_t)(to - inner));
	head_end = proto_varint(proto_tag(head, TRACE_PACKET, PROTO_BYTES), (uint64_t)(end - event));
	event -= head_end - head;
	memcpy(event, head, (size_t)(head_end - head));
	strbuf_add(&p->packets, event, (size_t)(end - event));
}

static void put_event(struct timeline *t, const struct timeline_event *e)
{
	static const uint8_t types[] = { [TIMELINE_SLICE] = TYPE_BEGIN,
					 [TIMELINE_INSTANT] = TYPE_INSTANT,
					 [TIMELINE_VALUE] = TYPE_COUNTER };
	uint8_t packet[EVENT_HEAD + EVENT_MAX + SMALL], *event = packet + EVENT_HEAD;
	uint8_t *to = proto_u64(event, EVENT_TYPE, types[e->type]);

	need_track(t, e->track);
	to = proto_u64(to, EVENT_TRACK, track_uuid(t, e->track));
	if (e->type == TIMELINE_VALUE) {
		to = proto_double(to, EVENT_DOUBLE, e->value);
		add_event(t->state, CLOCK_BEGINS, e->begin_ns, event, to);
		return;
	}
	need_name(t, e->name);
	need_category(t, e->category);
	if (e->stack) {
		need_stack(t, e->stack);
		to = proto_u64(to, EVENT_CALLSTACK_IID, e->stack);
	}
	to = proto_u64(to, EVENT_CATEGORY_IID, (uint64_t)e->category + 1);
	to = proto_u64(to, EVENT_NAME_IID, (uint64_t)e->name + 1);
	if (e->flow)
		to = proto_fixed64(to, EVENT_FLOW, e->flow);
	if (e->other_flow)
		to = proto_fixed64(to, EVENT_FLOW, e->other_flow);
	for (unsigned i = 0; i < e->args_n; i++)
		to = put_arg(to, t, &e->args[i]);
	add_event(t->state, CLOCK_BEGINS, e->begin_ns, event, to);
	if (e->type != TIMELINE_SLICE)
		return;
	to = proto_u64(proto_u64(event, EVENT_TYPE, TYPE_END), EVENT_TRACK, track_uuid(t, e->track));
	add_event(t->state, CLOCK_ENDS, e->end_ns, event, to);
}

/* ---- blocks ---- */

static int deflate_block(struct perfetto *p, uint8_t *to, size_t room, size_t *ret_n)
{
	if (deflateReset(&p->z) != Z_OK)
		return -EIO;
	p->z.next_in = (uint8_t *)p->packets.data;
	p->z.avail_in = (uInt)p->packets.len;
	p->z.next_out = to;
	p->z.avail_out = (uInt)room;
	if (deflate(&p->z, Z_FINISH) != Z_STREAM_END)
		return -EIO;
	*ret_n = room - p->z.avail_out;
	return 0;
}

static void block_begin(struct timeline *t)
{
	struct perfetto *p = t->state;

	strbuf_reset(&p->packets);
	p->categories = 0;
	hashmap_clear(&p->dimensions);
	p->dimensions_n = 0;
	p->begin_ns = p->end_ns = (uint64_t)t->since_ns;
	add_head(p, t->since_ns);
}

static int block_end(struct timeline *t)
{
	struct perfetto *p = t->state;
	_cleanup_free_ uint8_t *deflated = NULL;
	uint8_t head[SMALL], inner[SMALL], *to;
	size_t room, n;
	int r;

	room = deflateBound(&p->z, (uLong)p->packets.len);
	deflated = p->packets.failed ? NULL : malloc(room);
	if (!deflated)
		return -ENOMEM;
	r = deflate_block(p, deflated, room, &n);
	if (r < 0)
		return r;
	to = proto_varint(proto_tag(inner, PACKET_COMPRESSED, PROTO_BYTES), n);
	room = (size_t)(to - inner);
	to = proto_varint(proto_tag(head, TRACE_PACKET, PROTO_BYTES), room + n);
	strbuf_add(&t->out, head, (size_t)(to - head));
	strbuf_add(&t->out, inner, room);
	strbuf_add(&t->out, deflated, n);
	return 0;
}

/* Whether the next event may be too much for the packet. */
static bool is_full(const struct timeline *t, uint32_t next)
{
	const struct perfetto *p = t->state;
	uint32_t stack = t->events[next].stack;
	bool has_new = stack && timeline_stack_at(&t->stacks, stack - 1)->block != t->block;

	return p->packets.len + (has_new ? TIMELINE_STACK_BYTES : 0) >= BLOCK_BYTES;
}

/* With long texts it becomes several. */
static int perfetto_block(struct timeline *t)
{
	int r = 0;

	block_begin(t);
	for (uint32_t i = 0; r == 0 && i < t->n; i++) {
		put_event(t, &t->events[i]);
		if (i + 1 == t->n || !is_full(t, i + 1))
			continue;
		r = block_end(t);
		t->block++;
		t->since_ns++;
		block_begin(t);
	}
	return r < 0 ? r : block_end(t);
}

static int perfetto_init(struct timeline *t)
{
	struct perfetto *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	strbuf_init(&p->packets, 0);
	if (deflateInit(&p->z, Z_BEST_SPEED) != Z_OK) {
		free(p);
		return -ENOMEM;
	}
	t->state = p;
	return 0;
}

static void perfetto_done(struct timeline *t)
{
	struct perfetto *p = t->state;

	if (!p)
		return;
	deflateEnd(&p->z);
	hashmap_done(&p->dimensions);
	strbuf_done(&p->packets);
	free(p);
}

const struct timeline_encoder timeline_perfetto = {
	.init = perfetto_init,
	.block = perfetto_block,
	.done = perfetto_done,
};
