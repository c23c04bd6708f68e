// SPDX-License-Identifier: Apache-2.0
/*
 * A timeline as events of an analysis. What a slice means follows from its name by the table of probes, as it
 * does for a traced call; from its track and arguments follows the rest.
 */
#pragma once

#include "analysis/analysis.h"
#include "timeline/read.h"

struct analyze_file;

/* @node: a text of the analysis. -errno, also of opening. */
int analyze_file_new(const char *path, struct analysis *analysis, uint32_t node,
		     struct analyze_file **ret_file);
void analyze_file_free(struct analyze_file *file);
DEFINE_CLEANUP(struct analyze_file *, analyze_file_free, analyze_file_freep)

/* The next event; 1, or 0 at the end, or as timeline_read_next(). */
int analyze_file_next(struct analyze_file *file, struct analysis_event *ret_event);
const struct timeline_read *analyze_file_status(const struct analyze_file *file);
/* Events that were lost when it was written. */
uint64_t analyze_file_lost(const struct analyze_file *file);
int64_t analyze_file_real_offset(const struct analyze_file *file);
