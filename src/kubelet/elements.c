// SPDX-License-Identifier: Apache-2.0
#include "kubelet/elements.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"

enum state { TAG, VARINT, LENGTH, KEPT, SKIPPED };
enum wire { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };
enum { VARINT_BITS = 64, KEPT_ROOM = 64 << 10 };

/* 1: it is whole; 0: more bytes come. */
static int take_varint(struct elements *e, uint8_t byte)
{
	if (e->shift >= VARINT_BITS)
		return -EBADMSG;
	e->varint |= (uint64_t)(byte & 0x7f) << e->shift;
	e->shift += 7;
	return !(byte & 0x80);
}

static void expect(struct elements *e, enum state state)
{
	e->state = state;
	e->varint = e->shift = 0;
}

static void skip(struct elements *e, uint64_t n)
{
	expect(e, n ? SKIPPED : TAG);
	e->left = n;
}

static int take_tag(struct elements *e)
{
	e->wire = e->varint & 7;
	if (e->varint >> 3 == 0 || e->varint >> 3 > UINT32_MAX >> 3)
		return -EBADMSG;
	e->field = (uint32_t)(e->varint >> 3);
	switch (e->wire) {
	case WIRE_VARINT:
		expect(e, VARINT);
		return 0;
	case WIRE_64:
		skip(e, 8);
		return 0;
	case WIRE_32:
		skip(e, 4);
		return 0;
	case WIRE_BYTES:
		expect(e, LENGTH);
		return 0;
	default:
		return -EBADMSG;
	}
}

static bool element_room(struct elements *e, size_t n)
{
	uint8_t *data;

	if (n <= e->room)
		return true;
	data = realloc(e->data, MAX(n, (size_t)KEPT_ROOM));
	if (!data)
		return false;
	e->data = data;
	e->room = MAX(n, (size_t)KEPT_ROOM);
	return true;
}

static int take_length(struct elements *e)
{
	uint64_t n = e->varint;

	if (n > INT32_MAX)
		return -EBADMSG;
	if (e->field != LIST_FIELD) {
		skip(e, n);
	} else if (n > ELEMENT_MAX || !element_room(e, n)) {
		e->left_out++;
		skip(e, n);
	} else if (n == 0) {
		expect(e, TAG);
		return e->element((const uint8_t *)"", 0, e->userdata);
	} else {
		expect(e, KEPT);
		e->left = n;
		e->n = 0;
	}
	return 0;
}

/* As many of these bytes as belong to the field. */
static int take_bytes(struct elements *e, const uint8_t *data, size_t n)
{
	bool kept = e->state == KEPT;

	if (kept) {
		memcpy(e->data + e->n, data, n);
		e->n += n;
	}
	e->left -= n;
	if (e->left > 0)
		return 0;
	expect(e, TAG);
	return kept ? e->element(e->data, e->n, e->userdata) : 0;
}

static int take_byte(struct elements *e, uint8_t byte)
{
	int r = take_varint(e, byte);

	if (r <= 0)
		return r;
	switch (e->state) {
	case TAG:
		return take_tag(e);
	case LENGTH:
		return take_length(e);
	default:
		expect(e, TAG);
		return 0;
	}
}

int elements_feed(struct elements *e, const uint8_t *data, size_t n)
{
	int r = 0;

	for (size_t used; r == 0 && n > 0; data += used, n -= used) {
		used = 1;
		if (e->state == KEPT || e->state == SKIPPED) {
			used = (size_t)MIN(e->left, (uint64_t)n);
			r = take_bytes(e, data, used);
		} else {
			r = take_byte(e, *data);
		}
	}
	return r;
}

int elements_end(const struct elements *e)
{
	return e->state == TAG && e->shift == 0 ? 0 : -EBADMSG;
}

void elements_done(struct elements *e)
{
	free(e->data);
	e->data = NULL;
	e->room = 0;
	e->left_out = 0;
	expect(e, TAG);
}
