// SPDX-License-Identifier: Apache-2.0
/*
 * atopgpud's answers to atop, in both versions of its protocol.
 *
 * atop knows only whole GPUs: processes of MIG instances are listed under the GPU of the instance. atop
 * identifies GPUs by position and disconnects from a daemon whose answer is longer than ATOP_ANSWER_MAX, so
 * the lines of all GPUs are added first. Half of the remaining space is for processes that ended, half for
 * the busiest live ones, and either may use what the other leaves.
 *
 * -1 means "not delivered" for busy figures. For memory the protocol has no such value: unknown memory is 0,
 * as in atopgpud. A cumulative figure that was once shown never becomes -1 again, since atop would count the
 * difference as work.
 */
#include "view/view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hashmap.h"
#include "base/macro.h"
#include "view/shown.h"

enum {
	NEWEST_VERSION = 2,
	TASKS_COMPUTE = 1, /* process lists, in both versions */
	TASKS_ACCOUNTING = 2, /* version 1: busy figures per process */
	TASKS_GRAPHICS = 2, /* version 2 */
};

/* Lines of the answer, collected before it is known how many fit. */
struct lines {
	struct strbuf text;
	struct line {
		size_t at, length;
		uint64_t exit_seq;
		uint16_t gpu; /* the entity that the line is listed under */
	} * lines;
	uint32_t n, taken;
	bool complete; /* false: lines beyond the capacity of any answer were dropped */
};

/* Lists the GPUs in atop's order; returns their number. */
static unsigned list_gpus(const struct snapshot *s, uint16_t gpus[static ATOP_GPUS_MAX])
{
	unsigned n = 0;

	for (uint32_t i = 0; i < s->entities_n && n < ATOP_GPUS_MAX; i++)
		if (!entity_is_mig(&s->entities[i]))
			gpus[n++] = (uint16_t)i;
	return n;
}

uint64_t view_atop_layout(const struct snapshot *snapshot)
{
	uint16_t gpus[ATOP_GPUS_MAX];
	unsigned n = list_gpus(snapshot, gpus);
	uint64_t layout = n;

	for (unsigned i = 0; i < n; i++) {
		const char *uuid = snapshot->entities[gpus[i]].id.uuid;
		uint64_t both[2] = { layout, hash_bytes(uuid, strlen(uuid)) };

		layout = hash_bytes(both, sizeof(both));
	}
	return layout;
}

/* Replaces atop's delimiters and non-ASCII characters. */
static void add_name(struct strbuf *out, const char *name)
{
	if (!*name)
		name = "unknown";
	for (; *name; name++)
		strbuf_addc(out, *name > ' ' && *name <= '~' && *name != '@' && *name != '#' ? *name : '_');
}

static unsigned tasks_support(const struct entity *e, unsigned version)
{
	unsigned tasks = presence_is(e->id.process_list) ? TASKS_COMPUTE : 0;

	if (version == 1)
		return tasks | (presence_is(e->id.process_util) ? TASKS_ACCOUNTING : 0);
	return tasks | (presence_is(e->id.p[SLOT_PROCESSES_GRAPHICS]) ? TASKS_GRAPHICS : 0);
}

static int result(const struct strbuf *out)
{
	if (!out->failed)
		return 0;
	return out->limit > 0 ? -E2BIG : -ENOMEM;
}

int view_atop_types(const struct snapshot *snapshot, unsigned version, struct strbuf *out)
{
	uint16_t gpus[ATOP_GPUS_MAX];
	unsigned n = list_gpus(snapshot, gpus);

	strbuf_add_u64(out, n);
	for (unsigned i = 0; i < n; i++) {
		const struct entity *e = &snapshot->entities[gpus[i]];

		strbuf_addc(out, '@');
		add_name(out, e->id.pci_bus_id);
		strbuf_addc(out, ' ');
		add_name(out, e->id.name);
		if (snapshot->simulated)
			strbuf_adds(out, "_simulated"); /* atop shows the last 12 characters */
		strbuf_addc(out, ' ');
		strbuf_add_u64(out, tasks_support(e, version));
	}
	return result(out);
}

/* Not llround(): the agent would have to load libm, half a megabyte. */
static long long rounded(double v)
{
	double bounded = CLAMP(v, -1.0, 1e18);

	return (long long)(bounded < 0 ? bounded - 0.5 : bounded + 0.5);
}

static long long percent_now(const struct entity *e, unsigned slot)
{
	return e->present && !e->stale && presence_is(e->id.p[slot]) ? rounded(e->id.v[slot] * 100) : -1;
}

static long long percent_sum(const struct entity *e, unsigned i, unsigned slot)
{
	return presence_is(e->id.p[slot]) || e->percent_sum[i] > 0 ? rounded(e->percent_sum[i]) : -1;
}

static long long memory_now(const struct entity *e, unsigned slot)
{
	return e->present && presence_is(e->id.p[slot]) ? rounded(e->id.v[slot] / 1024) : 0;
}

static void add_gpu(struct strbuf *out, const struct entity *e)
{
	strbuf_addf(out, "@%lld %lld %lld %lld %llu %lld %lld %lld", percent_now(e, SLOT_UTILIZATION_GPU),
		    percent_now(e, SLOT_UTILIZATION_MEMORY), memory_now(e, SLOT_MEMORY_TOTAL),
		    memory_now(e, SLOT_MEMORY_USED), (unsigned long long)e->samples,
		    percent_sum(e, 0, SLOT_BUSY_GPU), percent_sum(e, 1, SLOT_BUSY_MEMORY),
		    rounded(e->memory_kib_sum));
}

static char process_type(const struct process *process)
{
	if (process->types & (PROCESS_TYPE_COMPUTE | PROCESS_TYPE_MPS))
		return 'C';
	return process->types & PROCESS_TYPE_GRAPHICS ? 'G' : 'U';
}

/* Percent-seconds; in version 1 the average over the process's life, as NVML's accounting returns it. */
static long long process_busy(const struct process *process, unsigned i, unsigned row, unsigned version)
{
	double sum = process->percent_sum[i];

	if (!presence_is(process->p[row]))
		return -1;
	if (version == 1)
		return process->samples > 0 ? rounded(sum / (double)process->samples) : 0;
	return rounded(sum);
}

static void add_process(struct strbuf *out, const struct process *process, unsigned version)
{
	long long gpu = process_busy(process, 0, PROCESS_BUSY, version);
	long long memory = process_busy(process, 1, PROCESS_BUSY_MEMORY, version);
	long long held =
		presence_is(process->p[PROCESS_MEMORY]) ? rounded(process->v[PROCESS_MEMORY] / 1024) : 0;

	strbuf_addf(out, "#%c %u ", process->exited ? 'E' : 'A', process->id.pid);
	if (version == 1) {
		/* NVML's accounting has the context's lifetime only after its end. */
		long long life =
			process->exited ? (process->last_real_ns - process->first_real_ns) / 1000000 : 0;

		strbuf_addf(out, "%lld %lld %lld", gpu, memory, MAX(life, 0LL));
	} else {
		strbuf_addf(out, "%c %lld %lld", process_type(process), gpu, memory);
	}
	strbuf_addf(out, " %lld %lld %llu", held, rounded(process->memory_kib_sum),
		    (unsigned long long)process->samples);
}

static int lines_init(struct lines *lines, uint32_t n)
{
	*lines = (struct lines){ .complete = true };
	strbuf_init(&lines->text, 0);
	lines->lines = calloc(n + 1, sizeof(*lines->lines));
	return lines->lines ? 0 : -ENOMEM;
}

static void lines_done(struct lines *lines)
{
	strbuf_done(&lines->text);
	free(lines->lines);
}

static void lines_add(struct lines *lines, const struct snapshot *s, const struct process *process,
		      unsigned version)
{
	const struct entity *e = &s->entities[process->entity];
	struct line *line = &lines->lines[lines->n];

	if (lines->text.len > ATOP_ANSWER_MAX) {
		lines->complete = false;
		return;
	}
	*line = (struct line){
		.at = lines->text.len,
		.exit_seq = process->exit_seq,
		.gpu = entity_is_mig(e) ? e->id.parent : process->entity,
	};
	add_process(&lines->text, process, version);
	line->length = lines->text.len - line->at;
	lines->n++;
}

/* Takes lines from the front while they fit into @budget bytes; returns their length. */
static size_t lines_take(struct lines *lines, size_t budget)
{
	size_t used = 0;

	while (lines->taken < lines->n && used + lines->lines[lines->taken].length <= budget)
		used += lines->lines[lines->taken++].length;
	return used;
}

static void lines_write(const struct lines *lines, uint16_t gpu, struct strbuf *out)
{
	for (uint32_t i = 0; i < lines->taken; i++)
		if (lines->lines[i].gpu == gpu)
			strbuf_add(out, lines->text.data + lines->lines[i].at, lines->lines[i].length);
}

static double process_value(const struct process *process, unsigned row)
{
	return presence_is(process->p[row]) ? process->v[row] : 0;
}

/* Busiest first, then by memory; the PID makes the order total. */
static int compare_busy(const void *a, const void *b)
{
	static const unsigned rows[] = { PROCESS_UTILIZATION, PROCESS_MEMORY };
	const struct process *const *p = a, *const *q = b;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		double x = process_value(*p, rows[i]), y = process_value(*q, rows[i]);

		if (x != y)
			return x > y ? -1 : 1;
	}
	return (*p)->id.pid < (*q)->id.pid ? -1 : (*p)->id.pid > (*q)->id.pid;
}

/* Does the GPU of this process have a line? GPUs beyond atop's limit have none. */
static bool gpu_listed(const struct snapshot *s, const struct process *process, const uint16_t *gpus,
		       unsigned n)
{
	const struct entity *e = &s->entities[process->entity];
	uint16_t gpu = entity_is_mig(e) ? e->id.parent : process->entity;

	return n > 0 && gpu <= gpus[n - 1];
}

static int add_live(struct lines *lines, const struct snapshot *s, unsigned version, const uint16_t *gpus,
		    unsigned gpus_n, unsigned *ret_live)
{
	_cleanup_free_ const struct process **order = calloc(s->processes_n + 1, sizeof(struct process *));
	unsigned n = 0;

	if (!order)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->processes_n; i++)
		if (gpu_listed(s, &s->processes[i], gpus, gpus_n))
			order[n++] = &s->processes[i];
	qsort(order, n, sizeof(struct process *), compare_busy);
	for (unsigned i = 0; i < n; i++)
		lines_add(lines, s, order[i], version);
	*ret_live = n;
	return lines->text.failed ? -ENOMEM : 0;
}

static int add_exited(struct lines *lines, const struct snapshot *s, unsigned version, const uint16_t *gpus,
		      unsigned gpus_n, uint64_t exit_seq)
{
	for (uint32_t i = 0; i < s->exited_n; i++)
		if (s->exited[i].exit_seq > exit_seq && gpu_listed(s, &s->exited[i], gpus, gpus_n))
			lines_add(lines, s, &s->exited[i], version);
	return lines->text.failed ? -ENOMEM : 0;
}

/* The last exit record that needs no further answer: delivered, or of a GPU without a line. */
static uint64_t settled(const struct lines *exited, const struct snapshot *s, uint64_t exit_seq)
{
	if (exited->taken < exited->n)
		return exited->taken > 0 ? exited->lines[exited->taken - 1].exit_seq : exit_seq;
	if (!exited->complete)
		return exited->lines[exited->n - 1].exit_seq;
	return s->exited_n > 0 ? MAX(exit_seq, s->exited[s->exited_n - 1].exit_seq) : exit_seq;
}

int view_atop_stats(const struct snapshot *snapshot, unsigned version, uint64_t exit_seq, struct strbuf *out,
		    uint64_t *ret_exit_seq, unsigned *ret_truncated)
{
	struct lines live, exited;
	struct strbuf devices;
	uint16_t gpus[ATOP_GPUS_MAX];
	size_t ends[ATOP_GPUS_MAX], budget;
	unsigned n = list_gpus(snapshot, gpus), live_n = 0;
	int r = lines_init(&live, snapshot->processes_n);
	int r2 = lines_init(&exited, snapshot->exited_n);

	version = version == 1 ? 1 : NEWEST_VERSION;
	strbuf_init(&devices, 0);
	for (unsigned i = 0; i < n; i++) {
		add_gpu(&devices, &snapshot->entities[gpus[i]]);
		ends[i] = devices.len;
	}
	if (r >= 0)
		r = r2 < 0 ? r2 : add_live(&live, snapshot, version, gpus, n, &live_n);
	if (r >= 0)
		r = add_exited(&exited, snapshot, version, gpus, n, exit_seq);
	if (r >= 0 && devices.failed)
		r = -ENOMEM;
	if (r < 0)
		goto finish;
	budget = ATOP_ANSWER_MAX - devices.len;
	budget -= lines_take(&exited, MAX(budget / 2, budget - MIN(budget, live.text.len)));
	lines_take(&live, budget);
	for (unsigned i = 0; i < n; i++) {
		size_t at = i > 0 ? ends[i - 1] : 0;

		strbuf_add(out, devices.data + at, ends[i] - at);
		lines_write(&live, gpus[i], out);
		lines_write(&exited, gpus[i], out);
	}
	r = result(out);
	if (r >= 0) {
		*ret_exit_seq = settled(&exited, snapshot, exit_seq);
		*ret_truncated = live_n - live.taken;
	}
finish:
	strbuf_done(&devices);
	lines_done(&live);
	lines_done(&exited);
	return r;
}
