// SPDX-License-Identifier: Apache-2.0
/*
 * The parts of gpusonde's own exposition page; view_prometheus() puts them together. Each writes whole families.
 *
 *   prometheus.c           the page: identity and state of GPUs, every GPU row of the table, the node, the agent
 *   prometheus_process.c   processes with series of their own, what the others add up to, workloads
 *   prometheus_trace.c     traced processes, likewise, and devices with all of theirs
 *   prometheus_calls.c     traced calls, errors and latencies by name of the call
 */
#pragma once

#include "view/labels.h"
#include "view/page.h"

struct exposition_page {
	const struct snapshot *s;
	struct page page;
	struct labels entities; /* gpu="0",uuid="GPU-..." and gi, ci of an instance */
};

/* The label that tells a family's rows apart, e.g. engine="gpu"; "" for a row without one. Valid until the next call with @out. */
const char *row_labels(const struct metric *metric, struct strbuf *out);

void family_of(const struct metric *metric, const char *prefix, const char *name, struct family *ret_family);

/* First row after @i that is of another family. */
unsigned family_end(const struct metric *rows, unsigned n, unsigned i);

int prometheus_processes(struct exposition_page *p);
int prometheus_workloads(struct exposition_page *p);
int prometheus_trace(struct exposition_page *p);
int prometheus_calls(struct exposition_page *p);
