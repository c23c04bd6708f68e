// SPDX-License-Identifier: Apache-2.0
/* The true work of GPUs in a timeline, as CUPTI measured it, and the arrows to it from launches. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cubin/name.h"
#include "pipeline/timeline_private.h"

enum { THREADS_MAX = 64, LAUNCHES = 8192, GPU_NAME = 64, TRACK_NAME = GPU_NAME + 32, NAME_MAX_BYTES = 4096 };

/* A thread's newest launches, in their order. */
struct thread_launches {
	uint64_t key; /* of thread_by */
	uint64_t newest_ns;
	uint64_t n; /* in all */
	struct {
		uint64_t begin_ns, end_ns;
		uint32_t flow; /* 0: none */
	} at[LAUNCHES];
};

struct timeline_works {
	struct hashmap process_by; /* of launches by PID, which may have ended when their work is told */
	struct hashmap thread_by; /* by process and thread: index */
	struct thread_launches *threads[THREADS_MAX];
	uint32_t threads_n;
	struct hashmap lane_by, name_by;
};

bool timeline_work_expected(const struct trace_timeline *t, uint32_t tgid)
{
	return t->measured && measured_has(t->measured, tgid);
}

bool timeline_work_certain(const struct trace_timeline *t, uint32_t tgid)
{
	return t->measured && measured_is_on(t->measured, tgid);
}

/* The one whose newest launch is the oldest. */
static struct thread_launches *oldest_thread(struct timeline_works *works, uint32_t *ret_index)
{
	struct thread_launches *oldest = NULL;

	for (uint32_t i = 0; i < works->threads_n; i++)
		if (!oldest || works->threads[i]->newest_ns < oldest->newest_ns) {
			oldest = works->threads[i];
			*ret_index = i;
		}
	return oldest;
}

static struct thread_launches *thread_new(struct timeline_works *works, uint64_t key)
{
	uint32_t index = works->threads_n;
	struct thread_launches *thread;

	if (works->threads_n == THREADS_MAX) {
		thread = oldest_thread(works, &index);
		hashmap_del(&works->thread_by, thread->key);
	} else {
		thread = works->threads[index] = malloc(sizeof(*thread));
		works->threads_n += thread != NULL;
	}
	if (!thread)
		return NULL;
	thread->key = key;
	thread->n = thread->newest_ns = 0;
	return hashmap_put(&works->thread_by, key, index) < 0 ? NULL : thread;
}

static struct thread_launches *thread_of(struct timeline_works *works, uint32_t process, uint32_t tid,
					 bool make)
{
	uint64_t key = timeline_key_in(process, tid);
	uint32_t index;

	if (hashmap_get(&works->thread_by, key, &index))
		return works->threads[index];
	return make ? thread_new(works, key) : NULL;
}

uint64_t timeline_work_launch(struct trace_timeline *t, uint32_t process, const struct trace_header *header,
			      const struct timeline_event *event)
{
	struct thread_launches *thread = thread_of(t->works, process, header->tid, true);
	uint64_t flow = t->flows < UINT32_MAX ? t->flows + 1 : 0;

	if (!thread || !flow || hashmap_put(&t->works->process_by, header->tgid, process) < 0)
		return 0;
	thread->newest_ns = event->begin_ns;
	thread->at[thread->n % LAUNCHES].begin_ns = event->begin_ns;
	thread->at[thread->n % LAUNCHES].end_ns = event->end_ns;
	thread->at[thread->n++ % LAUNCHES].flow = (uint32_t)flow;
	return t->flows = flow;
}

/* The launch that was under way at @time_ns; 0: not known. */
static uint64_t flow_at(const struct thread_launches *thread, uint64_t time_ns)
{
	uint64_t low = thread->n > LAUNCHES ? thread->n - LAUNCHES : 0, high = thread->n;

	/* The last that began before it. */
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (thread->at[middle % LAUNCHES].begin_ns <= time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || low + LAUNCHES <= thread->n || thread->at[(low - 1) % LAUNCHES].end_ns < time_ns)
		return 0;
	return thread->at[(low - 1) % LAUNCHES].flow;
}

static struct timeline_lane *lane_of(struct trace_timeline *t, uint32_t process, const char *uuid,
				     const struct cupti_work *work)
{
	char gpu[GPU_NAME], name[TRACK_NAME];

	trace_timeline_gpu_name(t, uuid, gpu, sizeof(gpu));
	snprintf(name, sizeof(name), "%s measured, stream %" PRIu32, gpu, work->stream);
	return timeline_lane(t, process, &t->works->lane_by, (uint64_t)work->device << 32 | work->stream,
			     name);
}

/* Of a kernel: its brief name, made once. */
static bool work_name(struct trace_timeline *t, const struct cupti_work *work, const char *symbol,
		      uint32_t *ret_text)
{
	static const char *const names[CUPTI_WORKS] = { "kernel", "graph", "copy", "set" };
	char full[NAME_MAX_BYTES], brief[NAME_MAX_BYTES];

	if (work->kind != CUPTI_KERNEL || !*symbol)
		return trace_timeline_key(t, names[work->kind], ret_text);
	if (hashmap_get(&t->works->name_by, work->name, ret_text))
		return true;
	kernel_name_demangle(symbol, full, sizeof(full));
	kernel_name_brief(full, brief, sizeof(brief));
	return trace_timeline_text(t, *brief ? brief : full, ret_text) &&
	       hashmap_put(&t->works->name_by, work->name, *ret_text) == 0;
}

static void put_work(struct trace_timeline *t, struct timeline_event *event, const char *uuid,
		     const struct cupti_work *work)
{
	uint32_t device;

	timeline_put_text_arg(t, event, "times", "measured by CUPTI");
	timeline_put_arg(t, event, "duration_ns", TIMELINE_UNSIGNED, work->end_ns - work->start_ns);
	timeline_put_arg(t, event, "correlation", TIMELINE_UNSIGNED, work->correlation);
	if (trace_timeline_gpu_index(t, uuid, &device))
		timeline_put_arg(t, event, "device", TIMELINE_UNSIGNED, device);
	if (work->bytes > 0)
		timeline_put_arg(t, event, "bytes", TIMELINE_UNSIGNED, work->bytes);
	if (work->graph > 0)
		timeline_put_arg(t, event, "graph", TIMELINE_UNSIGNED, work->graph);
	if (work->launch_ns > 0 && work->launch_ns <= work->start_ns)
		timeline_put_arg(t, event, "queued_ns", TIMELINE_UNSIGNED, work->start_ns - work->launch_ns);
}

/* It may have ended. */
static bool timeline_work_process(struct trace_timeline *t, uint32_t pid, uint32_t *ret_process)
{
	return hashmap_get(&t->works->process_by, pid, ret_process) ||
	       timeline_process_of(t, pid, ret_process);
}

int timeline_work(const struct measured_work *told, void *userdata)
{
	struct trace_timeline *t = userdata;
	const struct cupti_work *work = told->work;
	struct timeline_event event = { .type = TIMELINE_SLICE,
					.category = TIMELINE_GPU,
					.begin_ns = work->start_ns,
					.end_ns = work->end_ns };
	const struct thread_launches *thread;
	struct timeline_lane *lane = NULL;
	uint32_t process;

	if (t->pid && told->tgid != t->pid)
		return 0;
	if (timeline_work_process(t, told->tgid, &process))
		lane = lane_of(t, process, told->uuid, work);
	if (!lane || !work_name(t, work, told->symbol, &event.name)) {
		t->missing.dropped++;
		return 0;
	}
	thread = work->launch_ns > 0 ? thread_of(t->works, process, work->tid, false) : NULL;
	if (thread)
		event.other_flow = flow_at(thread, work->launch_ns);
	put_work(t, &event, told->uuid, work);
	timeline_add_to_lane(t, lane, &event);
	return 0;
}

void timeline_measured(uint32_t pid, struct time_part part, void *userdata)
{
	struct trace_timeline *t = userdata;
	struct timeline_event event = { .type = TIMELINE_SLICE,
					.category = TIMELINE_TRACING,
					.begin_ns = part.begin_ns,
					.end_ns = part.end_ns };
	struct timeline_lane *lane = NULL;
	uint32_t process;

	if (t->pid && pid != t->pid)
		return;
	if (timeline_work_process(t, pid, &process))
		lane = timeline_lane(t, process, &t->works->lane_by, UINT64_MAX, TIMELINE_MEASURED);
	if (lane && trace_timeline_key(t, "measured", &event.name))
		timeline_add_to_lane(t, lane, &event);
	else
		t->missing.dropped++;
}

int timeline_works_new(struct trace_timeline *t)
{
	t->works = calloc(1, sizeof(*t->works));
	return t->works ? 0 : -ENOMEM;
}

void timeline_works_forget(struct trace_timeline *t)
{
	struct timeline_works *works = t->works;

	if (!works)
		return;
	hashmap_clear(&works->process_by);
	hashmap_clear(&works->thread_by);
	hashmap_clear(&works->lane_by);
	hashmap_clear(&works->name_by);
	while (works->threads_n > 0)
		free(works->threads[--works->threads_n]);
}

void timeline_works_free(struct trace_timeline *t)
{
	if (!t->works)
		return;
	timeline_works_forget(t);
	hashmap_done(&t->works->process_by);
	hashmap_done(&t->works->thread_by);
	hashmap_done(&t->works->lane_by);
	hashmap_done(&t->works->name_by);
	free(t->works);
}
