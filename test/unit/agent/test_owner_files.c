// SPDX-License-Identifier: Apache-2.0
#include "needs.h"

#include <stdio.h>
#include <string.h>

#include "agent/owner_files.h"
#include "base/clock.h"

#define PATIENCE_NS (20 * NSEC_PER_SEC)

static sd_event *event;
static struct model *model;
static struct publisher *publisher;
static struct owner_files *files;
static struct source source; /* as of the newest snapshot */
static double not_fit; /* the same */

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
	owner_files_free(files);
	files = NULL;
	model_free(model);
	publisher_free(publisher);
	event = sd_event_unref(event);
	return 0;
}

static void start(const char *how)
{
	char program[4096];
	const struct owner_files_config config = { .program = program, .root = how };

	need_programs();
	snprintf(program, sizeof(program), "%s/test/unit/agent/fake_owners", test_build_root());
	assert_int_equal(owner_files_new(event, model, &config, &files), 0);
}

/* Runs until the source has been heard of. */
static void wait_heard(void)
{
	int64_t until_ns = clock_mono_ns() + PATIENCE_NS;

	do {
		struct snapshot *snapshot;

		assert_true(clock_mono_ns() < until_ns);
		owner_files_tick(files);
		assert_true(sd_event_run(event, 20000) >= 0);
		assert_int_equal(model_publish(model, publisher), 0);
		snapshot = publisher_get(publisher);
		source = snapshot->sources[SOURCE_FILES];
		not_fit = snapshot->agent[AGENT_DROPPED_ALLOCATIONS];
		snapshot_unref(snapshot);
	} while (!source.in_use);
}

static void takes_a_table_in_parts(void **state)
{
	(void)state;
	start("well");
	wait_heard();
	assert_int_equal(source.state, READING_OK);
	assert_true(source.fresh);
	assert_int_equal(source.dropped, 0);
	assert_true(owner_files_pid(files) > 0);
}

static void takes_what_was_given(void **state)
{
	(void)state;
	start("given");
	wait_heard();
	assert_int_equal(source.state, READING_OK);
	assert_int_equal(source.dropped, 0);
	assert_int_equal(not_fit, 5);
}

static void passes_errors_on(void **state)
{
	(void)state;
	start("says an error");
	wait_heard();
	assert_int_equal(source.state, READING_FAILED);
	assert_string_equal(source.error, "names of containers: /var/log: ?\n");
}

/* The whole member was written to. */
static void bounds_errors(void **state)
{
	(void)state;
	start("error without end");
	wait_heard();
	assert_int_equal(source.state, READING_FAILED);
	assert_int_equal(strlen(source.error), strlen("names of containers: ") + 127);
}

/* Its texts end within their members, whatever it sends. */
static void ends_texts(void **state)
{
	(void)state;
	start("unterminated");
	wait_heard();
	assert_int_equal(source.state, READING_OK);
}

static void refuses(const char *how)
{
	start(how);
	wait_heard();
	assert_int_equal(source.state, READING_FAILED);
	assert_string_equal(source.error,
			    "names of containers: the process that reads them, gpusonde-owners, ended");
}

#define REFUSES(name_, how_)            \
	static void name_(void **state) \
	{                               \
		(void)state;            \
		refuses(how_);          \
	}
REFUSES(refuses_a_part_twice, "part twice")
REFUSES(refuses_a_part_beyond_the_end, "part beyond the end")
REFUSES(refuses_too_many_rows, "too many rows")
REFUSES(refuses_more_than_the_table, "more than the table")
REFUSES(refuses_no_table, "no table")
REFUSES(refuses_the_same_as_none, "same as none")
REFUSES(refuses_a_short_answer, "short")
REFUSES(refuses_given_before_names, "given before names")
REFUSES(refuses_too_many_given, "too many given")
REFUSES(refuses_more_given_than_said, "more given than said")
REFUSES(refuses_names_for_given, "names for given")
REFUSES(survives_its_end, "ends")

static void says_that_there_is_no_program(void **state)
{
	const struct owner_files_config config = { .program = "/nowhere/gpusonde-owners", .root = "/" };

	(void)state;
	assert_int_equal(owner_files_new(event, model, &config, &files), 0);
	wait_heard();
	assert_int_equal(source.state, READING_FAILED);
	assert_non_null(strstr(source.error, "No such file or directory"));
}

#define CASE(name_) cmocka_unit_test_setup_teardown(name_, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(takes_a_table_in_parts),
		CASE(takes_what_was_given),
		CASE(passes_errors_on),
		CASE(bounds_errors),
		CASE(ends_texts),
		CASE(refuses_a_part_twice),
		CASE(refuses_a_part_beyond_the_end),
		CASE(refuses_too_many_rows),
		CASE(refuses_more_than_the_table),
		CASE(refuses_no_table),
		CASE(refuses_the_same_as_none),
		CASE(refuses_a_short_answer),
		CASE(refuses_given_before_names),
		CASE(refuses_too_many_given),
		CASE(refuses_more_given_than_said),
		CASE(refuses_names_for_given),
		CASE(survives_its_end),
		CASE(says_that_there_is_no_program),
	};

	return cmocka_run_group_tests_name("owner_files", tests, NULL, NULL);
}
