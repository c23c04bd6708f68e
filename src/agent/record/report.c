// SPDX-License-Identifier: Apache-2.0
#include "agent/record/report.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/answers.h"
#include "agent/record/history_answer.h"
#include "base/clock.h"
#include "base/text.h"
#include "helper/run.h"
#include "web/file_arguments.h"

enum { RUN_SECONDS = 120, LOW_PRIORITY = 10, MEMORY_BYTES = 256 << 20 };
#define STUCK_NS ((RUN_SECONDS + 10) * NSEC_PER_SEC)

struct report_service {
	char *path;
	struct answers *answers;
	atomic_int pid;
};

/* ---- the thread ---- */

static const char *const content_types[REPORT_FORMATS] = {
	[REPORT_HTML] = "text/html; charset=utf-8",
	[REPORT_JSON] = "application/json",
	[REPORT_MARKDOWN] = "text/markdown; charset=utf-8",
	[REPORT_TEXT] = "text/plain; charset=utf-8",
};

/* Sentences of the command, which begin with its name. */
static void report_refuse(struct answer *answer, const char *said)
{
	static const char name[] = "gpusonde report: ";

	strbuf_reset(&answer->body);
	answer->status = strstr(said, "nothing of that time is recorded") ? 404 : 503;
	said += strncmp(said, name, sizeof(name) - 1) == 0 ? sizeof(name) - 1 : 0;
	strbuf_addf(&answer->body, "%u %s%s", answer->status, said, said[strcspn(said, "\n")] ? "" : "\n");
}

/* The numbers are unchecked. */
static int report_run(struct report_service *service, const struct question *question, struct strbuf *output,
		      struct strbuf *errors)
{
	const int64_t *n = question->numbers;
	const unsigned who = (unsigned)n[REPORT_WHO], format = (unsigned)n[REPORT_FORMAT];
	const int64_t now_ns = question->now_ns ? question->now_ns : clock_real_ns();
	char since[64] = "--since=", until[64] = "--until=", whose[HTTP_TEXT_MAX + 16], shape[32];
	char *arguments[] = { (char *)"gpusonde",
			      (char *)"report",
			      (char *)"--recording-path",
			      service->path,
			      since,
			      until,
			      shape,
			      NULL,
			      NULL };
	const struct run program = {
		.arguments = arguments,
		.seconds = RUN_SECONDS,
		.limit = ANSWER_BYTES_MAX,
		.nice = LOW_PRIORITY,
		.memory = MEMORY_BYTES,
		.powerless = true,
		.pid = &service->pid,
	};

	if (who >= REPORT_WHOS || format >= REPORT_FORMATS)
		return -EINVAL;
	format_rfc3339(history_when(n[REPORT_SINCE], now_ns), since + strlen(since));
	format_rfc3339(history_when(n[REPORT_UNTIL], now_ns), until + strlen(until));
	snprintf(shape, sizeof(shape), format == REPORT_JSON ? "--json" : "--format=%s",
		 report_format_names[format]);
	snprintf(whose, sizeof(whose), "--%s=%s", report_who_names[who], question->text);
	if (who != REPORT_ALL)
		arguments[ARRAY_SIZE(arguments) - 2] = whose;
	return run_program(&program, output, errors);
}

static void report_make(const struct question *question, struct answer *answer, void *userdata)
{
	struct strbuf errors;
	int r;

	strbuf_init(&errors, ANSWER_BYTES_MAX);
	r = report_run(userdata, question, &answer->body, &errors);
	if (r == 0 && !answer->body.failed) {
		answer->content_type = content_types[question->numbers[REPORT_FORMAT]];
	} else {
		utf8_sanitize(errors.data);
		report_refuse(answer, r == -ETIMEDOUT ? "the report takes too long: ask for less time" :
				      r == -E2BIG || answer->body.failed ?
							"the report is too long: ask for less" :
				      r < 0 ? strerror(-r) :
					      errors.data);
	}
	strbuf_done(&errors);
}

static void end_process(void *userdata)
{
	struct report_service *service = userdata;
	pid_t pid = service->pid;

	if (pid > 0)
		kill(pid, SIGKILL);
}

/* ---- who asks ---- */

/* A browser that is to show the report asks again by itself. */
static const char *pending_html(const struct question *question)
{
	static const char page[] =
		"<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\">"
		"<meta http-equiv=\"refresh\" content=\"1\"><title>GPU report</title>"
		"<p>The report is being made of the recording; it comes here by itself.</p></html>\n";

	return question->numbers[REPORT_FORMAT] == REPORT_HTML ? page : NULL;
}

int report_page(struct report_service *service, int64_t now_ns, const struct http_request *request,
		struct http_reply *reply)
{
	struct question question = question_of(0, now_ns, request);

	if (!service) {
		reply->status = 404;
		strbuf_adds(&reply->body, "404 nothing is recorded: recording.path is not set\n");
		return 0;
	}
	return answers_reply(service->answers, &question, reply);
}

/* ---- life ---- */

int report_service_new(const char *path, struct report_service **ret_service)
{
	_cleanup_(report_service_freep) struct report_service *service = calloc(1, sizeof(*service));
	const struct answers_config config = {
		.name = "report",
		.stuck = "the report cannot be made: does the disk hang?",
		.slow_ns = STUCK_NS,
		.pending_html = pending_html,
		.make = report_make,
		.interrupt = end_process,
		.userdata = service,
	};
	int r;

	if (!service)
		return -ENOMEM;
	service->path = strdup(path);
	r = service->path ? answers_new(&config, &service->answers) : -ENOMEM;
	if (r == 0)
		*ret_service = TAKE_PTR(service);
	return r;
}

void report_service_free(struct report_service *service)
{
	if (!service || !answers_free(service->answers))
		return;
	free(service->path);
	free(service);
}

pid_t report_service_pid(struct report_service *service)
{
	return service->pid;
}
