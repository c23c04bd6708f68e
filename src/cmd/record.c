// SPDX-License-Identifier: Apache-2.0
/* gpusonde record start, stop, status, last: asks the running agent for timelines, and says what it does. */
#include "cmd/cmd.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/text.h"
#include "cmd/snapshot_client.h"

#define PATH "/control/record"
#define DONE_NS (10 * NSEC_PER_SEC) /* the agent's tracing thread looks once a second */
#define POLL_NS (100 * NSEC_PER_MSEC)

static int fail(const char *text)
{
	fprintf(stderr, "gpusonde record: %s\n", text);
	return EXIT_FAILURE;
}

/* The agent's answer as JSON; NULL: @why says why there is none. */
static json_t *ask_agent(const struct invocation *inv, const char *method, const char *target,
			 unsigned wanted, char *why, size_t size)
{
	struct strbuf body;
	unsigned status = 0;
	json_t *json = NULL;
	int r;

	strbuf_init(&body, 0);
	r = agent_request(&inv->options, method, target, &status, &body);
	if (r < 0)
		agent_explain(&inv->options, r, why, size);
	else if (status == wanted)
		json = json_loadb(body.data, body.len, 0, NULL);
	if (r == 0 && status == 404)
		snprintf(why, size,
			 "the agent knows no recordings: check that it has this command's version");
	else if (r == 0 && !json)
		snprintf(why, size, "%.*s", (int)strcspn(body.data, "\n"), body.data);
	strbuf_done(&body);
	return json;
}

static const char *member_text(const json_t *json, const char *key)
{
	const char *text = json_string_value(json_object_get(json, key));

	return text ? text : "";
}

static json_int_t member_int(const json_t *json, const char *key)
{
	return json_integer_value(json_object_get(json, key));
}

/* ---- start, stop, last ---- */

/* Flags were checked when they were parsed; what is in them needs no escape in a query. */
static bool add_argument(const struct invocation *inv, enum flag_id flag, const char *name,
			 struct strbuf *out)
{
	const char *value = inv->flag[flag];

	if (!value)
		return true;
	if (value[strspn(value, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.")]) {
		fprintf(stderr, "gpusonde record: %s cannot be \"%s\"\n", flag_table[flag].name, value);
		return false;
	}
	strbuf_addf(out, "&%s=%s", name, value);
	return true;
}

/* The request is done, and its file has been opened, or could not be. */
static bool is_done(const json_t *status, const char *action, json_int_t asked)
{
	const json_t *file = json_object_get(status, STRV_EQ(action, "last") ? "last" : "timeline");

	if (member_int(status, "done") < asked)
		return false;
	if (member_text(status, "error")[0] || member_text(file, "error")[0])
		return true;
	if (STRV_EQ(action, "start"))
		return member_int(file, "files") > 0;
	return json_is_true(json_object_get(file, "written"));
}

static int say_done(const json_t *status, const char *action)
{
	const json_t *file = json_object_get(status, STRV_EQ(action, "last") ? "last" : "timeline");

	if (member_text(status, "error")[0])
		return fail(member_text(status, "error"));
	if (member_text(file, "error")[0])
		return fail(member_text(file, "error"));
	printf("%s%s\n", STRV_EQ(action, "start") ? "recording to " : "", member_text(file, "file"));
	return EXIT_SUCCESS;
}

static int wait_done(const struct invocation *inv, const char *action, json_int_t asked)
{
	const struct timespec pause = { POLL_NS / NSEC_PER_SEC, POLL_NS % NSEC_PER_SEC };
	int64_t end = clock_mono_ns() + DONE_NS;
	char why[400] = "the agent has not answered in time: gpusonde record status says what it does";

	while (clock_mono_ns() < end) {
		json_t *status = ask_agent(inv, "GET", PATH, 200, why, sizeof(why));
		int r = EXIT_FAILURE;
		bool done = status && is_done(status, action, asked);

		if (done)
			r = say_done(status, action);
		json_decref(status);
		if (done)
			return r;
		if (!status)
			break;
		nanosleep(&pause, NULL);
	}
	return fail(why);
}

static int request(const struct invocation *inv, const char *action)
{
	struct strbuf target;
	char why[400] = "";
	json_int_t asked;
	json_t *json;

	strbuf_init(&target, 0);
	strbuf_addf(&target, PATH "?action=%s", action);
	if (!add_argument(inv, FLAG_RECORD_DURATION, "duration", &target) ||
	    !add_argument(inv, FLAG_RECORD_SIZE, "max_size", &target) ||
	    !add_argument(inv, FLAG_RECORD_PID, "pid", &target)) {
		strbuf_done(&target);
		return EXIT_USAGE;
	}
	json = ask_agent(inv, "POST", target.data, 202, why, sizeof(why));
	strbuf_done(&target);
	if (!json)
		return fail(why);
	asked = member_int(json, "asked");
	json_decref(json);
	return wait_done(inv, action, asked);
}

/* ---- status ---- */

static void print_missing(const json_t *missing)
{
	static const struct {
		const char *key, *text;
	} kinds[] = {
		{ "lost", "events were lost" },
		{ "dropped", "events did not fit" },
		{ "cut", "arguments did not fit" },
		{ "unwritten", "events could not be written: the disk is full or too slow" },
	};

	for (unsigned i = 0; i < ARRAY_SIZE(kinds); i++)
		if (member_int(missing, kinds[i].key) > 0)
			printf("INCOMPLETE: %" JSON_INTEGER_FORMAT " %s\n", member_int(missing, kinds[i].key),
			       kinds[i].text);
}

static void print_file(const char *what, const json_t *file)
{
	if (!member_text(file, "file")[0])
		return;
	printf("%s: %s, %" JSON_INTEGER_FORMAT " files, %" JSON_INTEGER_FORMAT " bytes%s\n", what,
	       member_text(file, "file"), member_int(file, "files"), member_int(file, "bytes"),
	       json_is_true(json_object_get(file, "written")) ? "" : ", being written");
	if (member_text(file, "error")[0])
		printf("ERROR: %s\n", member_text(file, "error"));
}

static int print_status(const struct invocation *inv)
{
	char why[400] = "";
	json_t *status = ask_agent(inv, "GET", PATH, 200, why, sizeof(why));

	if (!status)
		return fail(why);
	if (inv->flag[FLAG_JSON]) {
		json_dumpf(status, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII);
		putchar('\n');
	} else {
		bool on = json_is_true(json_object_get(status, "recording"));
		double last = json_number_value(json_object_get(status, "last_seconds"));

		puts(on ? "recording" : "nothing is recorded");
		print_file("timeline", json_object_get(status, "timeline"));
		print_missing(json_object_get(status, "missing"));
		if (last > 0)
			printf("the last %.0f s are kept: %" JSON_INTEGER_FORMAT " bytes\n", last,
			       member_int(status, "kept_bytes"));
		print_file("last", json_object_get(status, "last"));
	}
	json_decref(status);
	return EXIT_SUCCESS;
}

int record_main(struct invocation *inv)
{
	static const char *const actions[] = { "start", "stop", "last" };
	const char *action = inv->operands_n > 0 ? inv->operands[0] : "";

	if (inv->operands_n == 0)
		return recorder_main(inv);
	if (STRV_EQ(action, "status"))
		return print_status(inv);
	for (unsigned i = 0; i < ARRAY_SIZE(actions); i++)
		if (STRV_EQ(action, actions[i]))
			return request(inv, action);
	fprintf(stderr, "gpusonde record: say start, stop, status or last\n");
	return EXIT_USAGE;
}
