// SPDX-License-Identifier: Apache-2.0
/*
 * Answers of /api/v1/history and /api/v1/moment from a recording, which a gpusonde-store reads: answers.h.
 * Without questions for a while neither the process nor the answers are there. Any thread may ask.
 */
#pragma once

#include <sys/types.h>

#include "base/macro.h"
#include "serve/http.h"

struct history_service;

/* @path is copied. -errno. */
int history_service_new(const char *path, struct history_service **ret_service);
/* Waits a second at most. */
void history_service_free(struct history_service *service);
DEFINE_CLEANUP(struct history_service *, history_service_free, history_service_freep)
/* The process that reads; 0: none runs. */
pid_t history_service_pid(struct history_service *service);

/*
 * The pages, of the request's numbers (web/history_numbers.h). @service NULL: nothing is recorded. @now_ns:
 * what "now" and "ago" are of, in real time; 0: the clock's.
 */
int history_page(struct history_service *service, int64_t now_ns, const struct http_request *request,
		 struct http_reply *reply);
int moment_page(struct history_service *service, int64_t now_ns, const struct http_request *request,
		struct http_reply *reply);
