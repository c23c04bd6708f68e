// SPDX-License-Identifier: Apache-2.0
/*
 * A scene: a node with devices, and programs that make calls. Time is in microseconds since the scene began
 * and goes on only as it is told; each call takes DURATION_US unless it waits. Builders send the event at
 * once.
 */
#pragma once

#include "cuda/cuda.h"
#include "test.h"

enum { DURATION_US = 2, PID = 100, TID = 100, CORES = 1000 };
#define UUID0 "GPU-00000000-0000-0000-0000-000000000000"
#define UUID1 "GPU-11111111-1111-1111-1111-111111111111"

struct scene {
	struct cuda *cuda;
	int64_t begin_ns;
	uint64_t now_us;
	uint64_t closed_us; /* the last window */
	uint32_t tgid, tid;
	uint16_t flags; /* of every event */
	uint16_t operator; /* that makes the next calls */
	int32_t result; /* of the next call, then 0 again */
	uint64_t duration_us; /* of the next call, then DURATION_US again */
	struct trace_view *view;
	const char *environment; /* NULs written as '\n' */
	int environment_error;
	enum cuda_environment environment_state;
	bool environment_cut;
	const char *allowed[4];
	size_t allowed_n;
	bool is_limited;
	int limit_error; /* what the callback returns; 0 and not limited: all devices */
	/* kernels */
	uint64_t function; /* of launches */
	uint32_t shared;
	bool cut; /* names */
	struct asked {
		struct cuda_function function;
		char symbol[64], path[64]; /* "" NULL */
	} asked[64]; /* the newest, by their number modulo the room */
	uint32_t asked_n;
	int answer; /* to questions */
	struct kernel *at_once; /* told while the question is asked */
	uint64_t images[4];
	uint32_t images_n;
};

/* Two GPUs alike, one process that was traced from its first call. */
struct scene *scene_new(const struct cuda_limits *limits);
/* Whose kernels are asked for. */
struct scene *scene_new_naming(const struct cuda_limits *limits);
void scene_free(struct scene *s);
/* The same for cmocka: without limits; with rows for kernels; with few of them. */
int scene_setup(void **state);
int scene_setup_naming(void **state);
int scene_setup_kernels(void **state);
int scene_setup_kernels_naming(void **state);
int scene_setup_few(void **state);
int scene_teardown(void **state);
/* Every figure of it is known. */
extern const struct kernel scene_kernel;
void scene_process(struct scene *s, uint32_t tgid, uint64_t incarnation);
void scene_end(struct scene *s, enum trace_event_type type);
uint64_t scene_ns(const struct scene *s, uint64_t us);

void launch(struct scene *s, uint64_t stream);
void launch_threads(struct scene *s, uint64_t stream, uint32_t grid, uint32_t block);
/* Any other call; the fields that its operation has. */
void call(struct scene *s, enum trace_op op, struct trace_call fields);
#define CALL(scene_, op_, ...) call(scene_, TRACE_OP_##op_, (struct trace_call){ __VA_ARGS__ })
/* A wait that takes so long. */
void sync_stream(struct scene *s, uint64_t stream, uint64_t wait_us);
void sync_context(struct scene *s, uint64_t wait_us);
void sync_mark(struct scene *s, uint64_t handle, uint64_t wait_us);
void allocate(struct scene *s, enum trace_memory kind, uint64_t addr, uint64_t size);
void release(struct scene *s, enum trace_memory kind, uint64_t addr);

/* @of 0: none. */
void name(struct scene *s, enum trace_op op, uint64_t handle, uint64_t of, const char *text);
void launch_function(struct scene *s, uint64_t stream, uint64_t function);
/* What naming found: figures are 0 but for static shared memory. One reference. */
struct kernel *kernel_of(const char *symbol, const char *file, int64_t shared);
/*
 * Of the last window, the first of a process on a device with that symbol; "": of all without room. NULL:
 * none.
 */
const struct traced_kernel *shown_kernel(const struct scene *s, uint32_t tgid, const char *uuid,
					 const char *symbol);
uint32_t shown_kernels(const struct scene *s, uint32_t tgid);

/* Closes the window now, or 1 us later where the last one ended now; and fills a view. */
void window(struct scene *s);
/* Of the last window: presence first. NULL: no such row in the view. */
const struct traced_device *shown(const struct scene *s, uint32_t tgid, const char *uuid);
double value(const struct scene *s, const char *uuid, enum traced_metric row);
/* Present, and that number but for rounding. */
#define assert_value(scene_, uuid_, row_, wanted_) \
	scene_value(scene_, uuid_, row_, wanted_, __FILE__, __LINE__)
void scene_value(const struct scene *s, const char *uuid, enum traced_metric row, double wanted,
		 const char *file, int line);
/* Whether work is pending on the device: a window that nothing happens in is active or not. */
bool pending(struct scene *s, const char *uuid);

/* ---- kernels that have no names: they are called by their function's value ---- */
const struct traced_total *device_total(const struct scene *s, const char *uuid);
/* On UUID0; function 0: of all without room. Fails where there is none. */
const struct traced_kernel *kernel_at(const struct scene *s, uint64_t function);
void launch_many(struct scene *s, uint64_t stream, uint64_t function, uint32_t grid, uint32_t block);
void window_at(struct scene *s, uint64_t us);
/* Of each process and device: launches that are known singly, and all estimated time. */
void assert_sums(const struct scene *s);
#define assert_near(value_, wanted_, within_) scene_near(value_, wanted_, within_, __FILE__, __LINE__)
void scene_near(double value, double wanted, double within, const char *file, int line);
/* Answers the question of that number with a copy. */
void answer_with(struct scene *s, uint32_t question, const struct kernel *from);

/* ---- kernels that have names ---- */
void made_for(struct scene *s, uint64_t handle, uint64_t module, const char *symbol);
void assert_kernel(const struct scene *s, const char *symbol, uint64_t launches);
/* Answers the question of that number, counted from 0. */
void answer(struct scene *s, uint32_t question, const char *symbol, const char *file, int64_t shared);
