// SPDX-License-Identifier: Apache-2.0
#include "trace/perf_record.h"

#include <errno.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "base/macro.h"

enum { RECORD_MAX = 8192 }; /* the longest is a mapping's: 72 bytes and a path of at most PATH_MAX */

/* The layouts of perf_event_open(2). A path may follow, and in all of them the time as a u64. */
struct task_record {
	uint32_t pid, parent, tid, parent_tid;
	uint64_t time_ns;
};
struct lost_record {
	uint64_t id, lost;
};
struct map_record {
	uint32_t pid, tid;
	uint64_t start, length, offset;
	uint32_t major, minor;
	uint64_t ino, generation;
	uint32_t protection, flags;
};

void perf_record_attr(struct perf_event_attr *ret_attr)
{
	*ret_attr = (struct perf_event_attr){
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(*ret_attr),
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_TIME,
		.exclude_kernel = 1,
		.mmap = 1,
		.mmap2 = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
		.sample_id_all = 1,
		.watermark = 1,
		.wakeup_watermark = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};
}

static int parse_task(const struct perf_event_header *header, const char *body, size_t n,
		      struct perf_record *record)
{
	struct task_record task;

	if (n < sizeof(task))
		return -EBADMSG;
	memcpy(&task, body, sizeof(task));
	record->kind = header->type == PERF_RECORD_FORK ? PERF_RECORD_KIND_FORK : PERF_RECORD_KIND_EXIT;
	record->pid = task.pid;
	record->tid = task.tid;
	record->parent = task.parent;
	return header->type == PERF_RECORD_FORK && task.pid == task.parent ? -ENOENT : 0;
}

static int parse_map(const char *body, size_t n, struct perf_record *record)
{
	struct map_record map;
	const char *path = body + sizeof(map);

	if (n <= sizeof(map) || !memchr(path, '\0', n - sizeof(map)))
		return -EBADMSG;
	memcpy(&map, body, sizeof(map));
	if (!(map.protection & PROT_EXEC) || map.ino == 0)
		return -ENOENT;
	if (map.length == 0 || map.start + map.length < map.start)
		return -EBADMSG;
	record->kind = PERF_RECORD_KIND_MAP;
	record->pid = map.pid;
	record->tid = map.tid;
	record->start = map.start;
	record->end = map.start + map.length;
	record->dev = makedev(map.major, map.minor);
	record->ino = map.ino;
	record->generation = map.generation;
	record->path = path;
	return 0;
}

static int parse_body(const struct perf_event_header *header, const char *body, size_t n,
		      struct perf_record *record)
{
	struct lost_record lost;
	uint32_t ids[2];

	switch (header->type) {
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		return parse_task(header, body, n, record);
	case PERF_RECORD_MMAP2:
		return parse_map(body, n, record);
	case PERF_RECORD_COMM:
		if (!(header->misc & PERF_RECORD_MISC_COMM_EXEC))
			return -ENOENT;
		if (n < sizeof(ids))
			return -EBADMSG;
		memcpy(ids, body, sizeof(ids));
		record->kind = PERF_RECORD_KIND_EXEC;
		record->pid = ids[0];
		record->tid = ids[1];
		return 0;
	case PERF_RECORD_LOST:
		if (n < sizeof(lost))
			return -EBADMSG;
		memcpy(&lost, body, sizeof(lost));
		record->kind = PERF_RECORD_KIND_LOST;
		record->lost = lost.lost;
		return 0;
	default:
		return -ENOENT;
	}
}

int perf_record_parse(const void *record, size_t n, struct perf_record *ret_record)
{
	struct perf_record parsed = { 0 };
	struct perf_event_header header;
	size_t body_n;
	int r;

	if (n < sizeof(header) + sizeof(uint64_t))
		return -EBADMSG;
	memcpy(&header, record, sizeof(header));
	if (header.size != n)
		return -EBADMSG;
	body_n = n - sizeof(header) - sizeof(uint64_t);
	r = parse_body(&header, (const char *)record + sizeof(header), body_n, &parsed);
	if (r < 0)
		return r;
	memcpy(&parsed.time_ns, (const char *)record + n - sizeof(uint64_t), sizeof(uint64_t));
	*ret_record = parsed;
	return 0;
}

static void copy_out(const uint8_t *ring, size_t size, uint64_t at, void *to, size_t n)
{
	size_t offset = at & (size - 1);
	size_t first = MIN(n, size - offset);

	memcpy(to, ring + offset, first);
	memcpy((uint8_t *)to + first, ring, n - first);
}

size_t perf_ring_walk(const void *ring, size_t size, uint64_t tail, uint64_t head,
		      void (*fn)(const struct perf_record *record, void *userdata), void *userdata)
{
	_Alignas(uint64_t) char copy[RECORD_MAX];
	struct perf_event_header header;
	struct perf_record record;
	size_t bad = 0;
	int r;

	if (head - tail > size)
		return 1;
	while (head - tail >= sizeof(header)) {
		copy_out(ring, size, tail, &header, sizeof(header));
		if (header.size < sizeof(header) || header.size > head - tail)
			return bad + 1;
		tail += header.size;
		if (header.size > sizeof(copy)) {
			bad++;
			continue;
		}
		copy_out(ring, size, tail - header.size, copy, header.size);
		r = perf_record_parse(copy, header.size, &record);
		if (r == 0)
			fn(&record, userdata);
		else if (r == -EBADMSG)
			bad++;
	}
	return bad;
}
