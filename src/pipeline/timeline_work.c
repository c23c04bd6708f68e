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

static struct thread_launches *thread_of(struct timeline_works *works, uint32_t process, uint32_t tid,
					 bool make)
{
	uint64_t key = timeline_key_in(process, tid);
	uint32_t index;

	if (hashmap_get(&works->thread_by, key, &index))
		return works->threads[index];
	if (!make || works->threads_n == THREADS_MAX)
		return NULL;
	works->threads[works->threads_n] = calloc(1, sizeof(*works->threads[0]));
	if (!works->threads[works->threads_n] || hashmap_put(&works->thread_by, key, works->threads_n) < 0) {
		free(works->threads[works->threads_n]);
		return NULL;
	}
	return works->threads[works->threads_n++];
}

uint64_t timeline_work_launch(struct trace_timeline *t, uint32_t process, const struct trace_header *header,
			      const struct timeline_event *event)
{
	struct thread_launches *thread = thread_of(t->works, process, header->tid, true);
	uint64_t flow = t->flows < UINT32_MAX ? t->flows + 1 : 0;

	if (!thread || !flow || hashmap_put(&t->works->process_by, header->tgid, process) < 0)
		return 0;
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

void trace_timeline_work(struct trace_timeline *t, uint32_t pid, const char *uuid,
			 const struct cupti_work *work, const char *symbol)
{
	struct timeline_event event = { .type = TIMELINE_SLICE,
					.category = TIMELINE_GPU,
					.begin_ns = work->start_ns,
					.end_ns = work->end_ns };
	const struct thread_launches *thread;
	struct timeline_lane *lane = NULL;
	uint32_t process;

	if (hashmap_get(&t->works->process_by, pid, &process) || timeline_process_of(t, pid, &process))
		lane = lane_of(t, process, uuid, work);
	if (!lane || !work_name(t, work, symbol, &event.name)) {
		t->missing.dropped++;
		return;
	}
	thread = work->launch_ns > 0 ? thread_of(t->works, process, work->tid, false) : NULL;
	if (thread)
		event.flow = flow_at(thread, work->launch_ns);
	put_work(t, &event, uuid, work);
	timeline_add_to_lane(t, lane, &event);
}

int trace_timeline_expect_work(struct trace_timeline *t)
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
