// SPDX-License-Identifier: Apache-2.0
/*
 * What the kernel writes into a perf ring about mappings and lives of processes (perf_event_open(2)). Pure:
 * bytes in, events out. The ring is shared memory that only the kernel writes, but it is read as if anybody
 * did.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum perf_record_kind {
	PERF_RECORD_KIND_MAP, /* an executable mapping of a file */
	PERF_RECORD_KIND_FORK, /* a new process; threads are not told */
	PERF_RECORD_KIND_EXEC,
	PERF_RECORD_KIND_EXIT, /* of a thread */
	PERF_RECORD_KIND_LOST,
};

struct perf_record {
	enum perf_record_kind kind;
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint32_t pid, tid;
	uint32_t parent; /* fork */
	uint64_t lost; /* records */
	uint64_t start, end, dev, ino, generation; /* map */
	const char *path; /* ended by NUL; in the record */
};

/* Attributes that the parser counts on: executable mappings, names, tasks, and a time behind each record. */
struct perf_event_attr;
void perf_record_attr(struct perf_event_attr *ret_attr);

/* One record of @n bytes. -ENOENT: nothing that concerns us; -EBADMSG. */
int perf_record_parse(const void *record, size_t n, struct perf_record *ret_record);

/*
 * Everything between @tail and @head of a ring of @size bytes, a power of two, to @fn. Returns the number of
 * records that make no sense; after such a one nothing up to @head can be read.
 */
size_t perf_ring_walk(const void *ring, size_t size, uint64_t tail, uint64_t head,
		      void (*fn)(const struct perf_record *record, void *userdata), void *userdata);
