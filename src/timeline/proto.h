// SPDX-License-Identifier: Apache-2.0
/*
 * Protobuf's wire format, for messages of known maximal size. protobuf-c would pack the same, but takes
 * longer than everything else that an event costs (bench/timeline.c).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum proto_wire { PROTO_VARINT = 0, PROTO_FIXED64 = 1, PROTO_BYTES = 2, PROTO_FIXED32 = 5 };

enum { PROTO_VARINT_MAX = 10 };

static inline uint8_t *proto_varint(uint8_t *to, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		*to++ = (uint8_t)(v | 0x80);
	*to++ = (uint8_t)v;
	return to;
}

/* Of @bytes at least: readers take the bytes that add nothing. */
static inline uint8_t *proto_varint_wide(uint8_t *to, uint64_t v, unsigned bytes)
{
	for (; bytes > 1 || v >= 0x80; v >>= 7, bytes -= bytes > 1)
		*to++ = (uint8_t)(v | 0x80);
	*to++ = (uint8_t)v;
	return to;
}

static inline uint8_t *proto_tag(uint8_t *to, unsigned field, enum proto_wire wire)
{
	return proto_varint(to, (uint64_t)field << 3 | wire);
}

static inline uint8_t *proto_u64(uint8_t *to, unsigned field, uint64_t v)
{
	return proto_varint(proto_tag(to, field, PROTO_VARINT), v);
}

/* Little endian, as the wire has it. */
static inline uint8_t *proto_fixed64(uint8_t *to, unsigned field, uint64_t v)
{
	to = proto_tag(to, field, PROTO_FIXED64);
	for (unsigned i = 0; i < sizeof(v); i++)
		*to++ = (uint8_t)(v >> 8 * i);
	return to;
}

static inline uint8_t *proto_double(uint8_t *to, unsigned field, double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	return proto_fixed64(to, field, bits);
}

static inline uint8_t *proto_bytes(uint8_t *to, unsigned field, const void *data, size_t n)
{
	to = proto_varint(proto_tag(to, field, PROTO_BYTES), n);
	memcpy(to, data, n);
	return to + n;
}

static inline uint8_t *proto_text(uint8_t *to, unsigned field, const char *text)
{
	return proto_bytes(to, field, text, strlen(text));
}
