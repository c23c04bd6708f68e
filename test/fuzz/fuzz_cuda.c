// SPDX-License-Identifier: Apache-2.0
/*
 * Programs that make any calls in any order: nothing crashes or grows beyond its limits, the ledger's sums are those of its rows, lists are
 * whole, and no figure of a window is more than there can be. An input is records of RECORD bytes: see send().
 */
#include "fuzz.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/private.h"

enum { RECORD = 12, RECORDS_MAX = 4096 };

static const struct cuda_limits limits = {
	.processes = 4,
	.series = 2,
	.streams = 6,
	.contexts = 3,
	.threads = 3,
	.allocations = 16,
	.events = 8,
};

#define CHECK(condition)          \
	do {                      \
		if (!(condition)) \
			abort();  \
	} while (0)

static int environment(uint32_t tgid, char *buf, size_t size, size_t *ret_n, void *userdata)
{
	static const char *const values[] = { "A=1", "CUDA_VISIBLE_DEVICES=1", "CUDA_VISIBLE_DEVICES=GPU-b,0" };
	const char *value = values[tgid % ARRAY_SIZE(values)];

	(void)userdata;
	(void)size;
	if (tgid == 0)
		return -1;
	*ret_n = strlen(value);
	memcpy(buf, value, *ret_n);
	return 0;
}

static void check_process(const struct cuda *cuda, const struct process *p)
{
	uint64_t live[USAGES_MAX][TRACE_MEMORIES] = { 0 };
	uint32_t previous = 0, n = 0;

	CHECK(p->streams.used <= limits.streams && p->threads.used <= limits.threads);
	CHECK(p->contexts_n <= limits.contexts + 1 && p->marks.used <= limits.events);
	CHECK(p->captures.used <= CAPTURES_MAX && p->graphs.used <= limits.events);
	for (uint32_t i = 0; i < p->contexts_n; i++) {
		previous = 0;
		for (uint32_t at = p->contexts[i].allocations; at;) {
			const struct allocation *a =
				&cuda->chunks[(at - 1) / ALLOCATIONS_CHUNK][(at - 1) % ALLOCATIONS_CHUNK];

			CHECK(a->previous == previous && a->context == i && n++ < limits.allocations);
			if (a->space != SPACE_MAPPING)
				live[a->usage][a->kind] += a->size;
			previous = at;
			at = a->next;
		}
	}
	for (uint32_t i = 0; i < p->usages_n; i++)
		for (unsigned kind = 0; kind < TRACE_MEMORIES; kind++)
			CHECK(p->usages[i].now[TRACED_LIVE_DEVICE + kind] == live[i][kind]);
	n = 0;
	previous = 0;
	for (uint32_t at = p->pending; at; at = stream_at(p, at - 1)->next) {
		const struct stream *s = stream_at(p, at - 1);

		CHECK(s->pending && s->generation != 0 && s->previous == previous && n++ < limits.streams);
		CHECK(s->context < p->contexts_n);
		previous = at;
	}
}

static void check_window(struct cuda *cuda, int64_t *now_ns, uint8_t step)
{
	struct cuda_figures figures;
	struct trace_view *view;

	*now_ns += 1 + ((int64_t)step << 12);
	CHECK(cuda_window(cuda, *now_ns, &figures) == 0);
	CHECK(trace_view_new(figures.processes_n, figures.devices_n, 0, 0, 0, figures.totals_n, figures.kernels_n, &view) == 0);
	view->processes_n = figures.processes_n;
	view->devices_n = figures.devices_n;
	view->totals_n = figures.totals_n;
	cuda_fill(cuda, view);
	for (uint32_t i = 0; i < view->devices_n; i++) {
		const struct traced_device *d = &view->devices[i];

		CHECK(d->process < view->processes_n);
		CHECK(d->v[TRACED_ACTIVE_RATIO] >= 0 && d->v[TRACED_ACTIVE_RATIO] <= 1);
		for (unsigned row = 0; row < TRACED_METRICS; row++)
			CHECK(!presence_is(d->p[row]) || (isfinite(d->v[row]) && d->v[row] >= 0));
	}
	trace_view_unref(view);
}

static uint64_t edge(uint8_t byte)
{
	static const uint64_t edges[] = { 1ULL << 31, 1ULL << 32, 1ULL << 43, 1ULL << 63, UINT64_MAX };

	return byte < 256 - ARRAY_SIZE(edges) ? byte : edges[255 - byte];
}

/* Few PIDs, threads, handles and addresses, so that they meet. */
static void send(struct cuda *cuda, const uint8_t *r, int64_t *now_ns)
{
	union {
		struct trace_header header;
		struct trace_launch launch;
		struct trace_call call;
		struct trace_process process;
		struct trace_text text;
	} event;

	memset(&event, 0, sizeof(event));
	*now_ns += r[2] & 0x7f;
	event.header.time_ns = r[2] & 0x80 ? edge(r[3]) : (uint64_t)*now_ns + r[3];
	event.header.tgid = 1 + (r[1] & 7);
	event.header.tid = 1 + (r[1] >> 3 & 7);
	event.header.flags = r[4] & 0x3f;
	event.header.op = r[5];
	switch (r[0] % 12) {
	case 0:
		event.header.type = r[5];
		cuda_event(cuda, &event.header, r[6]);
		return;
	case 1:
		check_window(cuda, now_ns, r[2]);
		return;
	case 2:
		event.header.type = r[5] & 1 ? TRACE_EVENT_EXIT : TRACE_EVENT_EXEC;
		break;
	case 3:
		event.header.type = TRACE_EVENT_PROCESS;
		event.process.incarnation = r[6];
		memset(event.process.comm, r[7], sizeof(event.process.comm));
		break;
	case 4:
		event.header.type = TRACE_EVENT_TEXT;
		event.header.op = TRACE_OP_SETENV;
		memcpy(event.text.text, r + 5, RECORD - 5);
		break;
	case 5:
		cuda_nvml(cuda, event.header.tgid, r[5] & 1 ? "GPU-a" : "GPU-b", (double)edge(r[6]),
			  (double)edge(r[7]), (double)edge(r[8]));
		return;
	case 6:
		cuda_mark(cuda, event.header.tgid, r[6], r[7]);
		cuda_lost(cuda, r[8] & 1);
		if (r[8] & 2)
			cuda_process_over(cuda, event.header.tgid, r[6]);
		return;
	case 7:
		event.header.type = TRACE_EVENT_LAUNCH;
		event.launch.duration_ns = edge(r[6]);
		event.launch.stream = r[7] & 15;
		event.launch.grid[0] = event.launch.grid[1] = event.launch.grid[2] = (uint32_t)edge(r[8]);
		event.launch.block[0] = event.launch.block[1] = event.launch.block[2] = (uint32_t)edge(r[9]);
		event.launch.result = r[10] & 1;
		break;
	default:
		event.header.type = TRACE_EVENT_CALL;
		event.header.op = r[5] % (TRACE_OPS + 2);
		event.call.duration_ns = edge(r[6]);
		event.call.stream = r[7] & 15;
		event.call.handle = r[7] >> 4;
		event.call.addr = r[8] & 31;
		event.call.size = edge(r[9]);
		event.call.kind = r[10] & 0x40 ? UINT32_MAX : r[10] & 15;
		event.call.result = r[10] & 0x80 ? (int32_t)r[11] * 4 : 0;
		break;
	}
	cuda_event(cuda, &event.header, sizeof(event));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct cuda_ops ops = { .environment = environment };
	static const struct cuda_device devices[] = {
		{ .uuid = "GPU-a", .cores = 10, .speed = 1 },
		{ .uuid = "GPU-b", .speed = 2 },
	};
	struct cuda *cuda;
	int64_t now_ns;

	CHECK(cuda_new(&limits, &ops, NULL, &cuda) == 0);
	CHECK(cuda_set_devices(cuda, devices, 2) == 0);
	now_ns = cuda->window_start_ns;
	for (size_t at = 0, n = 0; at + RECORD <= size && n < RECORDS_MAX; at += RECORD, n++) {
		send(cuda, data + at, &now_ns);
		CHECK(cuda->processes_n <= limits.processes && cuda->allocations_n <= limits.allocations);
		for (uint32_t i = 0; i < cuda->processes_n; i++)
			check_process(cuda, cuda->processes[i]);
	}
	check_window(cuda, &now_ns, 1);
	cuda_free(cuda);
	return 0;
}
