// SPDX-License-Identifier: Apache-2.0
#include "cmd/analyze/file.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/hashmap.h"
#include "base/text.h"
#include "model/nccl.h"
#include "pipeline/analysis_call.h"
#include "pipeline/analysis_late.h"
#include "pipeline/timeline.h"

enum { DEVICE_MAX = 96, READY_MAX = 8 * ANALYSIS_LATE_COMMAND };
#define TICK_NS (uint64_t)NSEC_PER_SEC

static const struct {
	const char *name;
	enum analysis_counter counter;
} counters[] = {
#define COUNTER(name_, counter_) { name_, ANALYSIS_COUNTER_##counter_ },
#include "cmd/analyze/counters.def"
#undef COUNTER
};

struct analyze_file {
	struct analysis *analysis;
	struct timeline_reader *reader;
	int fd;
	uint32_t node;
	struct hashmap names; /* texts of the analysis, by those of the reader */
	/* What PyTorch's allocators hold: of a device by its track, of all of a process by the process's. */
	struct hashmap held_by[2], held_of[2]; /* index in `held`; [1]: reserved */
	double *held;
	uint32_t held_n;
	uint64_t lost;
	/* What was measured is told later than what it is of: events are put in their order. */
	struct measured *measured;
	struct analysis_late late;
	uint64_t newest_ns, ticked_ns;
	struct row_list ready; /* struct analysis_event, of which @taken were */
	uint32_t taken;
};

/* ---- texts ---- */

static const char *text_at(const struct analyze_file *file, uint32_t text)
{
	return timeline_reader_text(file->reader, text);
}

/* 0 where there is no room. */
static uint32_t name_number(struct analyze_file *file, uint32_t text)
{
	uint32_t name;

	if (hashmap_get(&file->names, text, &name))
		return name;
	if (analysis_text(file->analysis, text_at(file, text), &name) < 0)
		return 0;
	hashmap_put(&file->names, text, name);
	return name;
}

/* Of a kernel: its own name is that of its work. 0: no room. */
static uint32_t launch_name(struct analyze_file *file, uint32_t kernel)
{
	uint64_t key = UINT64_C(1) << 32 | kernel;
	char text[ANALYSIS_TEXT_MAX];
	uint32_t name;

	if (hashmap_get(&file->names, key, &name))
		return name;
	snprintf(text, sizeof(text), "launch of %.*s", (int)sizeof(text) - 16, text_at(file, kernel));
	if (analysis_text(file->analysis, text, &name) < 0)
		return 0;
	hashmap_put(&file->names, key, name);
	return name;
}

static const struct timeline_arg *arg_of(const struct analyze_file *file, const struct timeline_event *event,
					 const char *key)
{
	for (unsigned i = 0; i < event->args_n; i++)
		if (STRV_EQ(text_at(file, event->args[i].key), key))
			return &event->args[i];
	return NULL;
}

/* 0: it has none. */
static uint64_t number_arg(const struct analyze_file *file, const struct timeline_event *event,
			   const char *key)
{
	const struct timeline_arg *arg = arg_of(file, event, key);

	return arg && arg->type != TIMELINE_TEXT ? arg->value : 0;
}

static const char *text_arg(const struct analyze_file *file, const struct timeline_event *event,
			    const char *key)
{
	const struct timeline_arg *arg = arg_of(file, event, key);

	return arg && arg->type == TIMELINE_TEXT ? text_at(file, (uint32_t)arg->value) : NULL;
}

/* ---- tracks ---- */

static const struct timeline_track *parent_of(const struct analyze_file *file,
					      const struct timeline_track *track)
{
	return track->parent == TIMELINE_NONE ? NULL : timeline_reader_track(file->reader, track->parent);
}

/* "GPU 0 stream 0x7f..", "GPU 0 NVIDIA H100", "GPU 1 MIG-12345678..": what stands for the device. */
static uint32_t gpu_of(struct analyze_file *file, const char *track)
{
	char device[DEVICE_MAX];
	uint32_t number;
	size_t n = strlen("GPU ");

	if (strncmp(track, "GPU ", n) != 0)
		return 0;
	n += strcspn(track + n, " ");
	if (strncmp(track + n, " MIG-", strlen(" MIG-")) == 0)
		n += MIN(strcspn(track + n + 1, " "), (size_t)12) + 1;
	snprintf(device, sizeof(device), "%.*s", (int)MIN(n, sizeof(device) - 1), track);
	return analysis_text(file->analysis, device, &number) < 0 ? 0 : number;
}

/* ---- calls of threads ---- */

static const struct probe *probe_named(const char *name)
{
	static const enum probe_library libraries[] = { PROBE_CUDART, PROBE_CUDA, PROBE_NCCL };

	for (size_t i = 0; i < ARRAY_SIZE(libraries); i++) {
		const struct probe *probe = probe_find(libraries[i], name);

		if (probe)
			return probe;
	}
	return NULL;
}

/* "128x2x1" and the like: threads of a grid's or block's dimensions; 0: not known. */
static uint64_t product(const char *dimensions)
{
	uint64_t n[3];

	if (!dimensions || sscanf(dimensions, "%" SCNu64 "x%" SCNu64 "x%" SCNu64, &n[0], &n[1], &n[2]) != 3)
		return 0;
	for (unsigned i = 0; i < 3; i++)
		if (n[i] > UINT32_MAX)
			return 0;
	return n[0] * n[1] * n[2];
}

static void fill_launch(struct analyze_file *file, const struct timeline_event *from,
			struct analysis_event *event)
{
	const struct timeline_arg *kernel = arg_of(file, from, "kernel");
	uint64_t grid = product(text_arg(file, from, "grid")), block = product(text_arg(file, from, "block"));

	if (kernel && kernel->type == TIMELINE_TEXT)
		event->name = launch_name(file, (uint32_t)kernel->value);
	if (__builtin_mul_overflow(grid, block, &event->threads))
		event->threads = 0;
}

static uint32_t datatype_of(const char *name)
{
	for (uint32_t i = 0; name && nccl_type_name(i); i++)
		if (STRV_EQ(nccl_type_name(i), name))
			return i;
	return UINT32_MAX;
}

static void fill_collective(struct analyze_file *file, const struct timeline_event *from,
			    struct analysis_event *event)
{
	const struct timeline_arg *rank = arg_of(file, from, "rank");

	event->communicator = number_arg(file, from, "communicator");
	event->sequence = number_arg(file, from, "sequence");
	event->ranks = (uint32_t)number_arg(file, from, "ranks");
	event->rank = rank ? (int32_t)rank->value : -1;
}

static bool of_call(struct analyze_file *file, const struct timeline_event *from,
		    struct analysis_event *event)
{
	const struct probe *probe = probe_named(text_at(file, from->name));
	const char *type = text_arg(file, from, "type");
	struct analysis_call call = {
		.probe = probe,
		.address = number_arg(file, from, "addr"),
		.bytes = number_arg(file, from, "bytes"),
		.stream = number_arg(file, from, "stream"),
		.kind = type ? datatype_of(type) : (uint32_t)number_arg(file, from, "kind"),
		.result = (int32_t)number_arg(file, from, "result"),
	};

	if (!probe || !analysis_of_call(&call, event))
		return false;
	if (event->kind == ANALYSIS_LAUNCH)
		fill_launch(file, from, event);
	if (event->kind == ANALYSIS_COLLECTIVE)
		fill_collective(file, from, event);
	return true;
}

/* What is not the call of a probed function, by how its name begins. */
static bool of_name(const struct analyze_file *file, const struct timeline_event *from,
		    struct analysis_event *event)
{
	static const struct {
		const char *name;
		enum analysis_kind kind;
	} kinds[] = {
		{ "wait for the GIL", ANALYSIS_GIL },
		{ "garbage collection", ANALYSIS_GC },
	};
	const char *name = text_at(file, from->name);

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (strncmp(name, kinds[i].name, strlen(kinds[i].name)) == 0) {
			event->kind = (uint8_t)kinds[i].kind;
			return true;
		}
	return analysis_of_range(name, event);
}

static bool of_thread(struct analyze_file *file, const struct timeline_event *from,
		      const struct timeline_track *track, struct analysis_event *event)
{
	const struct timeline_track *process = parent_of(file, track);

	event->pid = track->pid ? track->pid : process ? process->pid : 0;
	event->tid = track->tid;
	if (of_name(file, from, event)) {
		/* Waits that are told together. */
		event->end_ns += event->kind == ANALYSIS_GIL ? number_arg(file, from, "total_ns") : 0;
		return true;
	}
	return of_call(file, from, event);
}

/* ---- devices ---- */

static void take_measured(const struct analyze_file *file, const struct timeline_event *from,
			  const struct timeline_track *process)
{
	_cleanup_(gpu_works_freep) struct gpu_works *works = gpu_works_new(1, NULL);
	struct cupti_slice *slice;

	if (!works)
		return;
	works->n = 1;
	works->list[0] = (struct gpu_work){ .pid = process->pid };
	slice = &works->list[0].record.slice;
	slice->kind = CUPTI_SLICE;
	slice->start_ns = from->begin_ns;
	slice->end_ns = from->end_ns;
	measured_take(file->measured, works, from->end_ns);
}

static bool of_stream(struct analyze_file *file, const struct timeline_event *from,
		      const struct timeline_track *track, const struct timeline_track *process,
		      struct analysis_event *event)
{
	bool is_true = text_arg(file, from, "times");

	if (STRV_EQ(text_at(file, track->name), TIMELINE_MEASURED)) {
		take_measured(file, from, process);
		return false;
	}
	/* Estimates of time that is not known to be measured are not left out: no work counts twice. */
	if (is_true && !measured_has(file->measured, process->pid))
		return false;
	event->kind = ANALYSIS_WORK;
	event->flags = is_true ? ANALYSIS_TRUE : ANALYSIS_ESTIMATED;
	event->pid = process->pid;
	event->device = gpu_of(file, text_at(file, track->name));
	event->stream = (uint64_t)from->track + 1;
	event->bytes = number_arg(file, from, "bytes");
	event->threads = number_arg(file, from, "threads");
	return event->device != 0;
}

static bool of_gpu(struct analyze_file *file, const struct timeline_event *from, const char *gpu,
		   struct analysis_event *event)
{
	const char *name = text_at(file, from->name);
	uint64_t code;

	event->device = gpu_of(file, gpu);
	if (from->type == TIMELINE_SLICE) {
		event->kind = ANALYSIS_THROTTLE;
		return event->device != 0;
	}
	if (strncmp(name, "XID ", 4) != 0 || parse_u64(name + 4, &code) < 0)
		return false;
	event->kind = ANALYSIS_XID;
	event->count = code;
	return event->device != 0;
}

/* NULL: no memory for it. */
static double *held_at(struct analyze_file *file, struct hashmap *by, uint32_t track)
{
	uint32_t index;
	double *grown;

	if (hashmap_get(by, track, &index))
		return &file->held[index];
	grown = reallocarray(file->held, file->held_n + 1, sizeof(*grown));
	if (!grown)
		return NULL;
	file->held = grown;
	if (hashmap_put(by, track, file->held_n) < 0)
		return NULL;
	file->held[file->held_n] = 0;
	return &file->held[file->held_n++];
}

/* A curve of a process's allocator: the event is of all of its devices. */
static bool of_allocator(struct analyze_file *file, const struct timeline_event *from,
			 const struct timeline_track *track, struct analysis_event *event)
{
	const char *name = text_at(file, track->name);
	bool reserved = strstr(name, " reserved, bytes");
	double *sum, *own, before;

	if (strncmp(name, "cuda:", 5) != 0 || (!reserved && !strstr(name, " allocated, bytes")))
		return false;
	own = isfinite(from->value) ? held_at(file, &file->held_by[reserved], from->track) : NULL;
	if (!own)
		return false;
	before = *own;
	*own = from->value;
	sum = held_at(file, &file->held_of[reserved], track->parent);
	if (!sum)
		return false;
	*sum += from->value - before;
	event->value = *sum;
	event->counter = reserved ? ANALYSIS_COUNTER_TORCH_RESERVED : ANALYSIS_COUNTER_TORCH_ALLOCATED;
	return true;
}

static bool of_value(struct analyze_file *file, const struct timeline_event *from,
		     const struct timeline_track *track, struct analysis_event *event)
{
	const struct timeline_track *parent = parent_of(file, track);
	const char *name = text_at(file, track->name);

	event->kind = ANALYSIS_COUNTER;
	event->value = from->value;
	if (!parent)
		return false;
	if (parent->kind == TIMELINE_PROCESS) {
		event->pid = parent->pid;
		return of_allocator(file, from, track, event);
	}
	event->device = gpu_of(file, text_at(file, parent->name));
	for (size_t i = 0; event->device && i < ARRAY_SIZE(counters); i++)
		if (STRV_EQ(counters[i].name, name)) {
			event->counter = (uint8_t)counters[i].counter;
			return true;
		}
	return false;
}

/* ---- stacks ---- */

/* Each file has numbers of its own. */
static uint64_t stack_of(struct analyze_file *file, const struct timeline_event *from)
{
	const uint64_t parts[] = { (uintptr_t)file, from->stack };
	uint64_t key = hash_bytes_secret(parts, sizeof(parts)), stack = 0;
	struct analysis_place places[ANALYSIS_STACK_FRAMES];
	struct timeline_frame frame;
	uint32_t n = 0;

	if (from->stack == 0 || analysis_stack_known(file->analysis, key, &stack))
		return stack;
	while (n < ANALYSIS_STACK_FRAMES && timeline_reader_frame(file->reader, from->stack, n, &frame))
		places[n++] = (struct analysis_place){ text_at(file, frame.function),
						       text_at(file, frame.file), frame.line };
	return analysis_stack(file->analysis, 0, key, places, n, &stack) < 0 ? 0 : stack;
}

/* ---- events ---- */

static void note_lost(struct analyze_file *file, const struct timeline_event *from)
{
	uint64_t n;

	if (from->category == TIMELINE_TRACING && strstr(text_at(file, from->name), " events lost") &&
	    sscanf(text_at(file, from->name), "%" SCNu64, &n) == 1)
		file->lost += n;
}

static bool of_process(const struct analyze_file *file, const struct timeline_event *from,
		       const struct timeline_track *track, struct analysis_event *event)
{
	event->kind = ANALYSIS_EXIT;
	event->pid = track->pid;
	return from->type == TIMELINE_INSTANT && STRV_EQ(text_at(file, from->name), "process ended");
}

/* False: an analysis has no use for it. */
static bool of_event(struct analyze_file *file, const struct timeline_event *from,
		     struct analysis_event *event)
{
	const struct timeline_track *track = timeline_reader_track(file->reader, from->track),
				    *parent = parent_of(file, track);

	*event = (struct analysis_event){ .node = file->node,
					  .begin_ns = from->begin_ns,
					  .end_ns = from->type == TIMELINE_SLICE ? from->end_ns :
										   from->begin_ns,
					  .rank = -1 };
	if (from->type == TIMELINE_VALUE)
		return of_value(file, from, track, event);
	note_lost(file, from);
	event->name = name_number(file, from->name);
	event->stack = stack_of(file, from);
	switch (track->kind) {
	case TIMELINE_THREAD:
		return of_thread(file, from, track, event);
	case TIMELINE_PROCESS:
		return of_process(file, from, track, event);
	case TIMELINE_CHILD:
		/* Has copies of the collectives that threads call. */
		if (strncmp(text_at(file, track->name), "communicator ", strlen("communicator ")) == 0)
			return false;
		if (parent && parent->kind == TIMELINE_PROCESS)
			return of_stream(file, from, track, parent, event);
		return parent && of_gpu(file, from, text_at(file, parent->name), event);
	default:
		return of_gpu(file, from, text_at(file, track->name), event);
	}
}

static int put_ready(const struct analysis_event *event, void *userdata)
{
	struct analyze_file *file = userdata;
	struct analysis_event *ready = row_list_add(&file->ready);

	if (!ready)
		return -ENOMEM;
	*ready = *event;
	return 0;
}

static int put_in_order(struct analyze_file *file, const struct analysis_event *event)
{
	int r = event->flags & ANALYSIS_TRUE ? analysis_late_work(&file->late, event) :
					       analysis_late_add(&file->late, event);

	file->newest_ns = MAX(file->newest_ns, event->end_ns);
	if (file->newest_ns - file->ticked_ns >= TICK_NS) {
		analysis_late_tick(&file->late, file->newest_ns);
		file->ticked_ns = file->newest_ns;
	}
	return r == -ENOBUFS ? 0 : r;
}

/* 1, or as timeline_read_next(). */
static int read_more(struct analyze_file *file)
{
	struct timeline_event from;
	struct analysis_event event;
	int r = timeline_read_next(file->reader, &from);

	if (r == 0)
		analysis_late_tick(&file->late, UINT64_MAX);
	if (r > 0 && of_event(file, &from, &event))
		r = put_in_order(file, &event) < 0 ? -ENOMEM : 1;
	return r;
}

int analyze_file_next(struct analyze_file *file, struct analysis_event *ret_event)
{
	int r = 1;

	while (r > 0 && file->taken == file->ready.n) {
		file->taken = 0;
		row_list_clear(&file->ready);
		r = read_more(file);
	}
	if (file->taken == file->ready.n)
		return r;
	*ret_event = ((const struct analysis_event *)file->ready.list)[file->taken++];
	return 1;
}

/* ---- start and end ---- */

int analyze_file_new(const char *path, struct analysis *analysis, uint32_t node,
		     struct analyze_file **ret_file)
{
	_cleanup_(analyze_file_freep) struct analyze_file *file = calloc(1, sizeof(*file));
	const struct measured_config measured = { 0 };
	int r;

	if (!file)
		return -ENOMEM;
	file->analysis = analysis;
	file->node = node;
	file->fd = -1;
	file->ready = (struct row_list){ .size = sizeof(struct analysis_event), .max = READY_MAX };
	r = measured_new(&measured, &file->measured);
	if (r < 0)
		return r;
	analysis_late_init(&file->late, file->measured, ANALYSIS_LATE_COMMAND, put_ready, file);
	r = fd_open_regular(path, &file->fd);
	if (r == 0)
		r = timeline_reader_new(file->fd, &file->reader);
	if (r < 0)
		return r;
	*ret_file = TAKE_PTR(file);
	return 0;
}

void analyze_file_free(struct analyze_file *file)
{
	if (!file)
		return;
	timeline_reader_free(file->reader);
	hashmap_done(&file->names);
	for (unsigned i = 0; i < 2; i++) {
		hashmap_done(&file->held_by[i]);
		hashmap_done(&file->held_of[i]);
	}
	free(file->held);
	analysis_late_done(&file->late);
	measured_free(file->measured);
	row_list_done(&file->ready);
	if (file->fd >= 0)
		close(file->fd);
	free(file);
}

const struct timeline_read *analyze_file_status(const struct analyze_file *file)
{
	return timeline_read_status(file->reader);
}

uint64_t analyze_file_lost(const struct analyze_file *file)
{
	return file->lost;
}

int64_t analyze_file_real_offset(const struct analyze_file *file)
{
	return timeline_reader_real_offset(file->reader);
}
