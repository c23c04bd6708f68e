// SPDX-License-Identifier: Apache-2.0
/* gpusonde release and resume: send the request to the running agent, and wait until it is done. */
#include "cmd/cmd.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "cmd/snapshot_client.h"

#define DONE_NS (30 * NSEC_PER_SEC) /* by default the agent abandons a hanging call well before */
#define POLL_NS (100 * NSEC_PER_MSEC)

static const struct control {
	const char *command, *path;
	bool released; /* the state to wait for */
	const char *done, *late;
} controls[] = {
	{ "release", "/control/release", true,
	  "the agent has released the driver; gpusonde resume makes it attach again",
	  "the agent still uses the driver: a call into it has not returned" },
	{ "resume", "/control/resume", false, "the agent has attached to the driver again",
	  "the agent could not attach to the driver again" },
};

static int fail(const struct control *control, const char *text)
{
	fprintf(stderr, "gpusonde %s: %s\n", control->command, text);
	return EXIT_FAILURE;
}

static int fail_request(const struct invocation *inv, const struct control *control, int error)
{
	char why[300];

	agent_explain(&inv->options, error, why, sizeof(why));
	return fail(control, why);
}

/*
 * 1: done, 0: not yet, -ENODATA: it has failed. Released: no process uses the driver any more. Resumed: a
 * reading with data has arrived since.
 */
static int is_reached(const json_t *status, bool released)
{
	const char *state = json_string_value(json_object_get(status, "state"));

	if (json_is_true(json_object_get(status, "released")) != released || !state)
		return 0;
	if (released)
		return STRV_EQ(state, "released");
	if (STRV_EQ(state, "released") || STRV_EQ(state, "stale"))
		return 0;
	return STRV_EQ(state, "ok") ? 1 : -ENODATA;
}

/* As is_reached(), or an error of the request; @ret_why is the reason that the agent reports. */
static int is_done(const struct invocation *inv, const struct control *control, char *ret_why, size_t size)
{
	struct strbuf body;
	unsigned status = 0;
	json_error_t error;
	int r;

	strbuf_init(&body, 0);
	r = agent_request(&inv->options, "GET", "/control/status", &status, &body);
	json_t *json = r == 0 && status == 200 ? json_loadb(body.data, body.len, 0, &error) : NULL;
	const char *why = json_string_value(json_object_get(json, "why"));

	snprintf(ret_why, size, "%s", why ? why : "");
	if (r == 0)
		r = json ? is_reached(json, control->released) : -EPROTO;
	json_decref(json);
	strbuf_done(&body);
	return r;
}

static int wait_done(const struct invocation *inv, const struct control *control)
{
	struct timespec pause = { POLL_NS / NSEC_PER_SEC, POLL_NS % NSEC_PER_SEC };
	int64_t end = clock_mono_ns() + DONE_NS;
	char why[320] = "", text[640];

	while (clock_mono_ns() < end) {
		int r = is_done(inv, control, why, sizeof(why));

		if (r == -ENODATA)
			break;
		if (r < 0)
			return fail_request(inv, control, r);
		if (r > 0) {
			printf("%s\n", control->done);
			return EXIT_SUCCESS;
		}
		nanosleep(&pause, NULL);
	}
	snprintf(text, sizeof(text), "%s: %s", control->late, why);
	return fail(control, text);
}

int control_main(struct invocation *inv)
{
	const struct control *control = STRV_EQ(inv->command->name, "release") ? &controls[0] : &controls[1];
	struct strbuf body;
	unsigned status = 0;
	int r;

	strbuf_init(&body, 0);
	r = agent_request(&inv->options, "POST", control->path, &status, &body);
	strbuf_done(&body);
	if (r < 0)
		return fail_request(inv, control, r);
	if (status != 202)
		return fail(control,
			    "the agent refused the request: check that it has this command's version");
	return wait_done(inv, control);
}
