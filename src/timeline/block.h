// SPDX-License-Identifier: Apache-2.0
/* Encoded events, which open alone within what timeline_framing() says. Threads share them. */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct timeline_block {
	atomic_uint refs;
	uint32_t events;
	int64_t begin_ns, end_ns; /* CLOCK_MONOTONIC: from when on it was collected, and until when */
	size_t n;
	char data[];
};

/* A copy of @n bytes. NULL: no memory. */
struct timeline_block *timeline_block_new(const void *data, size_t n);
struct timeline_block *timeline_block_ref(struct timeline_block *block);
void timeline_block_unref(struct timeline_block *block); /* NULL: nothing */
