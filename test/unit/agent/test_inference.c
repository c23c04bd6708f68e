// SPDX-License-Identifier: Apache-2.0
/* What the agent believes of processes that find inference servers and read their pages. */
#include "needs.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/inference.h"
#include "base/clock.h"
#include "fake_inference.h"

enum { PATIENCE = 1000 }; /* turns of 20 ms */

static sd_event *event;
static struct model *model;
static struct publisher *publisher;
static struct snapshot *s; /* the newest */
static struct inference *inference;
static char program[4096], plan_path[64], finder_path[64];

static void plan(const char *words)
{
	FILE *file = fopen(plan_path, "we");

	assert_non_null(file);
	assert_true(fputs(words, file) >= 0);
	fclose(file);
}

static int begin(_unused_ void **state)
{
	snprintf(plan_path, sizeof(plan_path), FAKE_INFERENCE, (int)getpid());
	snprintf(finder_path, sizeof(finder_path), FAKE_INFERENCE_FINDER, (int)getpid());
	if (sd_event_new(&event) < 0 || publisher_new(&publisher) < 0)
		return -1;
	return model_new(&(struct model_limits){ 16, 16, 16, 16 }, &model);
}

static int end(_unused_ void **state)
{
	inference_free(inference);
	inference = NULL;
	snapshot_unref(s);
	s = NULL;
	model_free(model);
	publisher_free(publisher);
	event = sd_event_unref(event);
	unlink(plan_path);
	unlink(finder_path);
	return 0;
}

static void start(const char *words)
{
	const struct inference_config config = { .refresh_ns = NSEC_PER_MSEC,
						 .finder = program,
						 .reader = program };

	need_programs();
	plan(words);
	snprintf(program, sizeof(program), "%s/test/unit/agent/fake_inference", test_build_root());
	assert_int_equal(inference_new(event, model, &config, &inference), 0);
}

static void turn(void)
{
	inference_tick(inference);
	assert_true(sd_event_run(event, 20000) >= 0);
	assert_int_equal(model_publish(model, publisher), 0);
	snapshot_unref(s);
	s = publisher_get(publisher);
}

static bool is_in(uint32_t server_state)
{
	return s && s->servers.n == 1 && s->servers.list[0].state == server_state;
}

static void wait_state(uint32_t server_state)
{
	for (int turns = 0; !is_in(server_state); turns++) {
		assert_true(turns < PATIENCE);
		turn();
	}
}

static void test_a_server_and_its_page(_unused_ void **state)
{
	start("well");
	wait_state(SERVER_STATE_READ);
	assert_true(s->servers.read);
	assert_int_equal(s->servers.list[0].id.pid, 4711);
	assert_int_equal(s->servers.list[0].port, 8000);
	assert_true(s->servers.list[0].v[SERVER_RUNNING] == 3);
	assert_true(inference_finder_pid(inference) > 0 && inference_reader_pid(inference) > 0);
}

static void test_a_page_that_cannot_be_read(_unused_ void **state)
{
	start("page failed");
	wait_state(SERVER_STATE_FAILED);
	assert_string_equal(s->servers.list[0].error, "status 404");
	/* It is asked again, less often. */
	plan("well");
	wait_state(SERVER_STATE_READ);
	assert_string_equal(s->servers.list[0].error, "");
}

static void test_more_than_there_is_room_for(_unused_ void **state)
{
	start("find left");
	wait_state(SERVER_STATE_READ);
	assert_int_equal(s->servers.left_out, 3);
	assert_true(s->agent[AGENT_DROPPED_SERVERS] == 3);
}

/* 0: it has not answered. */
static pid_t answered(void)
{
	FILE *file = fopen(finder_path, "re");
	int pid = 0;

	if (file) {
		if (fscanf(file, "%d", &pid) != 1)
			pid = 0;
		fclose(file);
	}
	return pid;
}

/* Nothing of what it says is believed, and it is ended. */
static void refused_by_finder(const char *words)
{
	int turns = 0;

	unlink(finder_path);
	start(words);
	while (answered() == 0 || inference_finder_pid(inference) == answered()) {
		if (turns++ == PATIENCE)
			fail_msg("the finder's answer \"%s\" is believed", words);
		turn();
	}
	assert_int_equal(s->servers.n, 0);
}

static void test_servers_that_make_no_sense(_unused_ void **state)
{
	static const char *const plans[] = { "find kind", "find read",  "find port",
					     "find many", "find short", "find members" };

	for (unsigned i = 0; i < ARRAY_SIZE(plans); i++) {
		refused_by_finder(plans[i]);
		inference_free(inference);
		inference = NULL;
	}
}

static void test_pages_that_make_no_sense(_unused_ void **state)
{
	static const char *const plans[] = { "page negative", "page index", "page presence", "page gpu",
					     "page endless" };

	for (unsigned i = 0; i < ARRAY_SIZE(plans); i++) {
		start(plans[i]);
		wait_state(SERVER_STATE_FAILED);
		assert_string_equal(s->servers.list[0].error, "the process that reads it ended");
		assert_false(presence_is(s->servers.list[0].p[SERVER_RUNNING]));
		inference_free(inference);
		inference = NULL;
		snapshot_unref(s);
		s = NULL;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_server_and_its_page, begin, end),
		cmocka_unit_test_setup_teardown(test_a_page_that_cannot_be_read, begin, end),
		cmocka_unit_test_setup_teardown(test_more_than_there_is_room_for, begin, end),
		cmocka_unit_test_setup_teardown(test_servers_that_make_no_sense, begin, end),
		cmocka_unit_test_setup_teardown(test_pages_that_make_no_sense, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
