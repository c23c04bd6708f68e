// SPDX-License-Identifier: Apache-2.0
#include "cmd/trace/cupti.h"

#include <errno.h>
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
#include "cubin/name.h"
#include "cupti_socket/receive.h"
#include "helper/spawn.h"

#define INJECTION_VARIABLE "CUDA_INJECTION64_PATH"

enum { ALWAYS_MS = 1000, NAMES_MAX = 1 << 14, KERNELS_MAX = 1 << 16, WORKS_MAX = 1 << 17 };

struct name {
	char *symbol; /* as far as it has come */
	char *name; /* demangled; NULL: not yet */
	uint16_t have, size;
};

struct kernel_sum {
	uint32_t pid, name; /* name: of names, plus one; 0: none */
	uint8_t kind;
	char uuid[TRACED_UUID];
	uint64_t count, least_ns, most_ns, correlated;
	double seconds;
};

/* Until the events of its launch have come. */
struct timed_work {
	struct cupti_work work;
	uint32_t pid, name; /* name: as in a sum */
	char uuid[48];
};

struct trace_cupti {
	struct plugin_place place;
	struct cupti_receiver *receiver;
	struct row_list ended; /* struct gpu_time, of connections that have ended */
	struct row_list names, kernels;
	struct hashmap name_by, kernel_by;
	struct trace_timeline *timeline; /* NULL: there is none */
	struct row_list works; /* struct timed_work, for the timeline */
};

/* ---- what is received ---- */

static uint64_t name_key(uint32_t pid, uint64_t name, const char *uuid)
{
	struct {
		uint64_t pid, name, uuid;
	} key = { pid, name, uuid ? hash_bytes(uuid, strlen(uuid)) : 0 };

	return hash_bytes_secret(&key, sizeof(key));
}

static struct name *name_at(const struct trace_cupti *cupti, uint32_t index)
{
	return &((struct name *)cupti->names.list)[index];
}

/* Index plus one; 0: it was not told. */
static uint32_t name_find(const struct trace_cupti *cupti, uint32_t pid, uint64_t name)
{
	uint32_t index;

	return hashmap_get(&cupti->name_by, name_key(pid, name, NULL), &index) ? index + 1 : 0;
}

static struct name *name_new(struct trace_cupti *cupti, uint32_t pid, const struct cupti_name *told)
{
	struct name *name = row_list_add(&cupti->names);

	if (!name)
		return NULL;
	name->size = told->size;
	name->symbol = calloc(1, told->size + 1U);
	if (!name->symbol ||
	    hashmap_put(&cupti->name_by, name_key(pid, told->name, NULL), cupti->names.n - 1) < 0) {
		free(name->symbol);
		cupti->names.n--;
		return NULL;
	}
	return name;
}

/* Parts come in order; what does not fit what has come is not taken. */
static void on_name(uint32_t pid, const struct cupti_name *told, void *userdata)
{
	struct trace_cupti *cupti = userdata;
	uint32_t found = name_find(cupti, pid, told->name);
	struct name *name = NULL;

	if (found)
		name = name_at(cupti, found - 1);
	else if (told->at == 0)
		name = name_new(cupti, pid, told);
	if (!name || name->name || told->at != name->have || (found && told->at == 0))
		return;
	if (name->have + told->n > name->size)
		return;
	memcpy(name->symbol + name->have, told->text, told->n);
	name->have = (uint16_t)(name->have + told->n);
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

/* Those whose launches have come by now. */
static void works_to_timeline(struct trace_cupti *cupti)
{
	const struct timed_work *works = cupti->works.list;

	for (uint32_t i = 0; cupti->timeline && i < cupti->works.n; i++)
		trace_timeline_work(cupti->timeline, works[i].pid, works[i].uuid, &works[i].work,
				    works[i].name ? name_at(cupti, works[i].name - 1)->symbol : "");
	row_list_clear(&cupti->works);
}

static void work_keep(struct trace_cupti *cupti, uint32_t pid, const char *uuid,
		      const struct cupti_work *work, uint32_t name)
{
	struct timed_work *kept;

	if (cupti->works.n == WORKS_MAX)
		works_to_timeline(cupti);
	kept = row_list_add(&cupti->works);
	if (!kept)
		return;
	kept->pid = pid;
	kept->name = name;
	kept->work = *work;
	snprintf(kept->uuid, sizeof(kept->uuid), "%.*s", (int)sizeof(kept->uuid) - 1, uuid);
}

static void on_work(uint32_t pid, const char *uuid, const struct cupti_work *work, void *userdata)
{
	struct trace_cupti *cupti = userdata;
	uint64_t ns = work->end_ns - work->start_ns;
	uint32_t name = work->kind == CUPTI_KERNEL ? name_find(cupti, pid, work->name) : 0;
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
	if (cupti->timeline)
		work_keep(cupti, pid, uuid, work, name);
}

int trace_cupti_to_timeline(struct trace_cupti *cupti, struct trace_timeline *timeline)
{
	int r = timeline && cupti ? trace_timeline_expect_work(timeline) : 0;

	if (cupti)
		cupti->timeline = r < 0 ? NULL : timeline;
	return r;
}

void trace_cupti_collect(struct trace_cupti *cupti)
{
	if (!cupti)
		return;
	plugin_place_collect(&cupti->place);
	works_to_timeline(cupti);
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

/* Demangled when it is first shown. */
static const char *shown_name(const struct trace_cupti *cupti, const struct kernel_sum *sum)
{
	struct name *name = sum->name ? name_at(cupti, sum->name - 1) : NULL;
	char *buf;

	if (sum->kind == CUPTI_GRAPH)
		return "(graphs as a whole)";
	if (!name || !name->symbol)
		return "";
	if (name->name)
		return name->name;
	buf = malloc(KERNEL_NAME_MAX);
	if (!buf)
		return "";
	kernel_name_demangle(name->symbol, buf, KERNEL_NAME_MAX);
	name->name = strdup(buf);
	free(buf);
	return name->name ? name->name : "";
}

static int most_time_first(const void *a, const void *b)
{
	const struct timed_kernel *x = a, *y = b;

	return (y->seconds > x->seconds) - (y->seconds < x->seconds);
}

static void time_row_add(struct row_list *rows, const struct gpu_time *row)
{
	struct gpu_time *copy = row_list_add(rows);

	if (copy)
		*copy = *row;
}

/* Those that have ended are kept. */
static void rows_of(struct trace_cupti *cupti, struct row_list *rows)
{
	uint32_t kept = cupti->ended.n;
	const struct gpu_time *now;

	trace_cupti_collect(cupti);
	for (uint32_t i = 0; i < kept; i++)
		time_row_add(rows, &((const struct gpu_time *)cupti->ended.list)[i]);
	cupti_receiver_rows(cupti->receiver, rows);
	now = rows->list;
	for (uint32_t i = kept; i < rows->n; i++)
		if (now[i].gone)
			time_row_add(&cupti->ended, &now[i]);
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
		const struct name *name = sum->name ? name_at(cupti, sum->name - 1) : NULL;

		kernels[i] = (struct timed_kernel){ .pid = sum->pid,
						    .uuid = sum->uuid,
						    .name = shown_name(cupti, sum),
						    .symbol = name && name->symbol ? name->symbol : "",
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
	cupti->names = (struct row_list){ .size = sizeof(struct name), .max = NAMES_MAX };
	cupti->works = (struct row_list){ .size = sizeof(struct timed_work), .max = WORKS_MAX };
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
	for (uint32_t i = 0; i < cupti->names.n; i++) {
		free(name_at(cupti, i)->symbol);
		free(name_at(cupti, i)->name);
	}
	cupti_receiver_free(cupti->receiver);
	plugin_place_close(&cupti->place);
	row_list_done(&cupti->ended);
	row_list_done(&cupti->names);
	row_list_done(&cupti->works);
	row_list_done(&cupti->kernels);
	hashmap_done(&cupti->name_by);
	hashmap_done(&cupti->kernel_by);
	free(cupti);
}
