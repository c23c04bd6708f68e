// SPDX-License-Identifier: Apache-2.0
/*
 * A finished span: a piece of time in which a device worked for a process, or a thread waited for it, as far
 * as calls show. Nothing here is a kernel's true time: see the flags.
 */
#pragma once

#include <stdint.h>

enum span_kind {
	SPAN_KERNELS, /* a stream's work, with kernels in it */
	SPAN_COPY, /* copies and sets alone: a stream's, or one that the thread waited for */
	SPAN_SYNC, /* a thread waits */
};

enum span_flag {
	/* The work was over at end_ns or before; likely_end_ns is the guess. Without it the end is known. */
	SPAN_END_BOUND = 1 << 0,
	SPAN_NO_WAIT = 1 << 1, /* nobody waited: it ended with its stream, context or process */
	SPAN_MERGED = 1 << 2, /* several streams', that found no room of their own */
	SPAN_DEVICE_GUESSED = 1 << 3, /* the order of the devices is an estimate */
	SPAN_INCOMPLETE = 1 << 4, /* something of the process was missed (model/incomplete.def) */
};

struct span {
	uint32_t tgid;
	uint32_t tid; /* that waited or copied; 0: a stream's work */
	uint64_t incarnation; /* 0: not known */
	const char *device; /* UUID, "": not known; valid during the call */
	uint64_t context; /* handle; 0: not known */
	uint64_t stream; /* handle; 0: a default stream, or none by itself */
	uint32_t stream_id; /* never used twice in a process, as handles are; 0: no single stream */
	uint8_t kind; /* enum span_kind */
	uint8_t flags; /* enum span_flag */
	uint64_t start_ns, end_ns, likely_end_ns; /* CLOCK_MONOTONIC; start: the first call was made */
	uint64_t launches, threads; /* kernels, those of graphs too */
	uint64_t copies, bytes; /* copies and sets */
};
