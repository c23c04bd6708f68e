// SPDX-License-Identifier: Apache-2.0
/* HTCondor's .job.ad: a line for each attribute, NAME = EXPRESSION. Pure; texts are hostile. */
#pragma once

#include <stddef.h>

#include "base/cursor.h"

typedef void job_ad_fn(struct cursor name, const char *value, void *userdata);

/*
 * Calls @found for the attributes that tell which job it is: ClusterId, ProcId, Owner, JobBatchName, Cmd,
 * under these names, whatever their case in the file. Only literal numbers and texts; texts without their
 * quotes.
 */
void job_ad_read(const char *text, size_t n, job_ad_fn *found, void *userdata);
