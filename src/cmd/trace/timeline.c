// SPDX-License-Identifier: Apache-2.0
#include "cmd/trace/timeline.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/raised.h"
#include "cmd/trace/raw_event.h"
#include "cmd/trace/timeline_private.h"
#include "torch/name.h"
#include "trace/probe.h"

enum { GPU_NAME = 64, TRACK_NAME = GPU_NAME + 32 };

static const uint8_t categories[PROBE_LIBRARIES] = {
	[PROBE_CUDA] = TIMELINE_CUDA,     [PROBE_CUDART] = TIMELINE_CUDA,   [PROBE_CUBLAS] = TIMELINE_BLAS,
	[PROBE_CUBLASLT] = TIMELINE_BLAS, [PROBE_CUDNN] = TIMELINE_BLAS,    [PROBE_NCCL] = TIMELINE_NCCL,
	[PROBE_TORCH] = TIMELINE_TORCH,   [PROBE_PYTHON] = TIMELINE_PYTHON, [PROBE_USER] = TIMELINE_USER,
};

bool trace_timeline_format(const char *path, enum timeline_format *ret_format)
{
	static const struct {
		const char *end;
		enum timeline_format format;
	} ends[] = { { ".pftrace", TIMELINE_PERFETTO }, { ".json", TIMELINE_CHROME } };
	size_t n = strlen(path);

	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		size_t end = strlen(ends[i].end);

		if (n > end && STRV_EQ(path + n - end, ends[i].end)) {
			*ret_format = ends[i].format;
			return true;
		}
	}
	return false;
}

/* ---- texts, tracks, events ---- */

void trace_timeline_add(struct trace_timeline *t, const struct timeline_event *event)
{
	if (timeline_add(t->timeline, event) < 0)
		t->dropped++;
}

bool trace_timeline_text(struct trace_timeline *t, const char *text, uint32_t *ret_text)
{
	return timeline_text(t->timeline, text, ret_text) == 0;
}

bool trace_timeline_key(struct trace_timeline *t, const char *literal, uint32_t *ret_text)
{
	uint64_t key = (uintptr_t)literal;

	if (hashmap_get(&t->key_by, key, ret_text))
		return true;
	return trace_timeline_text(t, literal, ret_text) && hashmap_put(&t->key_by, key, *ret_text) == 0;
}

bool trace_timeline_track(struct trace_timeline *t, const struct timeline_track *track, uint32_t *ret_track)
{
	return timeline_track(t->timeline, track, ret_track) == 0;
}

static uint64_t key_in(uint32_t process, uint64_t id)
{
	const uint64_t both[] = { process, id };

	return hash_bytes_secret(both, sizeof(both));
}

static struct timeline_process *process_at(const struct trace_timeline *t, uint32_t index)
{
	return &((struct timeline_process *)t->processes.list)[index];
}

static struct timeline_stream *stream_at(const struct trace_timeline *t, uint32_t index)
{
	return &((struct timeline_stream *)t->streams.list)[index];
}

static bool process_new(struct trace_timeline *t, uint32_t tgid, const char *name, uint32_t *ret_process)
{
	struct timeline_track track = { .kind = TIMELINE_PROCESS, .parent = TIMELINE_NONE, .pid = tgid };
	struct timeline_process *process = row_list_add(&t->processes);

	if (!process)
		return false;
	if (!trace_timeline_text(t, name, &track.name) || !trace_timeline_track(t, &track, &process->track) ||
	    hashmap_put(&t->process_by, tgid, t->processes.n - 1) < 0) {
		t->processes.n--;
		return false;
	}
	*ret_process = t->processes.n - 1;
	return true;
}

/* Its name while it runs; else "". */
static void thread_name(uint32_t tgid, uint32_t tid, char *name, size_t size)
{
	char path[64];
	size_t n = 0;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/task/%" PRIu32 "/comm", tgid, tid);
	if (read_file(path, name, size, &n) < 0)
		n = 0;
	name[n > 0 ? n - 1 : 0] = '\0';
}

/* Index of the process; its first event, which has the name, may have been lost. */
static bool process_of(struct trace_timeline *t, uint32_t tgid, uint32_t *ret_process)
{
	char name[TRACE_COMM + 1];

	if (hashmap_get(&t->process_by, tgid, ret_process))
		return true;
	thread_name(tgid, tgid, name, sizeof(name));
	return process_new(t, tgid, name, ret_process);
}

/* The first event of a process, or of what it has become by exec. */
static bool process_begins(struct trace_timeline *t, const struct trace_process *event)
{
	char name[TRACE_COMM + 1] = "";
	uint32_t process;

	memcpy(name, event->comm, TRACE_COMM);
	if (hashmap_get(&t->process_by, event->header.tgid, &process)) {
		struct timeline_process *known = process_at(t, process);

		if (!known->incarnation || known->incarnation == event->incarnation) {
			known->incarnation = event->incarnation;
			return true;
		}
	}
	if (!process_new(t, event->header.tgid, name, &process))
		return false;
	process_at(t, process)->incarnation = event->incarnation;
	return true;
}

static void timeline_over(uint32_t tgid, uint64_t incarnation, void *userdata)
{
	struct trace_timeline *t = userdata;
	uint32_t process;

	/* Its successor may have begun. */
	if (hashmap_get(&t->process_by, tgid, &process) &&
	    (!process_at(t, process)->incarnation || process_at(t, process)->incarnation == incarnation))
		hashmap_del(&t->process_by, tgid);
}

static bool has_track(const struct trace_timeline *t, uint32_t process)
{
	return process_at(t, process)->tracks < PROCESS_TRACKS_MAX;
}

bool timeline_child(struct trace_timeline *t, uint32_t process, struct timeline_track *track,
		    const char *name, struct hashmap *by, uint64_t id, uint32_t *ret_track)
{
	uint64_t key = key_in(process, id);

	if (hashmap_get(by, key, ret_track))
		return true;
	track->parent = process_at(t, process)->track;
	if (!has_track(t, process) || !trace_timeline_text(t, name, &track->name) ||
	    !trace_timeline_track(t, track, ret_track) || hashmap_put(by, key, *ret_track) < 0)
		return false;
	process_at(t, process)->tracks++;
	return true;
}

static bool thread_track(struct trace_timeline *t, const struct trace_header *event, uint32_t *ret_process,
			 uint32_t *ret_track)
{
	struct timeline_track track = { .kind = TIMELINE_THREAD, .pid = event->tgid, .tid = event->tid };
	char name[TRACE_COMM + 1];

	if (!process_of(t, event->tgid, ret_process))
		return false;
	if (hashmap_get(&t->thread_by, key_in(*ret_process, event->tid), ret_track))
		return true;
	if (!has_track(t, *ret_process))
		return false;
	thread_name(event->tgid, event->tid, name, sizeof(name));
	return timeline_child(t, *ret_process, &track, name, &t->thread_by, event->tid, ret_track);
}

static void mark(struct trace_timeline *t, uint32_t track, const char *text, uint64_t time_ns)
{
	struct timeline_event event = {
		.type = TIMELINE_INSTANT, .category = TIMELINE_TRACING, .track = track, .begin_ns = time_ns
	};

	if (trace_timeline_text(t, text, &event.name))
		trace_timeline_add(t, &event);
	else
		t->dropped++;
}

static void mark_missing(struct trace_timeline *t, const char *text)
{
	struct timeline_track track = { .kind = TIMELINE_GROUP, .parent = TIMELINE_NONE };

	if (t->marks == TIMELINE_NONE &&
	    (!trace_timeline_text(t, "gpusonde", &track.name) || !trace_timeline_track(t, &track, &t->marks)))
		t->dropped++;
	else
		mark(t, t->marks, text, (uint64_t)clock_mono_ns());
}

/* ---- calls ---- */

static void put_arg(struct trace_timeline *t, struct timeline_event *event, const char *literal,
		    enum timeline_arg_type type, uint64_t value)
{
	struct timeline_arg *arg = &event->args[event->args_n];

	if (event->args_n < TIMELINE_ARGS && trace_timeline_key(t, literal, &arg->key)) {
		arg->type = (uint8_t)type;
		arg->value = value;
		event->args_n++;
	} else {
		t->cut++;
	}
}

static void put_text_arg(struct trace_timeline *t, struct timeline_event *event, const char *literal,
			 const char *text)
{
	uint32_t number;

	if (trace_timeline_text(t, text, &number))
		put_arg(t, event, literal, TIMELINE_TEXT, number);
	else
		t->cut++;
}

static enum timeline_arg_type type_of(enum raw_number number)
{
	return number == RAW_SIGNED   ? TIMELINE_SIGNED :
	       number == RAW_UNSIGNED ? TIMELINE_UNSIGNED :
					TIMELINE_POINTER;
}

static void put_operands(struct trace_timeline *t, struct timeline_event *event, const struct raw_event *raw)
{
	static const struct {
		const char *name;
		enum timeline_arg_type type;
	} operands[RAW_OPERANDS] = {
		[RAW_ADDR] = { "addr", TIMELINE_POINTER },     [RAW_SIZE] = { "bytes", TIMELINE_UNSIGNED },
		[RAW_STREAM] = { "stream", TIMELINE_POINTER }, [RAW_HANDLE] = { "handle", TIMELINE_POINTER },
		[RAW_KIND] = { "kind", TIMELINE_UNSIGNED },
	};

	for (unsigned i = 0; i < RAW_OPERANDS; i++)
		if (raw->call.has[i])
			put_arg(t, event, operands[i].name, operands[i].type, raw->call.value[i]);
}

static void put_fields(struct trace_timeline *t, struct timeline_event *event, const struct raw_event *raw)
{
	for (unsigned i = 0; i < raw->fields.n; i++) {
		const struct raw_field *field = &raw->fields.at[i];

		if (field->text)
			put_text_arg(t, event, field->name, field->text);
		else
			put_arg(t, event, field->name, type_of(field->number), field->value);
	}
}

static void put_user(struct trace_timeline *t, struct timeline_event *event, const struct raw_event *raw)
{
	static const char *const names[RAW_ARGUMENTS_MAX] = { "arg0", "arg1", "arg2", "arg3" };

	for (unsigned i = 0; i < raw->user.n; i++) {
		const struct raw_argument *arg = &raw->user.at[i];
		const char *name = names[MIN(arg->position, RAW_ARGUMENTS_MAX - 1U)];

		if (!arg->is_text)
			put_arg(t, event, name, type_of(arg->number), arg->value);
		else if (arg->text)
			put_text_arg(t, event, name, arg->text);
	}
}

static void put_launch(struct trace_timeline *t, struct timeline_event *event, const struct raw_event *raw)
{
	put_arg(t, event, "grid", TIMELINE_DIMENSIONS, timeline_dimensions(raw->launch.grid));
	put_arg(t, event, "block", TIMELINE_DIMENSIONS, timeline_dimensions(raw->launch.block));
	put_arg(t, event, "shared_bytes", TIMELINE_UNSIGNED, raw->launch.shared_bytes);
	put_arg(t, event, "stream", TIMELINE_POINTER, raw->launch.stream);
}

/* Text of a call's number, made at its first event: what PyTorch has is named as PyTorch does. */
static bool call_text(struct trace_timeline *t, uint16_t call, uint32_t *ret_text)
{
	const struct probe *probe = probe_at(call);
	const char *text = probe->symbol;
	char name[TORCH_NAME_MAX];

	if (!t->names[call]) {
		if (probe->library == PROBE_TORCH) {
			torch_name(probe->symbol, name);
			text = name;
		}
		if (!trace_timeline_text(t, text, ret_text))
			return false;
		t->names[call] = *ret_text + 1;
	}
	*ret_text = t->names[call] - 1;
	return true;
}

static bool name_event(struct trace_timeline *t, const struct trace_header *header,
		       struct timeline_event *event)
{
	bool made;

	if (timeline_layer_name(t, header, event, &made))
		return made;
	event->category = categories[probe_at(header->call)->library];
	return call_text(t, header->call, &event->name);
}

/* Waits that are told together have no time that is one slice. */
static bool is_slice(const struct trace_header *header, const struct raw_event *raw)
{
	return raw->has_result &&
	       (header->op != TRACE_OP_PYTHON_GIL || ((const struct trace_call *)header)->size == 1);
}

static void put_operator(struct trace_timeline *t, struct timeline_event *event,
			 const struct trace_header *header)
{
	uint16_t call = header->operator;
	uint32_t name;

	/* A node's own is that of the forward pass. */
	if (call != 0 && header->op != TRACE_OP_TORCH_NODE && call_text(t, call, &name))
		put_arg(t, event, "operator", TIMELINE_TEXT, name);
}

/* Launches into a stream that its next span covers: they and it have one number. 0: not known. */
static uint64_t flow_of(struct trace_timeline *t, uint32_t process, uint64_t stream, bool ends)
{
	uint64_t key = key_in(process, stream);
	uint32_t flow;

	if (hashmap_get(&t->flow_by, key, &flow)) {
		if (ends)
			hashmap_del(&t->flow_by, key);
		return flow;
	}
	if (t->flow_by.count >= FLOWS_MAX)
		hashmap_clear(&t->flow_by);
	if (ends || t->flows == UINT32_MAX || hashmap_put(&t->flow_by, key, (uint32_t)t->flows + 1) < 0)
		return 0;
	return ++t->flows;
}

static void add_wait(struct trace_timeline *t, const struct timeline_event *event, uint32_t tgid,
		     uint64_t function)
{
	if (t->waiting_n < WAITING_MAX)
		t->waiting[t->waiting_n++] = (struct waiting){ *event, function, tgid };
	else
		trace_timeline_add(t, event);
}

static bool put_kernel(struct trace_timeline *t, struct timeline_event *event, uint32_t tgid,
		       uint64_t function)
{
	const struct kernel *kernel = trace_kernels_kernel(t->kernels, tgid, function);

	if (kernel)
		put_text_arg(t, event, "kernel", kernel->name);
	return kernel;
}

/* An event without a process's track, or without room for texts, is dropped. */
static int timeline_call(struct trace_timeline *t, const struct trace_header *header,
			 const struct raw_event *raw)
{
	struct timeline_event event = {
		.type = is_slice(header, raw) ? TIMELINE_SLICE : TIMELINE_INSTANT,
		.begin_ns = raw->time_ns,
		.end_ns = raw->time_ns + raw->duration_ns,
	};
	bool nameless;
	uint32_t process;

	if (!thread_track(t, header, &process, &event.track))
		return -ENOBUFS;
	if (header->op == TRACE_OP_TORCH_MEMORY) {
		timeline_torch_memory(t, (const struct trace_call *)header, process);
		return 0;
	}
	if (!name_event(t, header, &event))
		return -ENOBUFS;
	/* First what differs: it is less to compress. */
	nameless = raw->type == RAW_LAUNCH && !put_kernel(t, &event, header->tgid, raw->launch.function);
	if (raw->has_result && raw->result != 0)
		put_arg(t, &event, "result", TIMELINE_SIGNED, (uint64_t)(int64_t)raw->result);
	put_operator(t, &event, header);
	if (raw->has_result && event.type == TIMELINE_INSTANT)
		put_arg(t, &event, "total_ns", TIMELINE_UNSIGNED, raw->duration_ns);
	if (raw->type == RAW_CALL)
		put_operands(t, &event, raw);
	else if (raw->type == RAW_FIELDS)
		put_fields(t, &event, raw);
	else if (raw->type == RAW_USER)
		put_user(t, &event, raw);
	else if (raw->type == RAW_LAUNCH)
		put_launch(t, &event, raw);
	if (raw->type == RAW_LAUNCH && raw->result == 0 &&
	    !(header->flags & TRACE_FLAG_PER_THREAD && raw->launch.stream == 0))
		event.flow = flow_of(t, process, raw->launch.stream, false);
	if (!nameless) {
		trace_timeline_add(t, &event);
		return 0;
	}
	put_arg(t, &event, "function", TIMELINE_POINTER, raw->launch.function);
	add_wait(t, &event, header->tgid, raw->launch.function);
	return 0;
}

/* Launches whose kernel has a name by now, and those that have waited for a second or more. */
static void add_waiting(struct trace_timeline *t, bool all)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < t->waiting_n; i++) {
		struct waiting *waiting = &t->waiting[i];

		if (put_kernel(t, &waiting->event, waiting->tgid, waiting->function) || all ||
		    i < t->waiting_old)
			trace_timeline_add(t, &waiting->event);
		else
			t->waiting[kept++] = *waiting;
	}
	t->waiting_n = t->waiting_old = kept;
}

/* What record_function() begins: a step of an optimizer, a part that the program names. */
static int timeline_range(struct trace_timeline *t, const struct trace_header *header,
			  const struct raw_event *raw)
{
	struct timeline_event event = { .type = TIMELINE_INSTANT,
					.category = TIMELINE_TORCH,
					.begin_ns = raw->time_ns };
	uint32_t process;

	if (!raw->name.text)
		return 0;
	if (!thread_track(t, header, &process, &event.track) ||
	    !trace_timeline_text(t, raw->name.text, &event.name))
		return -ENOBUFS;
	trace_timeline_add(t, &event);
	return 0;
}

static int timeline_event(const struct trace_header *event, _unused_ uint32_t size, void *userdata)
{
	struct trace_timeline *t = userdata;
	struct raw_event raw;

	if (!raw_event_of(t->blas, event, &raw))
		return 0;
	switch (raw.type) {
	case RAW_PROCESS:
		return process_begins(t, (const struct trace_process *)event) ? 0 : -ENOBUFS;
	case RAW_EXEC:
	case RAW_EXIT:
		hashmap_del(&t->process_by, event->tgid);
		return 0;
	case RAW_NAME:
		return event->op == TRACE_OP_TORCH_RANGE ? timeline_range(t, event, &raw) : 0;
	case RAW_VARIABLE:
		return 0;
	default:
		/* A kernel's registration is nothing that the program does. */
		if (event->op == TRACE_OP_FUNCTION_REGISTER)
			return 0;
		return timeline_call(t, event, &raw);
	}
}

static void timeline_lost(uint64_t events, void *userdata)
{
	struct trace_timeline *t = userdata;
	char text[64];

	snprintf(text, sizeof(text), "%" PRIu64 " events lost", events);
	mark_missing(t, text);
	t->lost += events;
}

static void timeline_incomplete(uint32_t tgid, _unused_ uint64_t incarnation, unsigned bits, void *userdata)
{
	struct trace_timeline *t = userdata;
	uint32_t process;

	for (unsigned bit = 0; traced_incomplete_name(bit) && process_of(t, tgid, &process); bit++)
		if (bits >> bit & 1)
			mark(t, process_at(t, process)->track, traced_incomplete_name(bit),
			     (uint64_t)clock_mono_ns());
}

/* ---- spans ---- */

static void stream_name(const struct trace_timeline *t, const struct span *span, char name[static TRACK_NAME])
{
	char gpu[GPU_NAME];

	trace_timeline_gpu_name(t, span->device, gpu, sizeof(gpu));
	if (span->flags & SPAN_MERGED)
		snprintf(name, TRACK_NAME, "%s streams (more)", gpu);
	else if (span->stream == 0)
		snprintf(name, TRACK_NAME, "%s default stream", gpu);
	else
		snprintf(name, TRACK_NAME, "%s stream 0x%" PRIx64, gpu, span->stream);
}

/* NULL: no room. */
static struct timeline_stream *stream_of(struct trace_timeline *t, const struct span *span, uint32_t process)
{
	uint64_t id = (uint64_t)span->stream_id << 32 | (span->flags & SPAN_MERGED),
		 key = key_in(process, id);
	struct timeline_track track = { .kind = TIMELINE_CHILD, .parent = process_at(t, process)->track };
	struct timeline_stream *stream;
	char name[TRACK_NAME];
	uint32_t index;

	if (hashmap_get(&t->stream_by, key, &index))
		return stream_at(t, index);
	stream_name(t, span, name);
	stream = has_track(t, process) ? row_list_add(&t->streams) : NULL;
	if (!stream)
		return NULL;
	if (!trace_timeline_text(t, name, &track.name) || !trace_timeline_track(t, &track, &stream->track) ||
	    hashmap_put(&t->stream_by, key, t->streams.n - 1) < 0) {
		t->streams.n--;
		return NULL;
	}
	process_at(t, process)->tracks++;
	return stream;
}

static void put_span(struct trace_timeline *t, struct timeline_event *event, const struct span *span)
{
	if (span->kind == SPAN_KERNELS) {
		put_arg(t, event, "launches", TIMELINE_UNSIGNED, span->launches);
		put_arg(t, event, "threads", TIMELINE_UNSIGNED, span->threads);
	}
	put_arg(t, event, "copies", TIMELINE_UNSIGNED, span->copies);
	put_arg(t, event, "bytes", TIMELINE_UNSIGNED, span->bytes);
	put_arg(t, event, "at_most_ns", TIMELINE_UNSIGNED, span->end_ns - span->start_ns);
	if (span->flags & SPAN_NO_WAIT)
		put_text_arg(t, event, "end", "of its stream: nothing waited for it");
	if (span->flags & SPAN_INCOMPLETE)
		put_text_arg(t, event, "incomplete", "something of the process was missed");
}

/* Waits and copies that a thread waits for are its calls. */
static int timeline_span(const struct span *span, void *userdata)
{
	struct trace_timeline *t = userdata;
	struct timeline_event event = { .type = TIMELINE_SLICE, .category = TIMELINE_GPU };
	const char *name = span->kind == SPAN_KERNELS ? "kernels (estimate)" : "copies (estimate)";
	struct timeline_stream *stream;
	uint32_t process;

	if (span->kind == SPAN_SYNC || span->tid != 0)
		return 0;
	stream = process_of(t, span->tgid, &process) ? stream_of(t, span, process) : NULL;
	if (!stream || !trace_timeline_key(t, name, &event.name))
		return -ENOBUFS;
	event.track = stream->track;
	event.begin_ns = MAX(span->start_ns, stream->ended_ns);
	event.end_ns = stream->ended_ns = MAX(span->likely_end_ns, event.begin_ns);
	if (!(span->flags & SPAN_MERGED))
		event.flow = flow_of(t, process, span->stream, true);
	put_span(t, &event, span);
	trace_timeline_add(t, &event);
	return 0;
}

/* ---- start and end ---- */

struct event_sink *trace_timeline_sink(struct trace_timeline *t)
{
	return &t->sink;
}

struct span_sink *trace_timeline_spans(struct trace_timeline *t)
{
	return &t->spans;
}

void trace_timeline_set_blas(struct trace_timeline *t, const struct blas *blas)
{
	t->blas = blas;
}

/* Where tracing does not begin, what was there before stays. A pipe or a device has nothing to empty. */
static int empty_file(struct trace_timeline *t)
{
	if (!t->emptied && ftruncate(t->fd, 0) < 0 && errno != EINVAL)
		return -errno;
	t->emptied = true;
	return 0;
}

static int write_file(const void *data, size_t n, void *userdata)
{
	struct trace_timeline *t = userdata;
	ssize_t r = empty_file(t);

	if (r == 0)
		r = write_all(t->fd, data, n);

	return r < 0 ? (int)r : 0;
}

void trace_timeline_collect(struct trace_timeline *t)
{
	trace_timeline_gpus(t, trace_kernels_node(t->kernels));
	add_waiting(t, false);
	timeline_flush(t->timeline);
}

int trace_timeline_finish(struct trace_timeline *t, const char **ret_said)
{
	int r;

	add_waiting(t, true);
	trace_timeline_gpus_end(t);
	r = timeline_finish(t->timeline);
	if (r == 0)
		r = empty_file(t);
	strbuf_reset(&t->said);
	if (t->lost > 0)
		strbuf_addf(&t->said, "%" PRIu64 " events were lost", t->lost);
	if (t->dropped + t->sink.sink.lost + t->spans.sink.lost > 0)
		strbuf_addf(&t->said, "%s%" PRIu64 " events did not fit", t->said.len > 0 ? "; " : "",
			    t->dropped + t->sink.sink.lost + t->spans.sink.lost);
	if (t->cut > 0)
		strbuf_addf(&t->said, "%s%" PRIu64 " arguments did not fit", t->said.len > 0 ? "; " : "",
			    t->cut);
	*ret_said = t->said.data;
	return r;
}

static int user_open(const char *path)
{
	WITH_RIGHTS_OF_USER;
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666);

	return fd < 0 ? -errno : fd;
}

static const struct timeline_ops ops = { .write = write_file };

int trace_timeline_new(const char *path, enum timeline_format format, struct trace_kernels *kernels,
		       struct trace_timeline **ret_timeline)
{
	_cleanup_(trace_timeline_freep) struct trace_timeline *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return -ENOMEM;
	*t = (struct trace_timeline){
		.sink = { .sink = { .name = "timeline", .userdata = t },
			  .event = timeline_event,
			  .lost = timeline_lost,
			  .incomplete = timeline_incomplete,
			  .process_over = timeline_over },
		.spans = { .sink = { .name = "timeline", .userdata = t }, .span = timeline_span },
		.kernels = kernels,
		.marks = TIMELINE_NONE,
		.processes = { .size = sizeof(struct timeline_process), .max = TIMELINE_TRACKS_MAX },
		.streams = { .size = sizeof(struct timeline_stream), .max = TIMELINE_TRACKS_MAX },
	};
	strbuf_init(&t->said, 0);
	t->fd = user_open(path);
	if (t->fd < 0)
		return t->fd;
	t->waiting = calloc(WAITING_MAX, sizeof(*t->waiting));
	t->gpus = calloc(GPUS_MAX, trace_timeline_gpu_size);
	r = t->waiting && t->gpus ? timeline_new(format, &ops, t, &t->timeline) : -ENOMEM;
	if (r < 0)
		return r;
	trace_timeline_gpus(t, trace_kernels_node(kernels)); /* streams are named by them */
	*ret_timeline = TAKE_PTR(t);
	return 0;
}

void trace_timeline_free(struct trace_timeline *t)
{
	if (!t)
		return;
	timeline_free(t->timeline);
	hashmap_done(&t->process_by);
	hashmap_done(&t->thread_by);
	hashmap_done(&t->stream_by);
	hashmap_done(&t->flow_by);
	hashmap_done(&t->counter_by);
	hashmap_done(&t->key_by);
	hashmap_done(&t->xid_by);
	free(t->waiting);
	row_list_done(&t->streams);
	row_list_done(&t->processes);
	free(t->gpus);
	strbuf_done(&t->said);
	if (t->fd >= 0)
		close(t->fd);
	free(t);
}
