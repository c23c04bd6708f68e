// SPDX-License-Identifier: Apache-2.0
/*
 * Parses the kernel's records about mappings, forks, execs and exits in a perf ring (perf_event_open(2)). No
 * state and no I/O. Only the kernel writes the ring, but its contents are validated like untrusted input.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum perf_record_kind {
	PERF_RECORD_KIND_MAP, /* an executable mapping of a file */
	PERF_RECORD_KIND_FORK, /* a new process; new threads are skipped */
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
	const char *path; /* NUL-terminated; points into the record */
};

/* The attributes that the parser requires: executable mappings, names, tasks, and a time in each record. */
struct perf_event_attr;
void perf_record_attr(struct perf_event_attr *ret_attr);

/* Parses one record of @n bytes. -ENOENT: of a kind that is not used; -EBADMSG: invalid. */
int perf_record_parse(const void *record, size_t n, struct perf_record *ret_record);

/*
 * Calls @fn for the records between @tail and @head of a ring of @size bytes, a power of two. Returns the
 * number of invalid records. After one with an invalid length, nothing up to @head can be read.
 */
size_t perf_ring_walk(const void *ring, size_t size, uint64_t tail, uint64_t head,
		      void (*fn)(const struct perf_record *record, void *userdata), void *userdata);
