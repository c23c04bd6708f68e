// SPDX-License-Identifier: Apache-2.0
#include "cmd/trace/kernels.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "cmd/trace/cupti.h"
#include "cmd/trace/node.h"
#include "view/torch.h"

#define SETTLE_NS (3 * NSEC_PER_SEC)

struct ended {
	struct traced_process process;
	struct traced_kernel *kernels; /* process.kernels_n of them, with references */
};

struct trace_kernels {
	sd_event *event;
	struct pipeline *pipeline;
	const struct options *options;
	const struct trace_cupti *cupti; /* NULL: nothing is measured */
	struct trace_node *node; /* NULL before trace_kernels_prepare() */
	struct trace_view *view; /* newest */
	struct ended *ended;
	uint32_t ended_n, ended_cap, rows;
	uint64_t lost_processes, lost_launches; /* of ended processes that were not stored */
};

/* ---- ended processes ---- */

static bool reserve_rows(struct trace_kernels *k, uint32_t rows)
{
	uint32_t cap = k->ended_cap ? k->ended_cap * 2 : 16;
	struct ended *ended;

	if (rows > TRACE_KERNELS_MAX - k->rows)
		return false;
	if (k->ended_n < k->ended_cap)
		return true;
	ended = reallocarray(k->ended, cap, sizeof(*ended));
	if (!ended)
		return false;
	k->ended = ended;
	k->ended_cap = cap;
	return true;
}

static void store_ended(struct trace_kernels *k, const struct trace_view *view,
			const struct traced_process *process)
{
	const struct traced_kernel *from = &view->kernels[process->kernels_first];
	uint32_t n = process->kernels_n;
	struct traced_kernel *to = reserve_rows(k, n) ? calloc(n, sizeof(*to)) : NULL;

	if (!to) {
		k->lost_processes++;
		for (uint32_t i = 0; i < n; i++)
			k->lost_launches += from[i].all.launches;
		return;
	}
	for (uint32_t i = 0; i < n; i++) {
		to[i] = from[i];
		kernel_ref(to[i].kernel);
	}
	k->ended[k->ended_n++] = (struct ended){ *process, to };
	k->rows += n;
}

int trace_kernels_collect(struct trace_kernels *k, struct trace_engine *engine)
{
	struct trace_view *view;
	int r;

	trace_node_read(k->node);
	pipeline_set_node(k->pipeline, trace_node_snapshot(k->node));
	r = pipeline_view(k->pipeline, engine, 0, &view);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < view->processes_n; i++)
		if (view->processes[i].exited &&
		    (view->processes[i].kernels_n > 0 || view->processes[i].leaked_allocations > 0))
			store_ended(k, view, &view->processes[i]);
	trace_view_unref(k->view);
	k->view = view;
	return 0;
}

const struct trace_view *trace_kernels_view(const struct trace_kernels *k)
{
	return k->view;
}

/* ---- view of all processes ---- */

static void add_process(const struct trace_kernels *k, struct trace_view *to,
			const struct traced_process *process, const struct traced_kernel *kernels)
{
	struct traced_process *copy = &to->processes[to->processes_n];

	*copy = *process;
	copy->calls_n = copy->devices_n = 0;
	copy->kernels_first = to->kernels_n;
	for (uint32_t i = 0; i < process->kernels_n; i++) {
		struct traced_kernel *kernel = &to->kernels[to->kernels_n++];

		*kernel = kernels[i];
		kernel->process = to->processes_n;
		kernel_ref(kernel->kernel);
		if (k->cupti && kernel->kernel)
			kernel->measured =
				trace_cupti_kernel(k->cupti, process->id.pid, kernel->uuid,
						   kernel->kernel->symbol, &kernel->measured_seconds);
	}
	to->processes_n++;
}

/* Ended processes, then live ones. */
static int make_view(const struct trace_kernels *k, struct trace_view **ret_view)
{
	const struct trace_view *live = k->view;
	struct trace_view *view;
	int r = trace_view_new(k->ended_n + (live ? live->processes_n : 0), 0, 0, 0, 0,
			       live ? live->totals_n : 0, k->rows + (live ? live->kernels_n : 0), &view);

	if (r < 0)
		return r;
	for (uint32_t i = 0; i < k->ended_n; i++)
		add_process(k, view, &k->ended[i].process, k->ended[i].kernels);
	for (uint32_t i = 0; live && i < live->processes_n; i++)
		if (!live->processes[i].exited)
			add_process(k, view, &live->processes[i],
				    &live->kernels[live->processes[i].kernels_first]);
	for (; live && view->totals_n < live->totals_n; view->totals_n++)
		view->totals[view->totals_n] = live->totals[view->totals_n];
	view->enabled = true;
	view->boot_ns = clock_boot_ns();
	*ret_view = view;
	return 0;
}

static double estimated_in(const struct traced_kernel *kernels, uint32_t n, const char *uuid)
{
	double seconds = 0;

	for (uint32_t i = 0; i < n; i++)
		seconds += STRV_EQ(kernels[i].uuid, uuid) ? kernels[i].all.seconds : 0;
	return seconds;
}

double trace_kernels_estimated(const struct trace_kernels *k, uint32_t pid, const char *uuid)
{
	const struct trace_view *live = k->view;
	double seconds = 0;

	for (uint32_t i = 0; i < k->ended_n; i++)
		if (k->ended[i].process.id.pid == pid)
			seconds += estimated_in(k->ended[i].kernels, k->ended[i].process.kernels_n, uuid);
	for (uint32_t i = 0; live && i < live->processes_n; i++)
		if (!live->processes[i].exited && live->processes[i].id.pid == pid)
			seconds += estimated_in(&live->kernels[live->processes[i].kernels_first],
						live->processes[i].kernels_n, uuid);
	return seconds;
}

/* A snapshot of the node's devices with the trace view; valid as long as the node's. */
static int make_snapshot(const struct trace_kernels *k, struct snapshot *ret_snapshot)
{
	const struct snapshot *node = trace_node_snapshot(k->node);
	struct trace_view *view;
	int r = make_view(k, &view);

	if (r < 0)
		return r;
	*ret_snapshot = (struct snapshot){
		.entities = node->entities,
		.entities_n = node->entities_n,
		.simulated = node->simulated,
		.real_ns = clock_real_ns(),
		.boot_ns = view->boot_ns,
		.trace = view,
	};
	return 0;
}

int trace_kernels_table(struct trace_kernels *k, const struct table_options *options, bool full, size_t rows,
			struct strbuf *out)
{
	struct snapshot s;
	int r = make_snapshot(k, &s);

	if (r == 0) {
		r = table_kernels(&s, options, full, rows, out);
		if (r == 0)
			r = table_leaked(&s, options, out);
		trace_view_unref(s.trace);
	}
	if (r == 0 && k->lost_processes > 0)
		strbuf_addf(out,
			    "INCOMPLETE: %" PRIu64 " ended processes are not shown, with %" PRIu64
			    " launches\n",
			    k->lost_processes, k->lost_launches);
	return r;
}

int trace_kernels_json(struct trace_kernels *k, struct strbuf *out)
{
	struct snapshot s;
	int r = make_snapshot(k, &s);

	if (r == 0) {
		r = view_kernels(&s, 0, out);
		trace_view_unref(s.trace);
	}
	return r;
}

int trace_kernels_operators(struct trace_kernels *k, const struct table_options *options, size_t rows,
			    struct strbuf *out)
{
	int r = k->view ? table_operators(k->view, options, rows, out) : 0;

	return r == 0 && k->view && k->view->torch ? table_torch(k->view->torch, options, out) : r;
}

int trace_kernels_operators_json(struct trace_kernels *k, struct strbuf *out)
{
	if (k->view)
		return view_operators(k->view, out);
	strbuf_adds(out, "null");
	return 0;
}

int trace_kernels_torch_json(struct trace_kernels *k, struct strbuf *out)
{
	if (k->view && k->view->torch)
		return json_torch(k->view->torch, out);
	strbuf_adds(out, "null");
	return 0;
}

/* ---- events ---- */

struct pipeline *trace_kernels_pipeline(struct trace_kernels *k)
{
	return k->pipeline;
}

const struct snapshot *trace_kernels_node(const struct trace_kernels *k)
{
	return k->node ? trace_node_snapshot(k->node) : NULL;
}

struct event_sink *trace_kernels_sink(struct trace_kernels *k)
{
	return pipeline_event_sink(k->pipeline);
}

void trace_kernels_mapping(struct trace_kernels *k, const struct exec_gate_mapping *mapping)
{
	const struct symbolizer_mapping look = {
		.pid = mapping->pid,
		.fd = mapping->fd,
		.path = mapping->path,
		.execution = mapping->execution,
		.address = mapping->address,
		.length = mapping->length,
		.offset = mapping->offset,
	};

	/* After exec the environment is another one. */
	if (!mapping->execution)
		pipeline_keep_environment(k->pipeline, mapping->pid);
	pipeline_look(k->pipeline, &look);
}

void trace_kernels_settle(struct trace_kernels *k, struct trace_engine *engine)
{
	pipeline_settle(k->pipeline, engine, SETTLE_NS);
}

/* ---- start and end ---- */

int trace_kernels_prepare(struct trace_kernels *k, const struct trace_cupti *cupti)
{
	int r = trace_node_new(k->event, k->options, &k->node);

	k->cupti = cupti;
	if (r == 0)
		pipeline_set_node(k->pipeline, trace_node_snapshot(k->node));
	return r;
}

int trace_kernels_new(sd_event *event, const struct options *options,
		      const struct trace_kernels_config *config, struct trace_kernels **ret_kernels)
{
	_cleanup_(trace_kernels_freep) struct trace_kernels *k = calloc(1, sizeof(*k));
	const struct pipeline_config pipeline = {
		.name_kernels = config->names,
		.operators = config->operators,
		.nccl = config->nccl,
		.measured = config->measured,
		.measured_always = config->measured,
		.keep_ended = true,
		.read_memory = options_bool(options, OPT_trace_read_memory),
	};
	int unnamed, r;

	if (!k)
		return -ENOMEM;
	k->event = event;
	k->options = options;
	r = pipeline_new(event, &pipeline, &k->pipeline, &unnamed);
	if (r >= 0)
		r = unnamed;
	if (r < 0)
		return r;
	*ret_kernels = TAKE_PTR(k);
	return 0;
}

void trace_kernels_free(struct trace_kernels *k)
{
	if (!k)
		return;
	for (uint32_t i = 0; i < k->ended_n; i++) {
		for (uint32_t n = 0; n < k->ended[i].process.kernels_n; n++)
			kernel_unref(k->ended[i].kernels[n].kernel);
		free(k->ended[i].kernels);
	}
	free(k->ended);
	trace_view_unref(k->view);
	pipeline_free(k->pipeline);
	trace_node_free(k->node);
	free(k);
}
