// SPDX-License-Identifier: Apache-2.0
/* What several tables of a snapshot have in common. */
#pragma once

#include "model/snapshot.h"
#include "view/table.h"

/* The number of a row at a GPU or MIG instance; false where it is not to be shown. For rows of one slot. */
bool entity_number(const struct entity *e, enum gpu_metric row, double *ret_value);

/* The line that says so, when the data are of the simulated driver. */
void table_simulated(const struct snapshot *s, const struct table_options *options, struct strbuf *out);

/* "No GPUs", and why there are none, where that is known. */
void table_nothing(const struct snapshot *s, const char *what, const struct table_options *options,
		   struct strbuf *out);

/* Why what is shown is no longer true, where that is known. */
void table_trouble(const struct snapshot *s, const struct table_options *options, struct strbuf *out);

/* What is left out because it is not recognised in this driver; nothing where all is. */
void table_unrecognised(const struct snapshot *s, const struct table_options *options, struct strbuf *out);

/* Cells of bytes ("1.5 GiB", @mark before it) and of a time ("1:02:03"), "-" when unknown: NULL. */
void table_bytes(struct table *table, const char *mark, const double *bytes);
void table_duration(struct table *table, const double *seconds);
/* The same of a row of a process or workload. */
void table_process_bytes(struct table *table, const double *v, const uint8_t *p, enum process_metric row);
void table_process_duration(struct table *table, const double *v, const uint8_t *p, enum process_metric row);

/* Cell with what the GPU, or the instance ("1/0", "-" on a GPU), is called. */
void table_gpu_index(struct table *table, const struct snapshot *s, const struct entity *e);
void table_instance(struct table *table, const struct entity *e);

/* Cell naming a workload ("pod 0f3e..."); NULL: "-". */
void table_workload(struct table *table, const struct workload *workload);
