// SPDX-License-Identifier: Apache-2.0
/*
 * Children of ours that open, inherit, drop and delete a copied library named as the driver's, found by this
 * kernel's own records.
 */
#include "needs.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "targets.h"

static char library[128]; /* of the fixture in use */

static void copy_library(struct fixture *f)
{
	void *handle = dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL);
	_cleanup_close_ int from = -1, to = -1;
	struct link_map *map;
	struct stat st;

	assert_non_null(handle);
	assert_int_equal(dlinfo(handle, RTLD_DI_LINKMAP, &map), 0);
	snprintf(library, sizeof(library), "%s/libcuda.so.1", f->dir);
	from = open(map->l_name, O_RDONLY | O_CLOEXEC);
	to = open(library, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	assert_true(from >= 0 && to >= 0);
	assert_int_equal(fstat(from, &st), 0);
	assert_int_equal(sendfile(to, from, NULL, (size_t)st.st_size), st.st_size);
	dlclose(handle);
}

struct child {
	pid_t pid;
	int orders, answers;
};

/* Does as told, a letter each, and answers each with the PID of what it made, or 0. */
static void child_obey(int orders, int answers)
{
	void *handle = NULL;
	char order;
	pid_t pid;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(orders, &order, 1) == 1) {
		pid = 0;
		switch (order) {
		case 'o':
			handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
			if (!handle)
				_exit(2);
			break;
		case 'c':
			dlclose(handle);
			break;
		case 'u':
			unlink(library);
			break;
		case 'f':
			pid = fork();
			if (pid == 0) {
				prctl(PR_SET_PDEATHSIG, SIGKILL);
				for (;;)
					pause();
			}
			break;
		case 'x':
			if (write(answers, &pid, sizeof(pid)) != sizeof(pid))
				_exit(3);
			execl("/bin/cat", "cat", (char *)NULL);
			_exit(4);
		default:
			_exit(0);
		}
		if (write(answers, &pid, sizeof(pid)) != sizeof(pid))
			_exit(3);
	}
	_exit(0);
}

static struct child child_new(void)
{
	int orders[2], answers[2];
	struct child child;

	assert_int_equal(pipe2(orders, O_CLOEXEC), 0);
	assert_int_equal(pipe2(answers, O_CLOEXEC), 0);
	child.pid = fork();
	assert_true(child.pid >= 0);
	if (child.pid == 0) {
		close(orders[1]);
		close(answers[0]);
		dup2(orders[0], STDIN_FILENO); /* what it executes waits for the end of this */
		child_obey(orders[0], answers[1]);
	}
	close(orders[0]);
	close(answers[1]);
	child.orders = orders[1];
	child.answers = answers[0];
	return child;
}

static pid_t child_do(const struct child *child, char order)
{
	pid_t pid;

	assert_int_equal(write(child->orders, &order, 1), 1);
	assert_int_equal(read(child->answers, &pid, sizeof(pid)), sizeof(pid));
	return pid;
}

static void child_end(struct child *child)
{
	close(child->orders);
	close(child->answers);
	kill(child->pid, SIGKILL);
	assert_int_equal(waitpid(child->pid, NULL, 0), child->pid);
}

static bool start(struct fixture *f, unsigned roles, pid_t pid)
{
	struct target_stats stats;

	fixture_start(f, NULL, roles, pid);
	targets_stats(f->targets, &stats);
	if (!stats.by_records)
		print_message("# SKIP no perf events here: %s\n", stats.why_no_records);
	return stats.by_records;
}

static void opened_later_inherited_executed_ended(void **state)
{
	struct fixture *f = *state;
	struct child child;
	struct stat st;
	int64_t begin;
	pid_t heir;

	copy_library(f);
	if (!start(f, LIBRARY_BIT(PROBE_CUDA), 0))
		skip();
	assert_int_equal(targets_scan(f->targets), 0);
	until_scans(f, 1);
	f->told_n = 0;
	child = child_new();
	begin = clock_mono_ns();
	child_do(&child, 'o');
	until_told(f, TOLD_PROCESS, child.pid, 1);
	printf("# told of a library %.1f ms after dlopen began\n",
	       (double)(clock_mono_ns() - begin) / (double)NSEC_PER_MSEC);
	assert_int_equal(stat(library, &st), 0);
	assert_int_equal(told(f, TOLD_FILE, 0, st.st_ino), 1);
	heir = child_do(&child, 'f');
	until_told(f, TOLD_PROCESS, heir, 1);
	assert_int_equal(kill(heir, SIGKILL), 0);
	until_told(f, TOLD_GONE, heir, 1);
	child_do(&child, 'x');
	until_told(f, TOLD_EXEC, child.pid, 1);
	until_told(f, TOLD_FILE_GONE, 0, 1);
	child_end(&child);
	assert_int_equal(told(f, TOLD_GONE, child.pid, 0), 0);
}

static void deleted_before_anybody_looked(void **state)
{
	struct fixture *f = *state;
	struct child child;
	struct stat st;

	NEED_CALL(openat2);
	copy_library(f);
	assert_int_equal(stat(library, &st), 0);
	child = child_new();
	child_do(&child, 'o');
	child_do(&child, 'u');
	fixture_start(f, NULL, LIBRARY_BIT(PROBE_CUDA), 0);
	assert_int_equal(targets_scan(f->targets), 0);
	if (access("/proc/self/map_files", X_OK) < 0 || geteuid() != 0) {
		child_end(&child);
		need_unmet("deleted files can be opened by root only");
	}
	until_told(f, TOLD_PROCESS, child.pid, 1);
	assert_int_equal(told(f, TOLD_FILE, 0, st.st_ino), 1);
	assert_non_null(targets_find(f->targets, st.st_dev, st.st_ino));
	child_end(&child);
}

static void those_that_are_followed_only(void **state)
{
	struct fixture *f = *state;
	struct child other, child;
	pid_t heir;

	copy_library(f);
	child = child_new();
	if (!start(f, TARGET_ROLE_ANY, child.pid)) {
		child_end(&child);
		skip();
	}
	other = child_new();
	assert_int_equal(targets_scan(f->targets), 0);
	until_told(f, TOLD_PROCESS, child.pid, 1); /* its executable */
	heir = child_do(&child, 'f');
	until_told(f, TOLD_PROCESS, heir, 1);
	child_do(&other, 'o');
	child_do(&child, 'o');
	child_end(&other);
	child_do(&child, 'x');
	until_told(f, TOLD_EXEC, child.pid, 1);
	until_told(f, TOLD_PROCESS, child.pid, 3); /* what it was, the library, what it is */
	assert_int_equal(told(f, TOLD_PROCESS, other.pid, 0), 0);
	assert_int_equal(told(f, TOLD_PROCESS, getpid(), 0), 0);
	child_end(&child);
}

static void assert_untold(const struct fixture *f, const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(told(f, TOLD_FILE, 0, st.st_ino), 0);
}

/*
 * A thousand executions: none is of interest, and none may cost much. Other programs of this machine may be,
 * other tests' for example.
 */
static void a_storm_of_executions(void **state)
{
	struct fixture *f = *state;
	struct rusage before, after;
	struct target_stats stats;
	pid_t shell;

	if (!start(f, LIBRARY_BIT(PROBE_CUDA), 0))
		skip();
	shell = fork();
	assert_true(shell >= 0);
	if (shell == 0) {
		execl("/bin/sh", "sh", "-c", "i=0; while [ $i -lt 1000 ]; do /bin/true; i=$((i+1)); done",
		      (char *)NULL);
		_exit(1);
	}
	getrusage(RUSAGE_SELF, &before);
	while (waitpid(shell, NULL, WNOHANG) == 0)
		assert_true(sd_event_run(f->event, 10 * 1000) >= 0);
	getrusage(RUSAGE_SELF, &after);
	targets_stats(f->targets, &stats);
	printf("# 1,000 executions: %llu records, %llu lost, %.1f ms of our CPU\n",
	       (unsigned long long)stats.records, (unsigned long long)stats.records_lost,
	       (double)(after.ru_utime.tv_sec - before.ru_utime.tv_sec + after.ru_stime.tv_sec -
			before.ru_stime.tv_sec) *
			       1e3 +
		       (double)(after.ru_utime.tv_usec - before.ru_utime.tv_usec + after.ru_stime.tv_usec -
				before.ru_stime.tv_usec) /
			       1e3);
	assert_true(stats.records + stats.records_lost >= 3000); /* fork, exec, exit */
	assert_untold(f, "/bin/sh");
	assert_untold(f, "/bin/true");
	assert_int_equal(told(f, TOLD_PROCESS, shell, 0), 0);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(opened_later_inherited_executed_ended),
		CASE(deleted_before_anybody_looked),
		CASE(those_that_are_followed_only),
		CASE(a_storm_of_executions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
