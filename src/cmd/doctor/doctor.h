// SPDX-License-Identifier: Apache-2.0
/*
 * gpusonde doctor: a table of checks, each of which examines one thing and reports a finding. A failure is
 * something that the agent needs and lacks; a warning something without which it shows less; a note only
 * informs. Nothing is changed, and the driver is called only in a child process, which may hang.
 */
#pragma once

#include <sys/types.h>

#include <jansson.h>

#include "base/macro.h"
#include "cmd/cmd.h"
#include "trace/attach.h"

enum verdict { VERDICT_OK, VERDICT_NOTE, VERDICT_WARNING, VERDICT_FAILED, VERDICTS };

struct finding {
	enum verdict verdict;
	char text[768];
	char remedy[400]; /* "" if none is needed */
};

/* Data that several checks use, fetched once. */
struct doctor {
	const struct invocation *invocation;
	int agent_error; /* 0: the agent answers */
	json_t *status; /* the agent's /control/status; NULL without agent */
	json_t *trace; /* member `trace` of its /api/v1/trace; NULL without agent */
	json_t *capabilities; /* as in agent/own_capabilities.h, of the agent or of this process */
	bool agents_capabilities; /* they are the agent's */
	json_t *document; /* gpus and node, from the agent or sampled here; NULL: neither worked */
	struct snapshot *snapshot; /* the document, decoded */
	char failure[400]; /* why sampling here gave no data; "" otherwise */
	int gpus_on_bus;
	bool sampled; /* the document was sampled here */
	/* The kernel side, loaded here. NULL: tracing is disabled, or cannot be; then the error and why. */
	struct attach_backend *tracing;
	int tracing_error;
	struct attach_error tracing_why;
};

enum { SUBJECT_MAX = 128 };

struct check {
	const char *name;
	void (*run)(const struct doctor *doctor, struct finding *finding);
};

/* The table of each file of checks, terminated by name NULL. */
extern const struct check driver_checks[]; /* cmd/doctor/driver.c */
extern const struct check system_checks[]; /* cmd/doctor/system.c */
extern const struct check service_checks[]; /* cmd/doctor/service.c */
extern const struct check trace_checks[]; /* cmd/doctor/trace.c */
/* Before trace_checks: sets @doctor->tracing. */
void doctor_load_tracing(struct doctor *doctor);
extern const struct check cgroup_checks[]; /* cmd/doctor/cgroups.c */

struct named_finding {
	const char *name;
	struct finding finding;
};
enum { DOCTOR_PROCESS_ROWS = 10 };
/* cmd/doctor/process.c: what can be seen of a process, by layer. Returns the number of rows. */
unsigned doctor_process(const struct doctor *doctor, pid_t pid, struct named_finding *rows);

/* cmd/doctor/library.c; @no_gpu_here: a missing library is no problem. */
void check_library(const struct doctor *doctor, bool no_gpu_here, struct finding *finding);
/*
 * Whose capabilities @doctor->capabilities are, and why not the agent's: "the agent", "this process (no agent
 * runs)".
 */
const char *doctor_subject(const struct doctor *doctor, char *buf, size_t size);

_printf_(3, 4) void found(struct finding *finding, enum verdict verdict, const char *fmt, ...);
_printf_(2, 3) void remedy(struct finding *finding, const char *fmt, ...);
