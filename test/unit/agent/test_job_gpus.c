// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/job_gpus.h"
#include "base/clock.h"
#include "model/publisher.h"

static char root[64];
static struct model *model;
static struct publisher *publisher;
static struct job_gpus *gpus;
static struct reading *reading;

/* A process of this name, and its parent. */
static void exists(uint32_t pid, uint32_t parent, const char *comm, unsigned ticks)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%u", root, pid);
	mkdir(path, 0755);
	strcat(path, "/stat");
	file = fopen(path, "w");
	assert_non_null(file);
	fprintf(file, "%u (%s) S %u 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 %u 0 0 0\n", pid, comm, parent,
		ticks);
	fclose(file);
}

static int begin(void **state)
{
	(void)state;
	strcpy(root, "/tmp/gpusonde-gres-XXXXXX");
	reading = calloc(1, sizeof(*reading));
	if (!mkdtemp(root) || !reading || model_new(NULL, &model) < 0 || publisher_new(&publisher) < 0)
		return -1;
	clock_freeze(true);
	exists(10, 1, "slurmstepd", 100);
	exists(11, 10, "bash", 110);
	exists(12, 11, "python) S 1 1", 120);
	exists(13, 1, "python", 130);
	return job_gpus_new(model, root, &gpus);
}

static int end(void **state)
{
	char command[96];

	(void)state;
	job_gpus_free(gpus);
	model_free(model);
	publisher_free(publisher);
	free(reading);
	snprintf(command, sizeof(command), "rm -rf %s", root);
	return system(command);
}

static void add_gpu(unsigned index, unsigned minor)
{
	struct reading_entity *e = &reading->entities[reading->entities_n++];

	*e = (struct reading_entity){ .index = index,
				      .minor = minor,
				      .gi = UINT32_MAX,
				      .ci = UINT32_MAX,
				      .parent = READING_NONE,
				      .process_list = PRESENCE_PRESENT };
	snprintf(e->uuid, sizeof(e->uuid), "GPU-%u", minor);
}

/* The minor numbers of the job's GPUs, ascending, each with a blank. */
static const char *given_to(const char *job)
{
	static char text[64];
	struct snapshot *s;

	memset(reading, 0, offsetof(struct reading, entities));
	reading->attach = 1;
	for (unsigned i = 0; i < 4; i++)
		add_gpu(i, 3 - i);
	clock_advance(NSEC_PER_SEC);
	reading->begin_ns = reading->end_ns = clock_boot_ns();
	assert_int_equal(model_apply(model, SOURCE_NVML, reading), 0);
	assert_int_equal(model_publish(model, publisher), 0);
	s = publisher_get(publisher);
	text[0] = '\0';
	for (unsigned minor = 0; minor < 4; minor++)
		for (uint32_t i = 0; i < s->allocated_n; i++)
			if (strcmp(s->allocated[i].id, job) == 0 &&
			    s->entities[s->allocated[i].entity].id.minor == minor)
				sprintf(text + strlen(text), "%u ", minor);
	snapshot_unref(s);
	return text;
}

static void a_job_has_its_gpus_while_its_daemon_lives(void **state)
{
	(void)state;
	job_gpus_add(gpus, "42", (struct process_id){ 12, 120 }, "0,2-3");
	assert_string_equal(given_to("42"), "0 2 3 ");
	job_gpus_add(gpus, "42", (struct process_id){ 12, 120 }, "1"); /* the first decides */
	assert_string_equal(given_to("42"), "0 2 3 ");
	clock_advance(10 * NSEC_PER_SEC);
	job_gpus_tick(gpus);
	assert_string_equal(given_to("42"), "0 2 3 ");
	exists(10, 1, "other", 999); /* its PID is another process's */
	clock_advance(10 * NSEC_PER_SEC);
	job_gpus_tick(gpus);
	assert_string_equal(given_to("42"), "");
}

static void a_job_has_its_gpus_while_a_step_of_it_lives(void **state)
{
	(void)state;
	exists(20, 1, "slurmstepd", 200);
	exists(21, 20, "python", 210);
	job_gpus_add(gpus, "42", (struct process_id){ 12, 120 }, "0,2");
	job_gpus_add(gpus, "42", (struct process_id){ 21, 210 }, "0,2");
	exists(10, 1, "other", 999); /* the first step is over */
	clock_advance(10 * NSEC_PER_SEC);
	job_gpus_tick(gpus);
	assert_string_equal(given_to("42"), "0 2 ");
	exists(20, 1, "other", 999);
	clock_advance(10 * NSEC_PER_SEC);
	job_gpus_tick(gpus);
	assert_string_equal(given_to("42"), "");
}

static void what_is_no_list_gives_nothing(void **state)
{
	static const char *const lists[] = {
		"", "x", "1,", "1-", "64", "3-2", "0 1", "18446744073709551616"
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		job_gpus_add(gpus, "42", (struct process_id){ 12, 120 }, lists[i]);
	job_gpus_add(gpus, "42", (struct process_id){ 13, 130 }, "0"); /* below no slurmstepd */
	job_gpus_add(gpus, "42", (struct process_id){ 99, 130 }, "0");
	assert_string_equal(given_to("42"), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_job_has_its_gpus_while_its_daemon_lives, begin, end),
		cmocka_unit_test_setup_teardown(a_job_has_its_gpus_while_a_step_of_it_lives, begin, end),
		cmocka_unit_test_setup_teardown(what_is_no_list_gives_nothing, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
