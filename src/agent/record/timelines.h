// SPDX-License-Identifier: Apache-2.0
/*
 * Pages of the agent's timelines: /api/v1/timelines says what is recorded and lists the files of the folder,
 * /api/v1/timeline has parts of one. Both are read by a thread of its own (answers.h). Any thread may ask.
 */
#pragma once

#include "base/macro.h"
#include "serve/http.h"

enum { TIMELINE_PART = 1 << 20, TIMELINE_FILES = 500 };

struct record;
struct timelines;

/* Of the folder @path, which need not exist. -errno. */
int timelines_new(const char *path, struct timelines **ret_timelines);
/* Waits a second at most. */
void timelines_free(struct timelines *timelines);
DEFINE_CLEANUP(struct timelines *, timelines_free, timelines_freep)

/* @record NULL: tracing does not run. */
int timelines_page(struct timelines *timelines, struct record *record, const struct http_request *request,
		   struct http_reply *reply);
int timeline_page(struct timelines *timelines, const struct http_request *request, struct http_reply *reply);
