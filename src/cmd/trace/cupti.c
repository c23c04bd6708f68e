// SPDX-License-Identifier: Apache-2.0
#include "cmd/trace/cupti.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hashmap.h"
#include "base/row_list.h"
#include "base/text.h"
#include "cmd/trace/kernels.h"
#include "cmd/trace/plugin_place.h"
#include "cmd/trace/request.h"
#include "cupti_socket/receive.h"
#include "helper/spawn.h"
#include "pipeline/measured.h"
#include "pipeline/work_names.h"

#define INJECTION_VARIABLE "CUDA_INJECTION64_PATH"

enum { ALWAYS_MS = 1000, NAMES_MAX = 1 << 14, KERNELS_MAX = 1 << 16 };

struct kernel_sum {
	uint32_t pid, name; /* name: of names, plus one; 0: none */
	uint8_t kind;
	char uuid[TRACED_UUID];
	uint64_t count, least_ns, most_ns, correlated;
	double seconds;
};

struct trace_cupti {
	struct plugin_place place;
	struct cupti_receiver *receiver;
	struct row_list ended; /* struct gpu_time, of connections that have ended */
	struct work_names names;
	struct row_list kernels;
	struct hashmap kernel_by;
	struct pipeline *pipeline; /* NULL: work is only added up */
};

/* ---- what is received ---- */

static uint64_t name_key(uint32_t pid, uint64_t name, const char *uuid)
{
	struct {
		uint64_t pid, name, uuid;
	} key = { pid, name, uuid ? hash_bytes(uuid, strlen(uuid)) : 0 };

	return hash_bytes_secret(&key, sizeof(key));
}

static void on_name(uint32_t pid, const struct cupti_name *told, void *userdata)
{
	struct trace_cupti *cupti = userdata;

	work_names_told(&cupti->names, pid, told);
}

static struct kernel_sum *kernel_of(struct trace_cupti *cupti, uint32_t pid, const char *uuid,
				    const struct cupti_work *work)
{
	uint64_t key = name_key(pid, work->kind == CUPTI_GRAPH ? 1 : work->name, uuid);
	struct kernel_sum *sum;
	uint32_t index;

	if (hashmap_get(&cupti->kernel_by, key, &index))
		return &((struct kernel_sum *)cupti->kernels.list)[index];
	sum = row_list_add(&cupti->kernels);
	if (!sum)
		return NULL;
	if (hashmap_put(&cupti->kernel_by, key, cupti->kernels.n - 1) < 0) {
		cupti->kernels.n--;
		cupti->kernels.dropped++;
		return NULL;
	}
	sum->pid = pid;
	sum->kind = work->kind;
	sum->least_ns = UINT64_MAX;
	snprintf(sum->uuid, sizeof(sum->uuid), "%s", uuid);
	return sum;
}

/* Those whose launches have come by now. @times: of the connections; NULL: not known. */
static void hand_on(struct trace_cupti *cupti, struct gpu_times *times)
{
	const struct row_list *kept = cupti_receiver_kept(cupti->receiver);
	_cleanup_(gpu_works_freep) struct gpu_works *works =
		cupti->pipeline ? gpu_works_new(kept->n, times) : NULL;

	/* Without memory it stays; what then finds no room the receiver counts. */
	if (!works)
		return;
	if (kept->n > 0)
		memcpy(works->list, kept->list, kept->n * sizeof(works->list[0]));
	works->n = kept->n;
	cupti_receiver_forget_kept(cupti->receiver);
	pipeline_take_works(cupti->pipeline, works);
}

static void on_work(uint32_t pid, const char *uuid, const struct cupti_work *work, void *userdata)
{
	struct trace_cupti *cupti = userdata;
	uint64_t ns = work->end_ns - work->start_ns;
	uint32_t name = work->kind == CUPTI_KERNEL ? work_names_find(&cupti->names, pid, work->name) : 0;
	struct kernel_sum *sum = NULL;

	if (work->kind == CUPTI_KERNEL || work->kind == CUPTI_GRAPH)
		sum = kernel_of(cupti, pid, uuid, work);
	if (sum) {
		sum->name = name;
		sum->count++;
		sum->seconds += (double)ns / 1e9;
		sum->least_ns = MIN(sum->least_ns, ns);
		sum->most_ns = MAX(sum->most_ns, ns);
		sum->correlated += work->launch_ns != 0;
	}
	/* Before there is no room for more. */
	if (cupti_receiver_kept(cupti->receiver)->n >= GPU_WORKS_PROCESS / 2)
		hand_on(cupti, NULL);
}

void trace_cupti_to_pipeline(struct trace_cupti *cupti, struct pipeline *pipeline)
{
	uint64_t dropped;

	if (!cupti)
		return;
	if (pipeline) {
		cupti_receiver_keep(cupti->receiver);
	} else if (cupti->pipeline) {
		dropped = cupti_receiver_not_kept(cupti->receiver) +
			  measured_dropped(pipeline_measured(cupti->pipeline));
		if (dropped > 0)
			fprintf(stderr,
				"gpusonde %s: INCOMPLETE: of what was measured %" PRIu64
				" records had no room\n",
				trace_command_name(), dropped);
	}
	cupti->pipeline = pipeline;
}

static void time_row_add(struct row_list *rows, const struct gpu_time *row)
{
	struct gpu_time *copy = row_list_add(rows);

	if (copy)
		*copy = *row;
}

/* Of the connections that there are; those that have just ended are in it for the last time, and kept. */
static void rows_now(struct trace_cupti *cupti, struct row_list *rows)
{
	const struct gpu_time *now;

	cupti_receiver_rows(cupti->receiver, rows);
	now = rows->list;
	for (uint32_t i = 0; i < rows->n; i++)
		if (now[i].gone)
			time_row_add(&cupti->ended, &now[i]);
}

void trace_cupti_collect(struct trace_cupti *cupti)
{
	struct row_list rows = { .size = sizeof(struct gpu_time), .max = GPU_TIMES_MAX };
	struct gpu_times *times;

	if (!cupti)
		return;
	plugin_place_collect(&cupti->place);
	rows_now(cupti, &rows);
	times = gpu_times_new(rows.list, rows.n);
	hand_on(cupti, times);
	gpu_times_unref(times);
	row_list_done(&rows);
}

uint64_t trace_cupti_kernel(const struct trace_cupti *cupti, uint32_t pid, const char *uuid,
			    const char *symbol, double *ret_seconds)
{
	uint32_t index;
	const struct kernel_sum *sum;

	if (!hashmap_get(&cupti->kernel_by, name_key(pid, cupti_name_hash(symbol), uuid), &index))
		return 0;
	sum = &((const struct kernel_sum *)cupti->kernels.list)[index];
	*ret_seconds = sum->seconds;
	return sum->count;
}

/* ---- views ---- */

static const char *shown_name(struct trace_cupti *cupti, const struct kernel_sum *sum)
{
	return sum->kind == CUPTI_GRAPH ? "(graphs as a whole)" : work_names_shown(&cupti->names, sum->name);
}

static int most_time_first(const void *a, const void *b)
{
	const struct timed_kernel *x = a, *y = b;

	return (y->seconds > x->seconds) - (y->seconds < x->seconds);
}

/* With those that have ended. */
static void rows_of(struct trace_cupti *cupti, struct row_list *rows)
{
	struct row_list now = { .size = sizeof(struct gpu_time), .max = GPU_TIMES_MAX };
	const struct gpu_time *row;

	trace_cupti_collect(cupti);
	rows_now(cupti, &now);
	for (uint32_t i = 0; i < cupti->ended.n; i++)
		time_row_add(rows, &((const struct gpu_time *)cupti->ended.list)[i]);
	row = now.list;
	for (uint32_t i = 0; i < now.n; i++)
		if (!row[i].gone)
			time_row_add(rows, &row[i]);
	row_list_done(&now);
}

/* To be given to view_done(). */
static int view_make(struct trace_cupti *cupti, const struct trace_kernels *traced, struct row_list *rows,
		     struct gpu_time_view *view)
{
	struct timed_kernel *kernels;

	rows_of(cupti, rows);
	for (uint32_t i = 0; traced && i < rows->n; i++) {
		struct gpu_time *row = &((struct gpu_time *)rows->list)[i];

		row->estimated_seconds = trace_kernels_estimated(traced, row->pid, row->uuid);
	}
	kernels = calloc(cupti->kernels.n + 1U, sizeof(*kernels));
	if (!kernels)
		return -ENOMEM;
	for (uint32_t i = 0; i < cupti->kernels.n; i++) {
		const struct kernel_sum *sum = &((const struct kernel_sum *)cupti->kernels.list)[i];

		kernels[i] = (struct timed_kernel){ .pid = sum->pid,
						    .uuid = sum->uuid,
						    .name = shown_name(cupti, sum),
						    .symbol = work_names_symbol(&cupti->names, sum->name),
						    .count = sum->count,
						    .seconds = sum->seconds,
						    .least_ns = sum->least_ns,
						    .most_ns = sum->most_ns,
						    .correlated = sum->correlated };
	}
	qsort(kernels, cupti->kernels.n, sizeof(*kernels), most_time_first);
	*view = (struct gpu_time_view){ rows->list,
					kernels,
					rows->n,
					cupti->kernels.n,
					cupti->kernels.dropped,
					traced ? trace_kernels_node(traced) : NULL };
	return 0;
}

static void view_done(struct row_list *rows, const struct gpu_time_view *view)
{
	free((void *)view->kernels);
	row_list_done(rows);
}

int trace_cupti_table(struct trace_cupti *cupti, const struct trace_kernels *kernels,
		      const struct table_options *options, struct strbuf *out)
{
	struct row_list rows = { .size = sizeof(struct gpu_time), .max = GPU_TIMES_MAX };
	struct gpu_time_view view = { NULL, NULL, 0, 0, 0, NULL };
	int r = view_make(cupti, kernels, &rows, &view);

	if (r == 0)
		r = table_gpu_time(&view, options, out);
	view_done(&rows, &view);
	return r;
}

int trace_cupti_json(struct trace_cupti *cupti, const struct trace_kernels *kernels, struct strbuf *out)
{
	struct row_list rows = { .size = sizeof(struct gpu_time), .max = GPU_TIMES_MAX };
	struct gpu_time_view view = { NULL, NULL, 0, 0, 0, NULL };
	int r = view_make(cupti, kernels, &rows, &view);

	if (r == 0)
		r = json_gpu_time(&view, out);
	view_done(&rows, &view);
	return r;
}

/* ---- start and end ---- */

/* Another tool that is to be loaded goes first. */
static int inject(void)
{
	char path[PATH_MAX];

	if (getenv(INJECTION_VARIABLE))
		return -EBUSY;
	helper_find_library("libgpusonde-cupti.so", path);
	return setenv(INJECTION_VARIABLE, path, 1) < 0 ? -errno : 0;
}

static int trace_cupti_new(sd_event *event, struct trace_cupti **ret_cupti)
{
	static const struct cupti_receiver_ops ops = { .work = on_work, .name = on_name };
	/* All the time, and each kernel: the user has asked for it. */
	const struct cupti_wanted wanted = { .slice_ms = ALWAYS_MS, .period_ms = ALWAYS_MS, .nodes = 1 };
	struct trace_cupti *cupti = calloc(1, sizeof(*cupti));
	int r = -ENOMEM;

	if (!cupti)
		return r;
	cupti->place.listener = -1;
	cupti->ended = (struct row_list){ .size = sizeof(struct gpu_time), .max = GPU_TIMES_MAX };
	work_names_init(&cupti->names, NAMES_MAX);
	cupti->kernels = (struct row_list){ .size = sizeof(struct kernel_sum), .max = KERNELS_MAX };
	cupti->receiver = cupti_receiver_new(&wanted, &ops, cupti);
	if (cupti->receiver)
		r = plugin_place_open(&cupti->place, event, cupti_receiver_clients(cupti->receiver),
				      CUPTI_SOCKET_VARIABLE);
	if (r >= 0)
		r = inject();
	if (r < 0) {
		trace_cupti_free(cupti);
		return r;
	}
	*ret_cupti = cupti;
	return 0;
}

int trace_cupti_start(sd_event *event, struct trace_cupti **ret_cupti)
{
	int r = trace_cupti_new(event, ret_cupti);

	if (r == -EBUSY)
		fprintf(stderr,
			"gpusonde %s: --cupti cannot be used: " INJECTION_VARIABLE
			" is set, so that the command loads another tool; unset it, or leave out "
			"--cupti\n",
			trace_command_name());
	else if (r < 0)
		fprintf(stderr, "gpusonde %s: the GPUs' times cannot be measured: %s\n", trace_command_name(),
			strerror(-r));
	return r;
}

void trace_cupti_free(struct trace_cupti *cupti)
{
	if (!cupti)
		return;
	cupti_receiver_free(cupti->receiver);
	plugin_place_close(&cupti->place);
	row_list_done(&cupti->ended);
	work_names_done(&cupti->names);
	row_list_done(&cupti->kernels);
	hashmap_done(&cupti->kernel_by);
	free(cupti);
}
