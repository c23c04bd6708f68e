// SPDX-License-Identifier: Apache-2.0
#include "sim/cuda/truth.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "sim/node/live.h"

static struct {
	const char *library;
	const char *const *names;
	uint32_t api_count;
	struct truth_error *errors; /* TRUTH_CODES for each function */
	struct truth_cell *cells; /* api_count for each shard; NULL: nothing is counted */
	int events; /* negative: no lines */
	atomic_uint next_shard;
} truth = { .events = -1 };

static _Thread_local unsigned own_depth;
static _Thread_local unsigned *depth;
static _Thread_local unsigned shard; /* plus one; 0: none yet */
static unsigned *(*shared_depth)(void);

unsigned *truth_depth(void)
{
	if (!depth)
		depth = shared_depth ? shared_depth() : &own_depth;
	return depth;
}

void truth_share_depth(unsigned *(*share)(void))
{
	shared_depth = share;
	depth = NULL;
}

static void *map_file(const char *path, size_t size)
{
	_cleanup_close_ int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	void *map;

	if (fd < 0 || ftruncate(fd, (off_t)size) < 0)
		return NULL;
	map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return map == MAP_FAILED ? NULL : map;
}

/* After exec the same file is continued; another process that has the same PID starts a new one. */
static void fill_header(char *map, size_t size)
{
	struct truth_header *header = (struct truth_header *)map;
	char(*names)[TRUTH_NAME] = (void *)(header + 1);
	uint64_t ticks = live_start_ticks((uint32_t)getpid());

	if (header->start_ticks != ticks)
		memset(map, 0, size);
	header->version = TRUTH_VERSION;
	header->pid = (uint32_t)getpid();
	header->start_ticks = ticks;
	header->api_count = truth.api_count;
	header->shards = TRUTH_SHARDS;
	header->codes = TRUTH_CODES;
	header->name_size = TRUTH_NAME;
	snprintf(header->library, sizeof(header->library), "%s", truth.library);
	read_file("/proc/self/comm", header->comm, sizeof(header->comm), NULL);
	header->comm[strcspn(header->comm, "\n")] = '\0';
	for (uint32_t i = 0; i < truth.api_count; i++)
		snprintf(names[i], TRUTH_NAME, "%s", truth.names[i]);
	memcpy(header->magic, "gpstruth", sizeof(header->magic));
}

static void open_files(void)
{
	const char *base = getenv("GPUSONDE_SIM_CUDA_LOG"), *lines = getenv("GPUSONDE_SIM_CUDA_LOG_EVENTS");
	const size_t names = sizeof(struct truth_header) + truth.api_count * (size_t)TRUTH_NAME,
		     errors = truth.api_count * sizeof(struct truth_error[TRUTH_CODES]),
		     cells = truth.api_count * sizeof(struct truth_cell[TRUTH_SHARDS]);
	char path[4096], *map;

	if (!base || !*base)
		return;
	snprintf(path, sizeof(path), "%s.%d.%s", base, (int)getpid(), truth.library);
	map = map_file(path, names + errors + cells);
	if (!map) {
		fprintf(stderr,
			"gpusonde-sim: %s: %s; GPUSONDE_SIM_CUDA_LOG needs a folder that can be written\n",
			path, strerror(errno));
		return;
	}
	fill_header(map, names + errors + cells);
	truth.errors = (struct truth_error *)(map + names);
	truth.cells = (struct truth_cell *)(map + names + errors);
	if (lines && STRV_EQ(lines, "1")) {
		snprintf(path, sizeof(path), "%s.%d.events", base, (int)getpid());
		truth.events = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	}
}
_Static_assert(sizeof(struct truth_header) % 8 == 0 && TRUTH_NAME % 8 == 0, "what follows is aligned");

void truth_init(const char *library, const char *const *names, uint32_t api_count)
{
	truth.library = library;
	truth.names = names;
	truth.api_count = api_count;
	open_files();
}

void truth_forked(void)
{
	/* The parent's mapping stays, since a call may be in progress. Leaking it is harmless. */
	truth.cells = NULL;
	if (truth.events >= 0)
		close(truth.events);
	truth.events = -1;
	open_files();
}

static void note_time(struct call *call)
{
	struct timespec now;

	if (truth.events < 0)
		return;
	clock_gettime(CLOCK_MONOTONIC, &now);
	call->began_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void truth_begin(struct call *call)
{
	call->nested = (*truth_depth())++ > 0;
	note_time(call);
}

static void add(uint64_t *counter, uint64_t what)
{
	__atomic_fetch_add(counter, what, __ATOMIC_RELAXED);
}

static void count_error(uint16_t api, uint32_t code, bool nested)
{
	struct truth_error *error = &truth.errors[api * TRUTH_CODES];

	for (int i = 0; i < TRUTH_CODES - 1; i++, error++) {
		uint32_t unused = 0;

		if (__atomic_compare_exchange_n(&error->code, &unused, code, false, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED) ||
		    unused == code)
			break;
	}
	/* The last one is for codes without a slot of their own. */
	if (error == &truth.errors[api * TRUTH_CODES + TRUTH_CODES - 1])
		error->code = UINT32_MAX;
	add(nested ? &error->nested : &error->outer, 1);
}

/* How much of a name is written to the line unchanged: all of it, or nothing. */
static size_t plain(const char *name)
{
	size_t n = 0;

	for (; name && name[n]; n++)
		if ((unsigned char)name[n] < ' ' || name[n] == '"' || name[n] == '\\')
			return 0;
	return n;
}

static void write_line(const struct call *call, int result)
{
	const size_t name_n = plain(call->name);
	char line[512], end[64];
	struct iovec parts[] = { { line, 0 }, { (void *)(uintptr_t)call->name, name_n }, { end, 0 } };
	int length;

	length = snprintf(line, sizeof(line), "{\"t\":%" PRId64 ",\"tid\":%d,\"api\":\"%s\",\"nested\":%s",
			  call->began_ns, (int)gettid(), truth.names[call->api],
			  call->nested ? "true" : "false");
#define PUT(...) length += snprintf(line + length, sizeof(line) - (size_t)length, __VA_ARGS__)
	if (call->bytes > 0)
		PUT(",\"bytes\":%" PRIu64, call->bytes);
	if (call->address > 0)
		PUT(",\"address\":%" PRIu64, call->address);
	if (call->stream > 0)
		PUT(",\"stream\":%" PRIu64, call->stream);
	if (call->handle > 0)
		PUT(",\"handle\":%" PRIu64, call->handle);
	if (call->threads > 0)
		PUT(",\"threads\":%" PRIu64, call->threads);
	if (call->has_device)
		PUT(",\"device\":%d", call->device);
	if (name_n > 0)
		PUT(",\"name\":\"");
#undef PUT
	parts[0].iov_len = (size_t)length;
	parts[2].iov_len =
		(size_t)snprintf(end, sizeof(end), "%s,\"result\":%d}\n", name_n > 0 ? "\"" : "", result);
	/* In one write, so that lines of several threads do not mix. */
	if (writev(truth.events, parts, ARRAY_SIZE(parts)) < 0)
		truth.events = -1;
}

static void count(const struct call *call, int result)
{
	struct truth_cell *cell;

	if (!truth.cells)
		return;
	if (shard == 0)
		shard = 1 + truth.next_shard++ % TRUTH_SHARDS;
	cell = &truth.cells[(shard - 1) * truth.api_count + call->api];
	add(call->nested ? &cell->nested : &cell->outer, 1);
	if (result != 0)
		count_error(call->api, (uint32_t)result, call->nested);
	else if (call->bytes > 0)
		add(call->nested ? &cell->nested_bytes : &cell->outer_bytes, call->bytes);
	if (truth.events >= 0)
		write_line(call, result);
}

void truth_end(const struct call *call, int result)
{
	(*truth_depth())--;
	count(call, result);
}

void truth_note(struct call *call)
{
	note_time(call);
	count(call, 0);
}
