// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/macro.h"
#include "proc/proc.h"

enum { PID = 4711 };

static char root[64];

static const char *file(const char *name)
{
	static char path[160];

	snprintf(path, sizeof(path), "%s/%d/%s", root, PID, name);
	return path;
}

static void write_text(const char *name, const char *text)
{
	assert_int_equal(write_file_atomic(file(name), text, strlen(text), 0600), 0);
}

static int setup(_unused_ void **state)
{
	snprintf(root, sizeof(root), "/tmp/gpusonde-test-XXXXXX");
	return mkdtemp(root) && mkdir(file(""), 0700) == 0 ? 0 : -1;
}

static int teardown(_unused_ void **state)
{
	unlink(file("stat"));
	unlink(file("status"));
	unlink(file("cgroup"));
	rmdir(file(""));
	return rmdir(root);
}

#define REST " S 1 2 3 0 -1 4194560 100 0 0 0 5 6 0 0 20 0 9 0 987654 1000 20 18446744073709551615 1 1 0\n"

static void a_whole_process(_unused_ void **state)
{
	struct proc_identity identity;
	struct process_id id = { 0 };

	write_text("stat", "4711 (python3)" REST);
	write_text("status", "Name:\tpython3\nUmask:\t0022\nUid:\t1000\t0\t0\t0\nGid:\t5\t5\t5\t5\n"
			     "NStgid:\t4711\t88\t12\nNSpid:\t4711\t88\t13\n");
	write_text("cgroup", "0::/system.slice/slurmstepd.scope/job_17/step_0\n");
	assert_int_equal(proc_identify(root, PID, &identity), 0);
	assert_int_equal(identity.id.start_ticks, 987654);
	assert_int_equal(identity.uid, 1000);
	assert_int_equal(identity.ns_pid, 12);
	assert_string_equal(identity.comm, "python3");
	assert_int_equal(identity.cgroup.kind, PROC_CGROUP_JOB);
	assert_string_equal(identity.cgroup.id, "17");
	assert_int_equal(proc_process_id(root, PID, &id), 0);
	assert_int_equal(id.start_ticks, 987654);
	assert_int_equal(id.pid, PID);
	assert_int_equal(identity.id.pid, PID);
}

static void hostile_names(_unused_ void **state)
{
	static const struct {
		const char *stat, *comm;
	} cases[] = {
		{ "4711 (a) S 1 (b)" REST, "a) S 1 (b" },
		{ "4711 (two\nlines)" REST, "two\nlines" },
		{ "4711 ()" REST, "" },
		{ "4711 (\xff\xfe\x80)" REST, "???" },
		{ "4711 (sixty-four bytes and more, which no name of the kernel's own ever has)" REST,
		  "sixty-four bytes and more, which no name of the kernel's own ev" },
	};
	struct proc_identity identity;

	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		write_text("stat", cases[i].stat);
		assert_int_equal(proc_identify(root, PID, &identity), 0);
		assert_string_equal(identity.comm, cases[i].comm);
		assert_int_equal(identity.id.start_ticks, 987654);
	}
}

static void a_user_in_very_many_groups(_unused_ void **state)
{
	struct proc_identity identity;
	char status[20000] = "Name:\tx\nUid:\t1000\t1000\t1000\t1000\nGroups:\t";

	for (size_t length = strlen(status); length < sizeof(status) - 8; length += 7)
		memcpy(status + length, "123456 ", 8);
	write_text("stat", "4711 (x)" REST);
	write_text("status", status);
	assert_int_equal(proc_identify(root, PID, &identity), 0);
	assert_int_equal(identity.uid, 1000);
}

static void what_is_missing_stays_unknown(_unused_ void **state)
{
	struct proc_identity identity;

	write_text("stat", "4711 (x)" REST);
	assert_int_equal(proc_identify(root, PID, &identity), 0);
	assert_int_equal(identity.uid, UINT32_MAX);
	assert_int_equal(identity.cgroup.kind, PROC_CGROUP_NONE);
	write_text("status", "Name:\tUid: 7\n");
	assert_int_equal(proc_identify(root, PID, &identity), 0);
	assert_int_equal(identity.uid, UINT32_MAX);
}

static void garbage_is_an_error(_unused_ void **state)
{
	static const char *const garbage[] = {
		"",
		"4711",
		"4711 (x",
		("4711 )x(" REST),
		"4711 (x) S 1 2 3\n",
		"4711 (x) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 letters 20\n"
	};
	struct proc_identity identity;
	struct process_id id;
	char huge[5000];

	for (unsigned i = 0; i < ARRAY_SIZE(garbage); i++) {
		write_text("stat", garbage[i]);
		assert_int_equal(proc_identify(root, PID, &identity), -EBADMSG);
		assert_int_equal(proc_process_id(root, PID, &id), -EBADMSG);
	}
	memset(huge, 'x', sizeof(huge) - 1);
	huge[sizeof(huge) - 1] = '\0';
	write_text("stat", huge);
	assert_int_equal(proc_identify(root, PID, &identity), -E2BIG);
}

static void who_is_not_there(_unused_ void **state)
{
	struct proc_identity identity;
	struct process_id id;

	assert_int_equal(proc_identify(root, PID + 1, &identity), -ESRCH);
	assert_int_equal(proc_process_id(root, PID + 1, &id), -ESRCH);
	assert_int_equal(proc_identify(root, PID, &identity), -ESRCH); /* its folder is, its files are not */
}

static void this_very_process(_unused_ void **state)
{
	struct proc_identity identity;
	struct process_id id;

	assert_int_equal(prctl(PR_SET_NAME, "a) b (c", 0, 0, 0), 0);
	assert_int_equal(proc_identify("/proc", (uint32_t)getpid(), &identity), 0);
	assert_string_equal(identity.comm, "a) b (c");
	assert_int_equal(identity.uid, getuid());
	assert_true(identity.id.start_ticks > 0);
	assert_int_equal(proc_process_id("/proc", (uint32_t)getpid(), &id), 0);
	assert_true(process_id_equal(id, identity.id));
}

static void one_that_has_ended(_unused_ void **state)
{
	struct proc_identity identity;
	pid_t child = fork();

	if (child == 0)
		_exit(0);
	assert_true(child > 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(proc_identify("/proc", (uint32_t)child, &identity), -ESRCH);
}

static void states_of_threads(_unused_ void **state)
{
	const uint32_t pid = (uint32_t)getpid();

	assert_int_equal(proc_thread_state("/proc", pid, pid), 'R');
	assert_int_equal(proc_thread_state("/proc", pid, 1), '\0');
	assert_int_equal(proc_thread_state(root, PID, PID), '\0');
}

int main(void)
{
#define CASE(name_) cmocka_unit_test_setup_teardown(name_, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(a_whole_process),
		CASE(hostile_names),
		CASE(a_user_in_very_many_groups),
		CASE(what_is_missing_stays_unknown),
		CASE(garbage_is_an_error),
		CASE(who_is_not_there),
		CASE(states_of_threads),
		cmocka_unit_test(this_very_process),
		cmocka_unit_test(one_that_has_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
