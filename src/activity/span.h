// SPDX-License-Identifier: Apache-2.0
/*
 * A finished span: a period in which a device worked for a process, or a thread waited for it, derived from
 * calls. It is never a kernel's exact time: see the flags.
 */
#pragma once

#include <stdint.h>

enum span_kind {
	SPAN_KERNELS, /* work of a stream that includes kernels */
	SPAN_COPY, /* only copies and sets: of a stream, or synchronous */
	SPAN_SYNC, /* a thread waits */
};

enum span_flag {
	/*
	 * The work ended at end_ns or before; likely_end_ns is the estimate. Without this flag the end is
	 * exact.
	 */
	SPAN_END_BOUND = 1 << 0,
	SPAN_NO_WAIT = 1 << 1, /* no call waited: it ended with its stream, context or process */
	SPAN_MERGED = 1 << 2, /* of several streams that could not be tracked separately */
	/* the device's number is mapped to a device by an estimate of the order */
	SPAN_DEVICE_GUESSED = 1 << 3,
	SPAN_INCOMPLETE = 1 << 4, /* something of the process was missed (model/incomplete.def) */
};

struct span {
	uint32_t tgid;
	uint32_t tid; /* the thread that waited or copied; 0: a stream's work */
	uint64_t incarnation; /* 0: not known */
	const char *device; /* UUID, "": not known; valid during the call */
	uint64_t context; /* handle; 0: not known */
	uint64_t stream; /* handle; 0: a default stream, or no single one */
	uint32_t stream_id; /* unique within the process, unlike handles; 0: no single stream */
	uint8_t kind; /* enum span_kind */
	uint8_t flags; /* enum span_flag */
	uint64_t start_ns, end_ns, likely_end_ns; /* CLOCK_MONOTONIC; start: entry of the first call */
	uint64_t launches, threads; /* kernels, including those of graphs */
	uint64_t copies, bytes; /* copies and sets */
};
