// SPDX-License-Identifier: Apache-2.0
/*
 * Names of a snapshot's enumerated values, the same in every view.
 */
#pragma once

#include <stddef.h>

#include "model/snapshot.h"

/* "container", "pod", "job", "unit"; "none". */
const char *workload_kind_name(enum workload_kind kind);
/* The label or member with the workload's id: "container_id", "pod_uid", "job", "unit". */
const char *workload_id_name(enum workload_kind kind);
/* How much of a container's ID tables show: a user's own container's begins with its user's manager. */
int container_short_length(const char *id);

/* "slurm", "htcondor", "lsf", "pbs"; "none". */
const char *job_manager_name(enum job_manager manager);

/*
 * The training run of a process, and the group of it: what its pod's label or annotation says, else what its
 * environment does; "": not known.
 */
struct run_names {
	const char *run, *group;
	bool claimed; /* at least one of them is the process's word alone */
};
/* The row of a pod that names its run or group; NULL: none does. */
const struct owner *run_owner(const struct snapshot *s, const struct workload *workload);
struct run_names run_of(const struct snapshot *s, const struct process *process);

/* "ok", "no_library", ... */
const char *state_name(enum reading_state state);
/*
 * Why the driver gives no data, or only stale ones; "" if the data are current. Contains times, so not usable
 * as a label.
 */
const char *outage_reason(const struct snapshot *s);

/*
 * Label values and help of driver_state. The state is that of the newest reading, or "stale" if that was good
 * but is too old. The reason is outage_reason() without times, so that there is one series per outage.
 */
const char *driver_state_name(const struct snapshot *s);
const char *driver_state_reason(const struct snapshot *s);
#define DRIVER_STATE_HELP                                                                                 \
	"1 for the state of the driver (ok, stale, no_library, no_driver, failed, released), and why it " \
	"gives no "                                                                                       \
	"data or none that are fresh."

/* Name of the i-th process type bit, "compute", "graphics", "mps"; NULL after the last. */
const char *process_type_name(unsigned i);

/*
 * The name that rejected values are counted under: the row's id in lower case, preceded by "process_" for
 * rows of processes, since some have the ids of GPU rows.
 */
enum { FIELD_NAME_MAX = 96 };
void rejected_field_name(const struct metric *metric, bool process, char buf[static FIELD_NAME_MAX]);
struct rejected_field {
	char name[FIELD_NAME_MAX];
	uint64_t count;
};
/* The next field with rejected values; *i begins at 0 and is advanced. False: no more. */
bool rejected_next(const struct snapshot *s, unsigned *i, struct rejected_field *ret_field);

/* "13.0" of 13000; "" when unknown. */
void cuda_version_text(uint32_t version, char buf[static 16]);

/*
 * nvidia-smi's abbreviation of the connection between two GPUs: "NV18" for links, else "PIX" ... "SYS"; "" if
 * unknown.
 */
void link_text(uint8_t level, uint8_t nvlinks, char buf[static 8]);
/* The inverse; both 0 if unknown. */
void link_parse(const char *text, uint8_t *ret_level, uint8_t *ret_nvlinks);

/* Members of JSON for enum recent_figure. */
extern const char *const recent_names[RECENT_FIGURES];
