// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/driver/pids.h"
#include "base/clock.h"
#include "base/macro.h"

static char root[64];
static struct reading *reading;
static struct driver_pids *pids;

static void put(uint32_t pid, const char *name, const char *text)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%u/%s", root, pid, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

/* A process of this machine, which has another PID in its own namespace. */
static void exists(uint32_t pid, uint32_t inner, uint64_t ticks)
{
	char path[128], text[256];

	snprintf(path, sizeof(path), "%s/%u", root, pid);
	mkdir(path, 0755);
	snprintf(text, sizeof(text),
		 "%u (p) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 %llu 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 "
		 "0 0 0 0 0 0 "
		 "0 0 0 0 0 0 0 0\n",
		 pid, (unsigned long long)ticks);
	put(pid, "stat", text);
	if (inner == pid)
		snprintf(text, sizeof(text), "Name:\tp\nUid:\t0\t0\t0\t0\nNStgid:\t%u\n", pid);
	else
		snprintf(text, sizeof(text), "Name:\tp\nUid:\t0\t0\t0\t0\nNStgid:\t%u\t%u\n", pid, inner);
	put(pid, "status", text);
}

/* Without it a process looks like a kernel thread. */
static void has_program(uint32_t pid)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%u/exe", root, pid);
	assert_int_equal(symlink("/bin/true", path), 0);
}

static void opens_a_gpu(uint32_t pid)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%u/fd", root, pid);
	mkdir(path, 0755);
	strcat(path, "/3");
	assert_int_equal(symlink("/dev/nvidia0", path), 0);
}

static struct reading_process *add(uint32_t pid, uint8_t types)
{
	struct reading_process *p = &reading->processes[reading->processes_n++];

	*p = (struct reading_process){ .pid = pid, .types = types };
	if (types) {
		p->v[PROCESS_MEMORY] = 100;
		p->p[PROCESS_MEMORY] = PRESENCE_PRESENT;
	} else {
		p->v[PROCESS_BUSY] = 0.5;
		p->p[PROCESS_BUSY] = PRESENCE_PRESENT;
	}
	return p;
}

static int begin(void **state)
{
	(void)state;
	strcpy(root, "/tmp/gpusonde-pids-XXXXXX");
	assert_non_null(mkdtemp(root));
	reading = calloc(1, sizeof(*reading));
	clock_freeze(true);
	return reading && driver_pids_new(root, &pids) == 0 ? 0 : -1;
}

static int end(void **state)
{
	char command[96];

	(void)state;
	driver_pids_free(pids);
	free(reading);
	snprintf(command, sizeof(command), "rm -rf %s", root);
	return system(command);
}

static void again(void)
{
	reading->processes_n = 0;
	reading->unrecognised[0] = '\0';
	reading->attach = 1;
	clock_advance(NSEC_PER_SEC);
}

/* So often that it is believed. */
static unsigned translate(void (*fill)(void))
{
	unsigned left_out = 0;

	for (unsigned i = 0; i < 3; i++) {
		again();
		fill();
		left_out = driver_pids_translate(pids, reading);
	}
	return left_out;
}

static void busy(void)
{
	add(7, PROCESS_TYPE_COMPUTE);
	add(4007, 0);
}

static void a_busy_process_is_found_by_its_utilisation(void **state)
{
	(void)state;
	exists(4007, 7, 500);
	exists(4008, 7, 500); /* another one with this PID, which does nothing */
	exists(7, 7, 1);
	again();
	busy();
	driver_pids_translate(pids, reading);
	assert_int_equal(reading->processes[0].pid, 7); /* once may be chance */
	assert_int_equal(translate(busy), 0);
	assert_int_equal(reading->processes[0].pid, 4007);
	assert_true(reading->processes[0].v[PROCESS_MEMORY] == 100);
	assert_true(reading->processes[0].v[PROCESS_BUSY] == 0.5);
	assert_int_equal(reading->processes[1].pid, 0);
	assert_non_null(strstr(reading->unrecognised, "PIDs of the processes' own namespaces"));
	/* It does nothing for a while, and stays the same. */
	again();
	add(7, PROCESS_TYPE_COMPUTE);
	assert_int_equal(driver_pids_translate(pids, reading), 0);
	assert_int_equal(reading->processes[0].pid, 4007);
	/* Its PID is another process's. */
	exists(4007, 9, 900);
	clock_advance(20 * NSEC_PER_SEC);
	again();
	add(7, PROCESS_TYPE_COMPUTE);
	driver_pids_translate(pids, reading);
	assert_int_not_equal(reading->processes[0].pid, 4007);
}

static void idle(void)
{
	add(7, PROCESS_TYPE_COMPUTE);
	add(9, PROCESS_TYPE_COMPUTE);
}

static void idle_processes_are_found_where_only_one_fits(void **state)
{
	(void)state;
	exists(4007, 7, 500);
	exists(4009, 9, 500);
	exists(5009, 9, 500);
	assert_int_equal(translate(idle), 1);
	assert_int_equal(reading->processes[0].pid, 4007);
	assert_int_equal(reading->processes[1].pid, 0);
	/* Of several, the one that has a GPU open. */
	opens_a_gpu(5009);
	assert_int_equal(translate(idle), 0);
	assert_int_equal(reading->processes[1].pid, 5009);
}

static void the_machines_own_process_may_be_meant(void **state)
{
	(void)state;
	exists(4007, 7, 500);
	exists(4009, 9, 500);
	exists(9, 9, 1); /* a kernel thread */
	assert_int_equal(translate(busy), 0);
	again();
	idle();
	assert_int_equal(driver_pids_translate(pids, reading), 0);
	assert_int_equal(reading->processes[1].pid, 4009);
	exists(4011, 11, 500);
	exists(11, 11, 1);
	has_program(11);
	clock_advance(10 * NSEC_PER_SEC);
	again();
	add(11, PROCESS_TYPE_COMPUTE);
	assert_int_equal(driver_pids_translate(pids, reading), 1);
	assert_int_equal(reading->processes[0].pid, 0);
}

static void host_pids(void)
{
	add(4007, PROCESS_TYPE_COMPUTE);
	add(4009, 0);
}

/* As other drivers do: listed by the machine's PIDs; one is ending, and listed no more. */
static void the_machines_pids_are_left_alone(void **state)
{
	(void)state;
	exists(4007, 7, 500);
	exists(4009, 9, 500);
	assert_int_equal(translate(host_pids), 0);
	assert_int_equal(reading->processes[0].pid, 4007);
	assert_int_equal(reading->processes[1].pid, 4009);
	assert_string_equal(reading->unrecognised, "");
}

#define CASE(name_) cmocka_unit_test_setup_teardown(name_, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_busy_process_is_found_by_its_utilisation),
		CASE(idle_processes_are_found_where_only_one_fits),
		CASE(the_machines_own_process_may_be_meant),
		CASE(the_machines_pids_are_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
