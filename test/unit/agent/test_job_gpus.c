// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/job_gpus.h"
#include "base/clock.h"
#include "model/publisher.h"

static char root[64];
static struct model *model;
static struct publisher *publisher;
static struct job_gpus *gpus;
static struct reading *reading;

static void write_file(uint32_t pid, const char *name, const char *text)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%u", root, pid);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/%u/%s", root, pid, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

/* A process of this name, its parent, its user and its executable. */
static void exists_as(uint32_t pid, uint32_t parent, const char *comm, unsigned ticks, unsigned uid,
		      const char *exe)
{
	char text[256];

	snprintf(text, sizeof(text), "%u (%s) S %u 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 %u 0 0 0\n", pid, comm,
		 parent, ticks);
	write_file(pid, "stat", text);
	snprintf(text, sizeof(text), "Name:\t%s\nUid:\t%u\t0\t0\t0\n", comm, uid);
	write_file(pid, "status", text);
	snprintf(text, sizeof(text), "%s/%u/exe", root, pid);
	(void)unlink(text);
	assert_int_equal(symlink(exe, text), 0);
}

static void exists(uint32_t pid, uint32_t parent, const char *comm, unsigned ticks)
{
	char exe[64];

	snprintf(exe, sizeof(exe), "/usr/sbin/%s", comm);
	exists_as(pid, parent, comm, ticks, 0, exe);
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

static void read_devices(void);

static int begin_with_devices(void **state)
{
	int r = begin(state);

	if (r == 0)
		read_devices();
	return r;
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

static uint32_t instances; /* of the first GPU */
static unsigned gpus_n = 4;

static void read_devices(void)
{
	memset(reading, 0, offsetof(struct reading, entities));
	reading->attach = 1;
	for (unsigned i = 0; i < gpus_n; i++)
		add_gpu(i, gpus_n - 1 - i);
	for (uint32_t i = 0; i < instances; i++) {
		struct reading_entity *e = &reading->entities[reading->entities_n++];

		*e = reading->entities[0];
		e->parent = 0;
		e->gi = e->ci = i;
		e->minor = UINT32_MAX;
		snprintf(e->mig_uuid, sizeof(e->mig_uuid), "MIG-%u", i);
	}
	clock_advance(NSEC_PER_SEC);
	reading->begin_ns = reading->end_ns = clock_boot_ns();
	assert_int_equal(model_apply(model, SOURCE_NVML, reading), 0);
}

/* The minor numbers of the job's GPUs, ascending, each with a blank. */
static const char *given_to(const char *job)
{
	static char text[64];
	struct snapshot *s;

	read_devices();
	assert_int_equal(model_publish(model, publisher), 0);
	s = publisher_get(publisher);
	text[0] = '\0';
	for (unsigned minor = 0; minor < 4; minor++)
		for (uint32_t i = 0; i < s->allocated_n; i++)
			if (strcmp(s->allocated[i].id, job) == 0 &&
			    s->entities[s->allocated[i].entity].id.minor == minor && s->allocated[i].claimed)
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

/* A name is anybody's to choose; so is a program's, and whose a process seems by its mode. */
static void a_daemon_is_roots(void **state)
{
	(void)state;
	exists_as(30, 1, "slurmstepd", 300, 1000, "/usr/sbin/slurmstepd");
	exists(31, 30, "python", 310);
	exists_as(32, 1, "slurmstepd", 320, 0, "/usr/bin/bash");
	exists(33, 32, "python", 330);
	job_gpus_add(gpus, "43", (struct process_id){ 31, 310 }, "0");
	job_gpus_add(gpus, "44", (struct process_id){ 33, 330 }, "0");
	assert_string_equal(given_to("43"), "");
	assert_string_equal(given_to("44"), "");
	/* Below another's that is: that one counts. One that was replaced since runs on. */
	exists_as(40, 1, "slurmstepd", 400, 0, "/usr/sbin/slurmstepd-wlm (deleted)");
	exists_as(41, 40, "slurmstepd", 410, 1000, "/tmp/slurmstepd");
	exists(42, 41, "python", 420);
	job_gpus_add(gpus, "45", (struct process_id){ 42, 420 }, "0");
	assert_string_equal(given_to("45"), "0 ");
	exists(41, 1, "other", 999);
	clock_advance(10 * NSEC_PER_SEC);
	job_gpus_tick(gpus);
	assert_string_equal(given_to("45"), "0 ");
}

/* Nor are a GPU's numbers those of instances, which Slurm counts, too. */
static void numbers_of_no_gpu_are_not_believed(void **state)
{
	(void)state;
	job_gpus_add(gpus, "42", (struct process_id){ 12, 120 }, "0-4");
	assert_string_equal(given_to("42"), "");
	instances = 2;
	read_devices();
	job_gpus_add(gpus, "42", (struct process_id){ 12, 120 }, "0");
	assert_string_equal(given_to("42"), "");
	instances = 0;
	read_devices();
	job_gpus_add(gpus, "42", (struct process_id){ 12, 120 }, "0-3");
	assert_string_equal(given_to("42"), "0 1 2 3 ");
}

static double dropped(void)
{
	struct snapshot *s;
	double n;

	(void)given_to("");
	s = publisher_get(publisher);
	n = s->agent[AGENT_DROPPED_ALLOCATIONS];
	snapshot_unref(s);
	return n;
}

enum { JOBS_MAX = 256 };

static void jobs_that_do_not_fit_are_counted(void **state)
{
	double before = dropped();

	(void)state;
	for (unsigned i = 0; i < JOBS_MAX + 2; i++) {
		char id[16];

		snprintf(id, sizeof(id), "%u", 1000 + i);
		job_gpus_add(gpus, id, (struct process_id){ 12, 120 }, "0,2");
		job_gpus_add(gpus, id, (struct process_id){ 12, 120 }, "0,2");
	}
	assert_true(dropped() - before == 4);
}

/* So are the GPUs of jobs that do; once, for as long as they do not fit. */
static void rows_that_do_not_fit_are_counted_once(void **state)
{
	const struct model_limits limits = { .processes = 16, .series = 4, .exited = 4, .workloads = 8000 };
	double before;

	(void)state;
	gpus_n = 20;
	model_set_limits(model, &limits);
	before = dropped();
	for (unsigned i = 0; i < JOBS_MAX; i++) {
		char id[16];

		snprintf(id, sizeof(id), "%u", 1000 + i);
		job_gpus_add(gpus, id, (struct process_id){ 12, 120 }, "0-19");
		if (i == 250)
			assert_true(dropped() - before == 251 * 20 - ALLOCATIONS_MAX);
	}
	assert_true(dropped() - before == JOBS_MAX * 20 - ALLOCATIONS_MAX);
	gpus_n = 4;
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

#define CASE(test_) cmocka_unit_test_setup_teardown(test_, begin_with_devices, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_job_has_its_gpus_while_its_daemon_lives),
		CASE(a_job_has_its_gpus_while_a_step_of_it_lives),
		CASE(a_daemon_is_roots),
		CASE(numbers_of_no_gpu_are_not_believed),
		CASE(jobs_that_do_not_fit_are_counted),
		CASE(rows_that_do_not_fit_are_counted_once),
		CASE(what_is_no_list_gives_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
