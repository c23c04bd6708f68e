// SPDX-License-Identifier: Apache-2.0
/* Which metrics /metrics may have, and which labels: by the tables that the walk goes through. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/strbuf.h"

/* Labels as the tables below and named_families.def say them: divided by ", ". */
#define DEVICE_LABELS "gpu, uuid, gi, ci"
#define OWNER_NAMES "namespace, pod, container"
#define WORKLOAD_IDS "container_id, pod_uid, job, unit, id"
#define PROCESS_LABELS "pid, comm, " OWNER_NAMES
#define KERNEL_LABELS "kernel, id"

/* Tells the name of each series, with prefix and, of histograms, _bucket, _count and _sum. */
typedef void take_series_name(const char *name, void *userdata);
void series_names(take_series_name *take, void *userdata);

/*
 * Appends the labels that series of this name, which has @n bytes, may have, divided by ", ", those that rows
 * of a table have in common more than once. False: there are no such series.
 */
bool series_labels(const char *name, size_t n, struct strbuf *out);
/* Is it one of a list that is divided by ", "? */
bool label_is_listed(const char *list, const char *label, size_t n);
