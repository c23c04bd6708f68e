// SPDX-License-Identifier: Apache-2.0
#include "needs.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "agent/dcgm/dcgm.h"
#include "base/clock.h"
#include "base/fd.h"

enum { PATIENCE = 1000 }; /* turns of 20 ms */

#define REFRESH_NS (5 * NSEC_PER_SEC)

static sd_event *event;
static struct model *model;
static struct publisher *publisher;
static struct snapshot *s; /* the newest */
static struct dcgm *dcgm;

static int begin(void **state)
{
	(void)state;
	if (sd_event_new(&event) < 0 || publisher_new(&publisher) < 0)
		return -1;
	return model_new(&(struct model_limits){ 16, 16, 16, 16 }, &model);
}

static int end(void **state)
{
	(void)state;
	clock_freeze(false);
	dcgm_free(dcgm);
	dcgm = NULL;
	snapshot_unref(s);
	s = NULL;
	model_free(model);
	publisher_free(publisher);
	event = sd_event_unref(event);
	return 0;
}

static void start(const char *host, const char *path)
{
	char program[4096];
	const struct dcgm_config config = { .program = program,
					    .host = host,
					    .port = 9400,
					    .path = path,
					    .node = "n1",
					    .refresh_ns = REFRESH_NS };

	need_programs();
	snprintf(program, sizeof(program), "%s/test/unit/agent/fake_dcgm", test_build_root());
	assert_int_equal(dcgm_new(event, model, &config, &dcgm), 0);
}

static void turn(void)
{
	dcgm_tick(dcgm);
	assert_true(sd_event_run(event, 20000) >= 0);
	assert_int_equal(model_publish(model, publisher), 0);
	snapshot_unref(s);
	s = publisher_get(publisher);
}

static double figure(enum agent_metric metric)
{
	return presence_is(s->agent_p[metric]) ? s->agent[metric] : -1;
}

/* Runs until so many pages were asked for. */
static void wait_pages(double n)
{
	for (int turns = 0; turns == 0 || figure(AGENT_DCGM_SCRAPES) < n; turns++) {
		assert_true(turns < PATIENCE);
		turn();
	}
	turn();
}

static void wait_state(enum reading_state wanted)
{
	for (int turns = 0;
	     turns == 0 || !s->sources[SOURCE_DCGM].in_use || s->sources[SOURCE_DCGM].state != wanted;
	     turns++) {
		assert_true(turns < PATIENCE);
		turn();
	}
}

static void gives_rows_and_a_reading(void **state)
{
	uint32_t n;

	(void)state;
	start("h", "/well");
	wait_state(READING_OK);
	assert_true(s->sources[SOURCE_DCGM].fresh);
	assert_true(s->fresh);
	assert_int_equal(s->scraped->n, 2);
	assert_non_null(scraped_find(s->scraped, "GPU-0", "", &n));
	assert_int_equal(n, 2);
	assert_true(s->scraped->rows[0].boot_ns > 0);
	assert_int_equal(s->scraped->stale_after_ns, 20 * NSEC_PER_SEC);
	assert_int_equal(s->entities_n, 1);
	assert_string_equal(s->entities[0].id.uuid, "GPU-0");
	assert_true(s->entities[0].id.v[SLOT_TEMPERATURE] == 40);
	assert_int_equal(s->entities[0].source, SOURCE_DCGM);
	assert_true(figure(AGENT_DCGM_SCRAPES) == 1 && figure(AGENT_DCGM_BYTES) == 1000);
	assert_true(figure(AGENT_DCGM_LINE_VALUE) == 2 && figure(AGENT_DCGM_LINE_NAME) == 0);
	assert_true(figure(AGENT_DCGM_FAILED_CONNECT) == 0 && figure(AGENT_DCGM_EXPORTERS) == 1);
	assert_true(dcgm_pid(dcgm) > 0);
}

static void says_why_nothing_was_read(void **state)
{
	(void)state;
	start("h", "/fails");
	wait_state(READING_FAILED);
	assert_non_null(strstr(s->sources[SOURCE_DCGM].error, "http://h:9400/fails: nobody answers there"));
	assert_int_equal(s->scraped->n, 0);
	assert_int_equal(s->entities_n, 0);
	assert_true(figure(AGENT_DCGM_FAILED_CONNECT) == 1);
}

/* What was said stays when a page is lost, and gets stale. */
static void a_lost_page_is_not_the_end(void **state)
{
	(void)state;
	start("h", "/once");
	wait_state(READING_OK);
	clock_freeze(true);
	clock_advance(REFRESH_NS);
	wait_pages(2);
	assert_int_equal(s->sources[SOURCE_DCGM].state, READING_OK);
	assert_int_equal(s->scraped->n, 2);
	assert_false(scraped_is_stale(s->scraped, &s->scraped->rows[0], s->boot_ns));
	assert_false(s->entities[0].stale);
	clock_advance(16 * NSEC_PER_SEC);
	wait_pages(3);
	assert_int_equal(s->sources[SOURCE_DCGM].state, READING_FAILED);
	assert_true(scraped_is_stale(s->scraped, &s->scraped->rows[0], s->boot_ns));
	assert_int_equal(s->scraped->n, 2);
	assert_true(s->entities[0].stale);
}

/* The user who runs an exporter chooses what its page costs. */
static void expect_a_rest(const char *path, int64_t seconds)
{
	clock_freeze(true);
	start("h", path);
	wait_pages(1);
	clock_advance((seconds - 1) * NSEC_PER_SEC);
	for (unsigned i = 0; i < 5; i++)
		turn();
	assert_true(figure(AGENT_DCGM_SCRAPES) == 1);
	clock_advance(NSEC_PER_SEC);
	wait_pages(2);
}

static void rests_after_much_work(void **state)
{
	(void)state;
	expect_a_rest("/busy", 20);
}

static void does_not_rest_without_end(void **state)
{
	(void)state;
	expect_a_rest("/liar", 140);
}

/* Its process is there, and has taken @ns of time when it is killed. */
static void lose_process(int64_t ns)
{
	for (int turns = 0; dcgm_pid(dcgm) == 0; turns++) {
		assert_true(turns < PATIENCE);
		turn();
	}
	clock_advance(ns);
	kill(dcgm_pid(dcgm), SIGKILL);
	for (int turns = 0; dcgm_pid(dcgm) != 0; turns++) {
		assert_true(turns < PATIENCE);
		turn();
	}
}

static void expect_nobody_for(int64_t ns)
{
	clock_advance(ns - NSEC_PER_SEC);
	for (unsigned i = 0; i < 5; i++)
		turn();
	assert_int_equal(dcgm_pid(dcgm), 0);
	clock_advance(NSEC_PER_SEC);
}

/* It tells no CPU time, which may have been all of the time. */
static void rests_after_a_loss(void **state)
{
	static const unsigned seconds[] = { 5, 5, 8, 16, 32, 60, 60 };

	(void)state;
	clock_freeze(true);
	start("h", "/silent");
	for (size_t i = 0; i < ARRAY_SIZE(seconds); i++) {
		lose_process(0);
		expect_nobody_for(seconds[i] * NSEC_PER_SEC);
	}
	end(state);
	assert_int_equal(begin(state), 0);
	clock_freeze(true);
	start("h", "/silent");
	lose_process(7 * NSEC_PER_SEC);
	expect_nobody_for(28 * NSEC_PER_SEC);
	lose_process(0);
}

/* An exporter that fails each second time says so some times, not each time. */
static void what_changes_all_the_time_is_not_always_said(void **state)
{
	_cleanup_close_ int before = dup(STDERR_FILENO);
	FILE *said = tmpfile();
	char line[1200];
	unsigned lines = 0;

	(void)state;
	clock_freeze(true);
	start("h", "/turns");
	dup2(fileno(said), STDERR_FILENO);
	for (double n = 1; n <= 60; n++) {
		wait_pages(n);
		clock_advance(REFRESH_NS);
	}
	dup2(before, STDERR_FILENO);
	rewind(said);
	while (fgets(line, sizeof(line), said))
		lines += strstr(line, "http://h:9400/turns") != NULL;
	fclose(said);
	assert_true(lines >= 5 && lines <= 20);
}

static void takes_exporters_that_are_found(void **state)
{
	struct dcgm_target list[] = { { .address = "10.0.0.1" },
				      { .address = "" },
				      { .address = "fd00::1", .node = "n2" },
				      { .address = "10.0.0.1" } };

	(void)state;
	start("", "/well");
	turn();
	assert_int_equal(dcgm_pid(dcgm), 0);
	assert_null(s->scraped);
	assert_false(s->sources[SOURCE_DCGM].in_use);
	dcgm_set_targets(dcgm, list, ARRAY_SIZE(list));
	wait_state(READING_OK);
	assert_true(figure(AGENT_DCGM_EXPORTERS) == 2);
	assert_int_equal(s->scraped->n, 4);
	/* One of them goes; what the other one has said stays until it is read again. */
	clock_freeze(true);
	dcgm_set_targets(dcgm, list, 1);
	clock_advance(REFRESH_NS);
	wait_pages(3);
	assert_int_equal(s->scraped->n, 2);
	dcgm_set_targets(dcgm, NULL, 0);
	clock_advance(REFRESH_NS);
	turn();
	turn();
	assert_int_equal(s->scraped->n, 0);
	assert_int_equal(dcgm_pid(dcgm), 0);
}

static void that_there_is_none_is_said(void **state)
{
	(void)state;
	start("", "/well");
	dcgm_set_targets(dcgm, NULL, 0);
	turn();
	assert_non_null(s->scraped);
	assert_int_equal(s->scraped->n, 0);
	assert_false(s->sources[SOURCE_DCGM].in_use);
}

/* The first page's may be days old. */
static void a_new_xid_is_an_event(void **state)
{
	(void)state;
	start("h", "/xids");
	wait_state(READING_OK);
	assert_int_equal(s->xids_n, 0);
	clock_freeze(true);
	clock_advance(REFRESH_NS);
	wait_pages(2);
	assert_int_equal(s->xids_n, 1);
	assert_int_equal(s->xids[0].code, 31);
	assert_int_equal(s->xids[0].count, 1);
	clock_advance(REFRESH_NS);
	wait_pages(3);
	assert_int_equal(s->xids[0].count, 1);
}

/* The kernel log has it earlier, and more of it. */
static void but_not_beside_the_kernel_log(void **state)
{
	(void)state;
	start("h", "/xids");
	wait_state(READING_OK);
	clock_freeze(true);
	clock_advance(REFRESH_NS);
	model_set_source(model, SOURCE_KMSG, READING_OK, "");
	wait_pages(2);
	assert_int_equal(s->xids_n, 0);
}

/* What other nodes' pages say does not make this one ready. */
static void other_nodes_do_not_speak_for_this_one(void **state)
{
	(void)state;
	start("h", "/others");
	wait_state(READING_OK);
	assert_int_equal(s->scraped->n, 2);
	assert_true(s->sources[SOURCE_DCGM].fresh);
	assert_false(s->fresh);
	assert_int_equal(s->device_source, SOURCE_NVML);
	assert_int_equal(s->entities_n, 0);
}

static void texts_end(void **state)
{
	(void)state;
	start("h", "/unterminated");
	wait_state(READING_OK);
	assert_int_equal(strlen(s->entities[0].id.name), sizeof(s->entities[0].id.name) - 1);
}

static void what_is_no_answer_is_refused(void **state)
{
	static const char *const paths[] = { "/target", "/rows",    "/many", "/twice",
					     "/early",  "/failure", "/junk" };

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		start("h", paths[i]);
		wait_state(READING_FAILED);
		assert_non_null(strstr(s->sources[SOURCE_DCGM].error, "gpusonde-dcgm, ended"));
		assert_true(!s->scraped || s->scraped->n == 0);
		end(state);
		assert_int_equal(begin(state), 0);
	}
}

#define CASE(name_) cmocka_unit_test_setup_teardown(name_, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(gives_rows_and_a_reading),
		CASE(says_why_nothing_was_read),
		CASE(a_lost_page_is_not_the_end),
		CASE(rests_after_much_work),
		CASE(does_not_rest_without_end),
		CASE(rests_after_a_loss),
		CASE(what_changes_all_the_time_is_not_always_said),
		CASE(takes_exporters_that_are_found),
		CASE(that_there_is_none_is_said),
		CASE(a_new_xid_is_an_event),
		CASE(but_not_beside_the_kernel_log),
		CASE(other_nodes_do_not_speak_for_this_one),
		CASE(texts_end),
		CASE(what_is_no_answer_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
