// SPDX-License-Identifier: Apache-2.0
/* Fields of a message of protobuf that somebody else wrote. */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "timeline/proto.h"

struct proto_in {
	const uint8_t *p, *end;
};

struct proto_field {
	uint32_t number;
	uint8_t wire; /* enum proto_wire */
	uint64_t value; /* of PROTO_BYTES: their number */
	const uint8_t *data; /* of PROTO_BYTES */
};

static inline struct proto_in proto_in(const struct proto_field *field)
{
	return (struct proto_in){ field->data, field->data + field->value };
}

static inline bool proto_get_varint(struct proto_in *in, uint64_t *ret_value)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < PROTO_VARINT_MAX && in->p + i < in->end; i++) {
		value |= (uint64_t)(in->p[i] & 0x7f) << 7 * i;
		if (in->p[i] < 0x80) {
			in->p += i + 1;
			*ret_value = value;
			return true;
		}
	}
	return false;
}

static inline bool proto_get_fixed(struct proto_in *in, unsigned bytes, uint64_t *ret_value)
{
	uint64_t value = 0;

	if ((size_t)(in->end - in->p) < bytes)
		return false;
	for (unsigned i = 0; i < bytes; i++)
		value |= (uint64_t)in->p[i] << 8 * i;
	in->p += bytes;
	*ret_value = value;
	return true;
}

/* The tag of a field, and of bytes their number; 1, or 0: @in has no whole one, or -EBADMSG: it is none. */
static inline int proto_get_head(struct proto_in *in, struct proto_field *field)
{
	struct proto_in at = *in;
	uint64_t tag;

	if (!proto_get_varint(&at, &tag))
		return at.end - at.p >= PROTO_VARINT_MAX ? -EBADMSG : 0;
	if (tag >> 3 == 0 || tag >> 3 > UINT32_MAX)
		return -EBADMSG;
	*field = (struct proto_field){ .number = (uint32_t)(tag >> 3), .wire = tag & 7 };
	if (field->wire == PROTO_BYTES && !proto_get_varint(&at, &field->value))
		return at.end - at.p >= PROTO_VARINT_MAX ? -EBADMSG : 0;
	*in = at;
	return 1;
}

/* The next field; 1, or 0 at the end, or -EBADMSG. */
static inline int proto_next(struct proto_in *in, struct proto_field *field)
{
	bool whole;

	if (in->p == in->end)
		return 0;
	if (proto_get_head(in, field) <= 0)
		return -EBADMSG;
	switch (field->wire) {
	case PROTO_VARINT:
		whole = proto_get_varint(in, &field->value);
		break;
	case PROTO_FIXED64:
		whole = proto_get_fixed(in, 8, &field->value);
		break;
	case PROTO_FIXED32:
		whole = proto_get_fixed(in, 4, &field->value);
		break;
	case PROTO_BYTES:
		whole = field->value <= (uint64_t)(in->end - in->p);
		field->data = in->p;
		in->p += whole ? field->value : 0;
		break;
	default: /* groups, which nobody uses any more */
		whole = false;
	}
	return whole ? 1 : -EBADMSG;
}
