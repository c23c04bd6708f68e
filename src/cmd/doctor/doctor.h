// SPDX-License-Identifier: Apache-2.0
/*
 * gpusonde doctor: a table of checks, each of which looks at one thing and says what it found. A failure is
 * something that the agent needs and does not have; a warning something that costs it a part of what it could
 * show; a note just information. Nothing is changed, and the driver is asked only through a child process
 * that may hang.
 */
#pragma once

#include <jansson.h>

#include "base/macro.h"
#include "cmd/cmd.h"

enum verdict { VERDICT_OK, VERDICT_NOTE, VERDICT_WARNING, VERDICT_FAILED, VERDICTS };

struct finding {
	enum verdict verdict;
	char text[768];
	char remedy[400]; /* "" none is needed */
};

/* What several checks look at, fetched once. */
struct doctor {
	const struct invocation *invocation;
	int agent_error; /* 0: the agent answers */
	json_t *status; /* its /control/status; NULL without agent */
	json_t *trace; /* what it says of its tracing; NULL without agent */
	json_t *capabilities; /* as agent/own_capabilities.h has it, the agent's or our own */
	bool agents_capabilities; /* the agent's */
	json_t *document; /* gpus and node, of the agent or sampled here; NULL when neither could be had */
	struct snapshot *snapshot; /* the same, decoded */
	char failure[400]; /* sampled here, and there are no data: why */
	int gpus_on_bus;
	bool sampled; /* the document is our own */
};

enum { SUBJECT_MAX = 128 };

struct check {
	const char *name;
	void (*run)(const struct doctor *doctor, struct finding *finding);
};

/* Each file of checks has its table, ended by name NULL. */
extern const struct check driver_checks[]; /* cmd/doctor/driver.c */
extern const struct check system_checks[]; /* cmd/doctor/system.c */
extern const struct check service_checks[]; /* cmd/doctor/service.c */
extern const struct check trace_checks[]; /* cmd/doctor/trace.c */

/* cmd/doctor/library.c; @no_gpu_here: none is missed. */
void check_library(const struct doctor *doctor, bool no_gpu_here, struct finding *finding);
/*
 * Of whom the row is that looks at @d->capabilities, and why it is nobody else: "the agent", "this process
 * (no agent runs)".
 */
const char *doctor_subject(const struct doctor *doctor, char *buf, size_t size);

_printf_(3, 4) void found(struct finding *finding, enum verdict verdict, const char *fmt, ...);
_printf_(2, 3) void remedy(struct finding *finding, const char *fmt, ...);
