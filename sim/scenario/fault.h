// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/scenario/curve.h"

/* Misbehaviour on request: which calls, when, and what happens to them. */
enum {
	FAULT_MAX = 32, /* of a scenario or a control file */
	FAULT_GLOBS = 8,
	FAULT_FIELDS = 16,
};

enum fault_kind {
	FAULT_ERROR, /* the call fails */
	FAULT_HANG, /* the call does not return for a while, or ever; signals but KILL do not end it */
	FAULT_CRASH, /* a segmentation fault in the call */
	FAULT_SENTINEL, /* numbers that the call returns are replaced by this one */
	FAULT_WRAP, /* numbers that the call returns are truncated to this many bits */
	FAULT_STRIDE, /* process lists have records of this many bytes */
	FAULT_NAMESPACED, /* process lists have the PIDs that processes have in their own PID namespaces */
	FAULT_LOST, /* the GPU has fallen off the bus: its calls give GPU_IS_LOST */
	FAULT_REMOVED, /* the GPU is not there: not counted, its old handle gives GPU_IS_LOST */
	/* no driver: nvmlInit fails; programs must call it again, and counters begin at 0 */
	FAULT_UNLOADED,
	FAULT_KIND_COUNT,
};

/* The name of a kind in scenarios. */
extern const char *const fault_kind_names[FAULT_KIND_COUNT];

/* Shell patterns for names of functions. */
struct name_globs {
	char pattern[FAULT_GLOBS][56];
	uint32_t count;
};

/* Whether one of them matches; no pattern at all matches nothing. */
bool name_globs_match(const struct name_globs *globs, const char *name);

/* Where the time of a fault begins. */
enum fault_since {
	FAULT_SINCE_BOOT,
	FAULT_SINCE_LOAD, /* when this process loaded the library; in control files: when it read the file */
};

/* Lengths of FAULT_HANG that are no time. */
#define FAULT_HANG_FOREVER INT64_C(-1)
#define FAULT_HANG_WHILE INT64_C(-2) /* until the fault ends */

struct fault {
	enum fault_kind kind;
	enum fault_since since;
	struct window window;
	uint32_t gpus; /* one bit each; 0: calls for no GPU too */
	struct name_globs functions; /* none: all */
	uint16_t fields[FAULT_FIELDS]; /* field ids, with nvmlDeviceGetFieldValues; none: all */
	uint32_t field_count;
	uint32_t error; /* FAULT_ERROR: enum nvml_return */
	int64_t hang_ms; /* FAULT_HANG */
	uint64_t value; /* FAULT_SENTINEL */
	bool value_given; /* else as the width of the number has it: 4294967295, 9223372036854775794 */
	uint32_t size; /* FAULT_WRAP: bits; FAULT_STRIDE: bytes */
};

/* Whether it is on. Times are milliseconds since boot; `began_ms` is where FAULT_SINCE_LOAD counts from. */
bool fault_active(const struct fault *fault, int64_t now_ms, int64_t began_ms);

/* Whether it concerns this function and this GPU (negative: a call that is for none). */
bool fault_matches(const struct fault *fault, const char *function, int gpu);

/* Whether it concerns this field. */
bool fault_has_field(const struct fault *fault, uint32_t field);

/* Does not return in time; see FAULT_HANG_... `still` returns whether the fault is still active. */
void fault_hang(int64_t hang_ms, bool (*still)(void *), void *userdata);

/* Does not return. */
_Noreturn void fault_crash(void);
