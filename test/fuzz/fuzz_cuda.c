// SPDX-License-Identifier: Apache-2.0
/*
 * Programs that make any calls in any order: nothing crashes or grows beyond its limits, the ledger's sums
 * are those of its rows, lists are whole, and no figure of a window is more than there can be. An input is
 * records of RECORD bytes: see send().
 */
#include "fuzz.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/private.h"

enum { RECORD = 12, RECORDS_MAX = 4096, IDS = 16 };

/* The newest questions about kernels, and what they are asked of. */
static struct cuda *asking;
static uint64_t ids[IDS];
static uint32_t ids_n;

static const struct cuda_limits limits = {
	.processes = 4,
	.series = 2,
	.streams = 6,
	.contexts = 3,
	.threads = 3,
	.allocations = 16,
	.events = 8,
	.kernels = 4,
	.kernel_series = 3,
};

#define CHECK(condition)          \
	do {                      \
		if (!(condition)) \
			abort();  \
	} while (0)

static int environment(uint32_t tgid, char *buf, size_t size, size_t *ret_n, void *userdata)
{
	static const char *const values[] = { "A=1", "CUDA_VISIBLE_DEVICES=1",
					      "CUDA_VISIBLE_DEVICES=GPU-b,0" };
	const char *value = values[tgid % ARRAY_SIZE(values)];

	(void)userdata;
	(void)size;
	if (tgid == 0)
		return -1;
	*ret_n = strlen(value);
	memcpy(buf, value, *ret_n);
	return 0;
}

static void answer(struct cuda *cuda, uint64_t id, uint8_t what)
{
	static const int64_t values[] = { -1, 0, 100, INT64_MAX };
	struct kernel from = {
		.source = what & 1 ? KERNEL_SOURCE_UNRESOLVED : KERNEL_SOURCE_SYMBOL,
		.symbol = what & 2 ? "k" : "0x3",
		.file = what & 4 ? "f" : "",
		.name = "n",
		.brief = "b",
	}, *kernel = NULL;

	for (unsigned i = 0; i < KERNEL_FIGURES; i++)
		from.figures[i] = values[(what >> 4) & 3];
	CHECK(kernel_new(&from, &kernel) == 0);
	cuda_kernel(cuda, id, what & 8 ? NULL : kernel);
	kernel_unref(kernel);
}

static int function(const struct cuda_function *function, void *userdata)
{
	(void)userdata;
	CHECK(function->function != 0 && (!function->symbol || function->symbol[0]));
	ids[ids_n++ % IDS] = function->id;
	switch ((function->function + function->tgid) % 6) {
	case 0:
		return -EAGAIN;
	case 1:
		return -EINVAL;
	case 2:
		answer(asking, function->id, (uint8_t)function->id);
		return function->id & 64 ? 0 : -EAGAIN;
	default:
		return 0;
	}
}

static void check_lists(const struct process *p)
{
	uint32_t n = 0, dropped = 0, previous;

	for (uint32_t i = 0; i < p->rows.n; i++) {
		previous = 0;
		if (!row_at(p, i)->kernel)
			continue;
		CHECK(row_at(p, i)->settled || row_at(p, i)->functions);
		CHECK(row_at(p, i)->usage < p->usages_n && row_at(p, i)->shapes_n <= TRACED_SHAPES_MAX);
		for (uint32_t at = row_at(p, i)->functions; at; at = function_at(p, at - 1)->next) {
			CHECK(function_at(p, at - 1)->used && function_at(p, at - 1)->row == i);
			CHECK(function_at(p, at - 1)->previous == previous && n++ < p->functions.used);
			CHECK(!function_at(p, at - 1)->wanted || row_at(p, i)->wanted);
			/* One whose value may be another's by now waits for its answer, and is not found. */
			dropped += function_at(p, at - 1)->dropped;
			previous = at;
		}
	}
	CHECK(n == p->functions.used && p->function_map.count == n - dropped);
	n = 0;
	for (uint32_t i = 0; i < p->modules.n; i++) {
		const struct module *m = pool_at(&p->modules, i);

		previous = 0;
		for (uint32_t at = m->handle ? m->handles : 0; at;) {
			const struct handle *h = pool_at(&p->handles, at - 1);

			CHECK(h->module == i + 1 && h->previous == previous && n++ < p->handles.used);
			previous = at;
			at = h->next;
		}
	}
	CHECK(p->handle_map.count == p->handles.used && p->module_map.count == p->modules.used);
}

/* All launches and all time are at one kernel each, or at the rest. */
static void check_kernels(const struct process *p)
{
	uint64_t launches[USAGES_MAX] = { 0 }, ns[USAGES_MAX] = { 0 };

	CHECK(p->rows.used <= limits.kernels && p->functions.used <= limits.kernels * FUNCTIONS_PER_ROW);
	for (uint32_t i = 0; i < p->rows.n; i++) {
		const struct kernel_row *row = row_at(p, i);
		uint64_t shaped = row->other_shapes;

		if (!row->kernel)
			continue;
		launches[row->usage] += row->share.now.launches;
		ns[row->usage] += row->share.now.ns;
		for (unsigned k = 0; k < row->shapes_n; k++)
			shaped += row->shapes[k].launches;
		CHECK(shaped == row->share.now.launches);
		CHECK(row->share.series.launches <= row->share.shown.launches);
	}
	for (uint32_t i = 0; i < p->usages_n; i++) {
		const struct usage *u = &p->usages[i];

		CHECK(launches[i] + u->rest.now.launches == u->now[TRACED_LAUNCHES]);
		CHECK(ns[i] + u->rest.now.ns == u->now[TRACED_BUSY_ESTIMATED]);
	}
}

static void check_process(const struct cuda *cuda, const struct process *p)
{
	uint64_t live[USAGES_MAX][TRACE_MEMORIES] = { 0 };
	uint32_t previous = 0, n = 0;

	CHECK(p->streams.used <= limits.streams && p->threads.used <= limits.threads);
	CHECK(p->contexts_n <= limits.contexts + 1 && p->events.used <= limits.events);
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
	check_kernels(p);
	check_lists(p);
	n = 0;
	previous = 0;
	for (uint32_t at = p->pending; at; at = stream_at(p, at - 1)->next) {
		const struct stream *s = stream_at(p, at - 1);

		CHECK(s->pending && s->generation != 0 && s->previous == previous && n++ < limits.streams);
		CHECK(s->context < p->contexts_n);
		previous = at;
	}
}

static void check_sums(const struct cuda *cuda)
{
	uint64_t bytes = 0;
	uint32_t rows = 0, questions = 0, of_the_dead = 0; /* an answer to these may have found a successor */

	for (uint32_t i = 0; i < cuda->processes_n; i++) {
		const struct process *p = cuda->processes[i];

		check_process(cuda, p);
		rows += p->rows.used;
		for (uint32_t k = 0; k < p->functions.n; k++)
			*(p->over ? &of_the_dead : &questions) += function_at(p, k)->id != 0;
		for (uint32_t k = 0; k < p->handles.n; k++) {
			const struct handle *h = pool_at(&p->handles, k);

			bytes += h->handle && h->symbol ? strlen(h->symbol) + 1 : 0;
		}
		for (uint32_t k = 0; k < p->modules.n; k++) {
			const struct module *m = pool_at(&p->modules, k);

			bytes += m->handle && m->path ? strlen(m->path) + 1 : 0;
		}
	}
	CHECK(cuda->rows_n == rows);
	CHECK(cuda->names_bytes == bytes);
	CHECK(cuda->questions.count >= questions && cuda->questions.count <= questions + of_the_dead);
}

static void check_window(struct cuda *cuda, int64_t *now_ns, uint8_t step)
{
	struct cuda_figures figures;
	struct trace_view *view;

	*now_ns += 1 + ((int64_t)step << 12);
	CHECK(cuda_window(cuda, *now_ns, &figures) == 0);
	CHECK(trace_view_new(figures.processes_n, figures.devices_n, 0, 0, 0, figures.totals_n,
			     figures.kernels_n, &view) == 0);
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
	CHECK(view->kernels_n == figures.kernels_n);
	for (uint32_t i = 0, series = 0; i < view->kernels_n; i++) {
		const struct traced_kernel *k = &view->kernels[i];

		CHECK(k->process < view->processes_n && isfinite(k->all.seconds));
		series += k->has_series;
		CHECK(series <= limits.kernel_series);
	}
	trace_view_unref(view);
}

static uint64_t edge(uint8_t byte)
{
	static const uint64_t edges[] = { 1ULL << 31, 1ULL << 32, 1ULL << 43, 1ULL << 63, UINT64_MAX };

	return byte < 256 - ARRAY_SIZE(edges) ? byte : edges[255 - byte];
}

static void send_name(struct cuda *cuda, const struct trace_header *header, const uint8_t *r)
{
	union {
		struct trace_name event;
		char room[sizeof(struct trace_name) + 4];
	} u;

	memset(&u, 0, sizeof(u));
	u.event.header = *header;
	u.event.header.type = TRACE_EVENT_NAME;
	u.event.header.op = r[5] & 1 ? TRACE_OP_FUNCTION_NAME : TRACE_OP_MODULE_FILE;
	u.event.handle = r[7] & 15;
	u.event.of = r[8] & 3;
	u.event.name_n = r[5] & 2 ? 3 : r[8];
	memcpy(u.room + sizeof(u.event), r + 9, 3);
	cuda_event(cuda, &u.event.header, sizeof(u) - (r[6] & 7));
}

/* An environment variable, from cuInit; @name has room for a record. */
static void make_variable(struct trace_name *name, const uint8_t *r)
{
	name->header.type = TRACE_EVENT_NAME;
	name->header.op = TRACE_OP_INIT;
	name->handle = r[5] & 3;
	name->of = r[6] & 3;
	name->name_n = r[7];
	name->cut = r[7] >> 7;
	memcpy(name->name, r + 8, RECORD - 8);
}

/* Few PIDs, threads, handles and addresses, so that they meet. */
static void send(struct cuda *cuda, const uint8_t *r, int64_t *now_ns)
{
	union {
		struct trace_header header;
		struct trace_launch launch;
		struct trace_call call;
		struct trace_process process;
		struct trace_name variable;
		char room[sizeof(struct trace_name) + RECORD];
	} event;

	memset(&event, 0, sizeof(event));
	*now_ns += r[2] & 0x7f;
	event.header.time_ns = r[2] & 0x80 ? edge(r[3]) : (uint64_t)*now_ns + r[3];
	event.header.tgid = 1 + (r[1] & 7);
	event.header.tid = 1 + (r[1] >> 3 & 7);
	event.header.flags = r[4] & 0x3f;
	event.header.op = r[5];
	if (r[0] >= 248) {
		send_name(cuda, &event.header, r);
		return;
	}
	if (r[0] >= 244) {
		answer(cuda, r[5] & 0x80 ? edge(r[6]) : ids[r[5] % IDS], r[7]);
		return;
	}
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
		make_variable(&event.variable, r);
		break;
	case 5:
		cuda_nvml(cuda, (struct process_id){ event.header.tgid, r[5] & 2 ? edge(r[7]) : 0 },
			  r[5] & 1 ? "GPU-a" : "GPU-b", (double)edge(r[6]), (double)edge(r[7]),
			  (double)edge(r[8]));
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
		event.launch.function = r[11] & 15;
		event.launch.shared_bytes = (uint32_t)edge(r[11]);
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

static int span_is_sound(const struct span *span, void *userdata)
{
	(void)userdata;
	CHECK(span->start_ns <= span->likely_end_ns && span->likely_end_ns <= span->end_ns);
	CHECK(span->tgid != 0 && span->device && strlen(span->device) < TRACED_UUID);
	return 0;
}

int fuzz_one(const uint8_t *data, size_t size)
{
	static const struct cuda_ops ops = { .environment = environment },
				     naming = { .environment = environment, .function = function };
	static const struct cuda_device devices[] = {
		{ .uuid = "GPU-a", .cores = 10, .speed = 1, .sm = 90 },
		{ .uuid = "GPU-b", .speed = 2 },
	};
	struct span_sink sink = { .sink.name = "fuzz", .span = span_is_sound };
	struct cuda *cuda;
	int64_t now_ns;

	CHECK(cuda_new(&limits, size % RECORD == 0 ? &naming : &ops, NULL, &cuda) == 0);
	asking = cuda;
	memset(ids, 0, sizeof(ids));
	ids_n = 0;
	CHECK(cuda_set_devices(cuda, devices, 2) == 0);
	CHECK(span_sinks_add(cuda_span_sinks(cuda), &sink) == 0);
	now_ns = cuda->window_start_ns;
	for (size_t at = 0, n = 0; at + RECORD <= size && n < RECORDS_MAX; at += RECORD, n++) {
		send(cuda, data + at, &now_ns);
		CHECK(cuda->processes_n <= limits.processes && cuda->allocations_n <= limits.allocations);
		check_sums(cuda);
	}
	check_window(cuda, &now_ns, 1);
	cuda_free(cuda);
	return 0;
}
