// SPDX-License-Identifier: Apache-2.0
#include "agent/record/history.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "agent/answers.h"
#include "agent/record/history_answer.h"
#include "base/clock.h"

#define STUCK_NS (10 * NSEC_PER_SEC)

enum { PAGE_HISTORY, PAGE_MOMENT };

struct history_service {
	char *path;
	struct answers *answers;
	atomic_int pid;
	struct store_reader *reader; /* of the thread */
};

/* ---- the thread ---- */

static void close_reader(void *userdata)
{
	struct history_service *service = userdata;

	service->pid = 0; /* first: the number may soon be another process's */
	store_reader_free(TAKE_PTR(service->reader));
}

/* Listed anew for each question, since who records goes on; opened anew if that fails. */
static int open_reader(struct history_service *service, char *why, size_t size)
{
	int r;

	if (service->reader && store_reader_refresh(service->reader) < 0)
		close_reader(service);
	if (service->reader)
		return 0;
	r = store_reader_open(service->path, &service->reader, why, size);
	service->pid = r == 0 ? store_reader_pid(service->reader) : 0;
	return r;
}

static void history_make(const struct question *question, struct answer *answer, void *userdata)
{
	struct history_service *service = userdata;
	char why[300] = "";
	int r = open_reader(service, why, sizeof(why));

	if (r == 0)
		r = history_answer(service->reader, question, question->page == PAGE_MOMENT, answer);
	else
		history_refuse(answer, r, why);
	if (r < 0 && r != -ENOENT && r != -E2BIG && r != -EINVAL)
		close_reader(service);
}

/* What the thread waits for ends with the process; where the kernel does not let it, it is left behind. */
static void end_reader(void *userdata)
{
	struct history_service *service = userdata;
	pid_t pid = service->pid;

	if (pid > 0)
		kill(pid, SIGKILL);
}

/* ---- who asks ---- */

static int ask_history(struct history_service *service, uint32_t page, int64_t now_ns,
		       const struct http_request *request, struct http_reply *reply)
{
	struct question question = question_of(page, now_ns, request);

	if (!service) {
		reply->status = 404;
		strbuf_adds(&reply->body, "404 nothing is recorded: recording.path is not set\n");
		return 0;
	}
	return answers_reply(service->answers, &question, reply);
}

int history_page(struct history_service *service, int64_t now_ns, const struct http_request *request,
		 struct http_reply *reply)
{
	return ask_history(service, PAGE_HISTORY, now_ns, request, reply);
}

int moment_page(struct history_service *service, int64_t now_ns, const struct http_request *request,
		struct http_reply *reply)
{
	return ask_history(service, PAGE_MOMENT, now_ns, request, reply);
}

/* ---- life ---- */

int history_service_new(const char *path, struct history_service **ret_service)
{
	_cleanup_(history_service_freep) struct history_service *service = calloc(1, sizeof(*service));
	const struct answers_config config = {
		.name = "history",
		.stuck = "the recording cannot be read: does the disk hang?",
		.slow_ns = STUCK_NS,
		.make = history_make,
		.idle = close_reader,
		.interrupt = end_reader,
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

void history_service_free(struct history_service *service)
{
	if (!service || !answers_free(service->answers))
		return;
	free(service->path);
	free(service);
}

pid_t history_service_pid(struct history_service *service)
{
	return service->pid;
}
