// SPDX-License-Identifier: Apache-2.0
/*
 * Parts shared by several tables of a snapshot.
 */
#pragma once

#include "model/snapshot.h"
#include "view/table/table.h"

/* The number of a one-slot row at a GPU or MIG instance; false if it must not be shown. */
bool entity_number(const struct entity *e, enum gpu_metric row, double *ret_value);

/* A line that warns of simulated data. */
void table_simulated(const struct snapshot *s, const struct table_options *options, struct strbuf *out);

/* "No GPUs", and the reason if it is known. */
void table_nothing(const struct snapshot *s, const char *what, const struct table_options *options,
		   struct strbuf *out);

/* The same for processes. */
void table_no_processes(const struct snapshot *s, const struct table_options *options, struct strbuf *out);

/* The reason why the data are not current, if it is known. */
void table_outage(const struct snapshot *s, const struct table_options *options, struct strbuf *out);

/* Lists features of the driver that are not recognised; nothing if there are none. */
void table_unrecognised(const struct snapshot *s, const struct table_options *options, struct strbuf *out);

/* Whether the GPU's values are too old to be shown as the current load. */
bool entity_is_old(const struct entity *gpu);
/* A line for each GPU whose processes are shown with outdated figures. */
void table_old_gpus(const struct snapshot *s, const struct table_options *options, struct strbuf *out);
/* Names the GPUs whose process lists are incomplete, since their processes may be missing. */
void table_unlisted(const struct snapshot *s, const struct table_options *options, struct strbuf *out);

/* Cells with bytes ("1.5 GiB", preceded by @mark) and with a duration ("1:02:03"); NULL: "-", unknown. */
void table_bytes(struct table *table, const char *mark, const double *bytes);
void table_duration(struct table *table, const double *seconds);
/* With a time of any size: "1.5 s", "12.0 ms", "3.1 us". */
void table_seconds(struct table *table, double seconds);
/* The same for a row of a process or workload. */
void table_process_bytes(struct table *table, const double *v, const uint8_t *p, enum process_metric row);
void table_process_duration(struct table *table, const double *v, const uint8_t *p, enum process_metric row);

/* Cell with the GPU's index, or the instance ("1/0", "-" on a GPU). */
void table_gpu_index(struct table *table, const struct snapshot *s, const struct entity *e);
void table_instance(struct table *table, const struct entity *e);

/* Cell with the user's name on this machine, else the number; UINT32_MAX: "-". */
void table_user(struct table *table, uint32_t uid);

/* Cell naming a workload ("pod 0f3e..."); NULL: "-". */
void table_workload(struct table *table, const struct workload *workload);
void table_process_workload(struct table *table, const struct snapshot *s, const struct process *process);
void table_traced_workload(struct table *table, const struct workload_name *workload);
