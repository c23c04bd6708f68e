// SPDX-License-Identifier: Apache-2.0
/*
 * Answers of /api/v1/report: "gpusonde report" of the recording, run as a process of its own at a low
 * priority, one at a time, for at most two minutes (answers.h). Any thread may ask.
 */
#pragma once

#include <sys/types.h>

#include "base/macro.h"
#include "serve/http.h"

struct report_service;

/* @path is copied. -errno. */
int report_service_new(const char *path, struct report_service **ret_service);
/* Waits a second at most. */
void report_service_free(struct report_service *service);
DEFINE_CLEANUP(struct report_service *, report_service_free, report_service_freep)
/* The process that makes a report; 0: none runs. */
pid_t report_service_pid(struct report_service *service);

/* As history_page(). */
int report_page(struct report_service *service, int64_t now_ns, const struct http_request *request,
		struct http_reply *reply);
