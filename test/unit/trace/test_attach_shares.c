// SPDX-License-Identifier: Apache-2.0
/* What a user or container can take of the kernel side's tables, beside a bystander. */
#include "needs.h"
#include "test.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "base/macro.h"
#include "tracing.h"

enum {
	OUTER = 3,
	INNER = 4,
	ATTACKER = 60001,
	BYSTANDER = 60002,
	CROWD = 300, /* more than tracing_setup_*() has room for in `procs` */
	CODES = 200,
};

static const struct trace_spec spec = { .flags = TRACE_SPEC_RETURNS };

/* ---- programs that stay until they are told to go ---- */

struct program {
	pid_t pid;
	int stop; /* written to: it ends */
};

static int a_is_the_result(uint64_t a, _unused_ uint64_t b, _unused_ uint64_t c, _unused_ uint64_t d,
			   _unused_ uint64_t e, _unused_ uint64_t f)
{
	return (int)a;
}

/* Runs @fn as @user in a child, and returns when that is done; the child stays. */
static struct program begin(uid_t user, void (*fn)(void))
{
	int done[2], stop[2];
	struct program program;
	char c;

	assert_int_equal(pipe(done), 0);
	assert_int_equal(pipe(stop), 0);
	program.pid = fork();
	assert_true(program.pid >= 0);
	if (program.pid == 0) {
		close(stop[1]);
		if (setresuid(user, user, user) < 0)
			_exit(1);
		fn();
		if (write(done[1], "", 1) != 1)
			_exit(1);
		_exit(read(stop[0], &c, 1) != 1);
	}
	close(done[1]);
	close(stop[0]);
	assert_int_equal(read(done[0], &c, 1), 1);
	close(done[0]);
	program.stop = stop[1];
	return program;
}

static void end(struct program *program)
{
	int status;

	assert_int_equal(write(program->stop, "", 1), 1);
	close(program->stop);
	assert_int_equal(waitpid(program->pid, &status, 0), program->pid);
	assert_int_equal(status, 0);
}

static void call_once(void)
{
	traced_outer(0, 0, 0, 0, 0, 0);
}

static void return_many_codes(void)
{
	for (uint64_t code = 1; code <= CODES; code++)
		for (int twice = 0; twice < 2; twice++)
			traced_outer(code, 0, 0, 0, 0, 0);
}

static void return_three_codes(void)
{
	for (uint64_t i = 0; i < 9; i++)
		traced_outer(1000 + i % 3, 0, 0, 0, 0, 0);
}

/* ---- what the kernel side has ---- */

static struct trace_proc proc_of(const struct tracing *tracing, pid_t pid)
{
	uint32_t key = (uint32_t)pid;
	struct trace_proc proc = { 0 };

	bpf_map_lookup_elem(attach_map_fd(tracing->backend, "procs"), &key, &proc);
	return proc;
}

static struct trace_share share_of(const struct tracing *tracing, uint64_t owner)
{
	struct trace_share share = { 0 };

	bpf_map_lookup_elem(attach_map_fd(tracing->backend, "shares"), &owner, &share);
	return share;
}

static int32_t used(const struct tracing *tracing, uid_t user, enum trace_table table)
{
	return share_of(tracing, TRACE_OWNER_USER | user).used[table];
}

/* Frees the sums of processes that have ended, as the engine does. */
static void free_sums(const struct tracing *tracing)
{
	int stats = attach_map_fd(tracing->backend, "stats");
	int errors = attach_map_fd(tracing->backend, "errors");
	struct trace_error_key error;
	struct trace_stat_key stat;

	while (bpf_map_get_next_key(stats, NULL, &stat) == 0)
		attach_entry_free(tracing->backend,
				  (const uint64_t[TRACE_FREE_ARGS]){
					  [TRACE_FREE_TABLE] = TRACE_TABLE_STATS,
					  [TRACE_FREE_CALL] = (uint64_t)stat.tgid << 32 | stat.call,
					  [TRACE_FREE_INCARNATION] = stat.incarnation });
	while (bpf_map_get_next_key(errors, NULL, &error) == 0)
		attach_entry_free(tracing->backend,
				  (const uint64_t[TRACE_FREE_ARGS]){
					  [TRACE_FREE_TABLE] = TRACE_TABLE_ERRORS,
					  [TRACE_FREE_CALL] = (uint64_t)error.tgid << 32 | error.call,
					  [TRACE_FREE_INCARNATION] = error.incarnation,
					  [TRACE_FREE_RESULT] = (uint32_t)error.result });
}

static void assert_unused(const struct tracing *tracing, uid_t user)
{
	const struct trace_control *control = attach_control(tracing->backend);

	free_sums(tracing);
	for (unsigned i = 0; i < TRACE_TABLES; i++) {
		assert_int_equal(used(tracing, user, i), 0);
		assert_int_equal(control->room[i].used, 0);
	}
}

static struct tracing *set_up(void **state)
{
	struct tracing *tracing = tracing_of(state);

	if (geteuid() != 0)
		need_unmet("needs root, to be other users");
	tracing_attach(tracing, (const void *)traced_outer, OUTER, &spec);
	return tracing;
}

/* ---- error codes ---- */

static void codes_beyond_the_limit_are_counted_together(void **state)
{
	struct tracing *tracing = set_up(state);
	struct program program;
	struct trace_stat stat;

	traced_body = a_is_the_result;
	program = begin(ATTACKER, return_many_codes);
	stat = tracing_stat(tracing, program.pid, OUTER);
	assert_int_equal(stat.count, 2 * CODES);
	assert_int_equal(stat.errors, 2 * CODES);
	assert_int_equal(stat.codes, TRACE_CODES_MAX);
	assert_int_equal(stat.other_codes, 2 * (CODES - TRACE_CODES_MAX));
	for (int32_t code = 1; code <= CODES; code++)
		assert_int_equal(tracing_errors(tracing, program.pid, OUTER, code),
				 code <= TRACE_CODES_MAX ? 2 : 0);
	assert_int_equal(used(tracing, ATTACKER, TRACE_TABLE_ERRORS), TRACE_CODES_MAX);
	/* No table was full, and nothing is missing. */
	assert_int_equal(tracing_counters(tracing).lost[TRACE_TABLE_ERRORS], 0);
	assert_int_equal(proc_of(tracing, program.pid).lost, 0);
	end(&program);
	assert_unused(tracing, ATTACKER);
}

static void codes_of_one_user_leave_room_for_anothers(void **state)
{
	struct tracing *tracing = set_up(state);
	struct program programs[40], bystander;
	uint64_t with_code = 0;
	struct trace_stat stat;

	traced_body = a_is_the_result;
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++)
		programs[i] = begin(ATTACKER, return_many_codes);
	bystander = begin(BYSTANDER, return_three_codes);
	for (int32_t code = 1000; code < 1003; code++)
		assert_int_equal(tracing_errors(tracing, bystander.pid, OUTER, code), 3);
	stat = tracing_stat(tracing, bystander.pid, OUTER);
	assert_int_equal(stat.errors, 9);
	assert_int_equal(stat.other_codes, 0);
	/* What was refused is counted there, without its code. */
	assert_true(tracing_counters(tracing).refused[TRACE_TABLE_ERRORS] > 0);
	stat = tracing_stat(tracing, programs[ARRAY_SIZE(programs) - 1].pid, OUTER);
	for (int32_t code = 1; code <= CODES; code++)
		with_code += tracing_errors(tracing, programs[ARRAY_SIZE(programs) - 1].pid, OUTER, code);
	assert_int_equal(stat.errors, 2 * CODES);
	assert_int_equal(stat.other_codes + with_code, 2 * CODES);
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++)
		end(&programs[i]);
	end(&bystander);
	assert_unused(tracing, ATTACKER);
	assert_unused(tracing, BYSTANDER);
}

/* ---- processes, threads and sums ---- */

static void processes_of_one_user_leave_room_for_anothers(void **state)
{
	struct tracing *tracing = set_up(state);
	struct program crowd[CROWD], bystander;
	const struct trace_control *control = attach_control(tracing->backend);
	int32_t room = control->room[TRACE_TABLE_PROCS].entries;
	struct trace_counters c;
	uint64_t counted = 0;

	for (size_t i = 0; i < CROWD; i++)
		crowd[i] = begin(ATTACKER, call_once);
	bystander = begin(BYSTANDER, call_once);
	assert_int_equal(tracing_stat(tracing, bystander.pid, OUTER).count, 1);
	assert_int_equal(proc_of(tracing, bystander.pid).lost, 0);
	assert_int_equal(share_of(tracing, TRACE_OWNER_USER | BYSTANDER).lost_ns, 0);
	/* One user alone has seven eighths, and every other call of his is counted as lost. */
	assert_int_equal(used(tracing, ATTACKER, TRACE_TABLE_PROCS), room / 8 * 7);
	for (size_t i = 0; i < CROWD; i++)
		counted += tracing_stat(tracing, crowd[i].pid, OUTER).count;
	assert_int_equal(counted, room / 8 * 7);
	c = tracing_counters(tracing);
	assert_int_equal(c.lost[TRACE_TABLE_PROCS], CROWD - counted);
	assert_int_equal(c.refused[TRACE_TABLE_PROCS], CROWD - counted);
	/* That they are missing is said with his others. */
	assert_true(share_of(tracing, TRACE_OWNER_USER | ATTACKER).lost_ns >
		    proc_of(tracing, crowd[0].pid).incarnation);
	for (size_t i = 0; i < CROWD; i++)
		end(&crowd[i]);
	end(&bystander);
	assert_unused(tracing, ATTACKER);
	assert_unused(tracing, BYSTANDER);
}

/* Sums stay until user space has read them, so those of processes that are gone count. */
static void sums_of_one_user_leave_room_for_anothers(void **state)
{
	struct tracing *tracing = set_up(state);
	const struct trace_control *control = attach_control(tracing->backend);
	int32_t room = control->room[TRACE_TABLE_STATS].entries;
	struct program program;

	for (size_t i = 0; i < CROWD; i++) {
		program = begin(ATTACKER, call_once);
		if (i + 1 < CROWD)
			end(&program);
	}
	assert_int_equal(used(tracing, ATTACKER, TRACE_TABLE_STATS), room / 8 * 7);
	assert_int_equal(tracing_counters(tracing).refused[TRACE_TABLE_STATS], CROWD - room / 8 * 7);
	/* It is said with the process that lost it. */
	assert_int_equal(proc_of(tracing, program.pid).lost, 1U << TRACE_TABLE_STATS);
	end(&program);
	tracing_drain(tracing);
	assert_int_equal(tracing_event(tracing, TRACE_EVENT_EXIT, -1, program.pid, 0)->process.lost,
			 1U << TRACE_TABLE_STATS);
	program = begin(BYSTANDER, call_once);
	assert_int_equal(tracing_stat(tracing, program.pid, OUTER).count, 1);
	assert_int_equal(proc_of(tracing, program.pid).lost, 0);
	end(&program);
	assert_unused(tracing, ATTACKER);
	assert_unused(tracing, BYSTANDER);
}

/* ---- who an owner is ---- */

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		_exit(1);
	close(fd);
}

static void call_in_user_namespaces(void)
{
	char user[32], group[32];

	snprintf(user, sizeof(user), "0 %u 1", geteuid());
	snprintf(group, sizeof(group), "0 %u 1", getegid());
	if (prctl(PR_SET_DUMPABLE, 1) < 0 || unshare(CLONE_NEWUSER) < 0)
		_exit(1);
	/* Only a user and group that the first one has may make the second. */
	write_file("/proc/self/uid_map", user);
	write_file("/proc/self/setgroups", "deny");
	write_file("/proc/self/gid_map", group);
	if (unshare(CLONE_NEWUSER) < 0 || unshare(CLONE_NEWCGROUP) < 0)
		_exit(1);
	call_once();
}

static uint64_t owner_as(const struct tracing *tracing, uid_t user, void (*fn)(void))
{
	struct program program = begin(user, fn);
	uint64_t owner = proc_of(tracing, program.pid).owner;

	end(&program);
	return owner;
}

static bool can_unshare_users(void)
{
	int status = 0;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(setresuid(ATTACKER, ATTACKER, ATTACKER) < 0 || unshare(CLONE_NEWUSER) < 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status == 0;
}

static void a_user_is_one_owner_in_any_namespace(void **state)
{
	struct tracing *tracing = set_up(state);

	if (!can_unshare_users())
		need_unmet("no user namespace can be made here: a root folder of its own, or a sysctl");
	assert_int_equal(owner_as(tracing, ATTACKER, call_once), TRACE_OWNER_USER | ATTACKER);
	assert_int_equal(owner_as(tracing, ATTACKER, call_in_user_namespaces), TRACE_OWNER_USER | ATTACKER);
	assert_int_equal(attach_control(tracing->backend)->owners, 1);
}

#define MOUNT "/tmp/gpusonde-test-shares"
#define GROUP MOUNT "/container"

static bool make_groups(void)
{
	return mkdir(MOUNT, 0755) == 0 && mount("none", MOUNT, "cgroup2", 0, NULL) == 0 &&
	       mkdir(GROUP, 0755) == 0 && mkdir(GROUP "/below", 0755) == 0;
}

static int remove_groups(void **state)
{
	rmdir(GROUP "/below");
	rmdir(GROUP);
	umount(MOUNT);
	return rmdir(MOUNT) < 0 && errno != ENOENT ? -1 : tracing_teardown(state);
}

static void call_in_group(void)
{
	write_file(GROUP "/cgroup.procs", "0");
	call_once();
}

/* A user of a container that root has made, in a group below the container's. */
static void call_in_container(void)
{
	write_file(GROUP "/cgroup.procs", "0");
	if (unshare(CLONE_NEWCGROUP) < 0)
		_exit(1);
	write_file(GROUP "/below/cgroup.procs", "0");
	if (setresuid(ATTACKER, ATTACKER, ATTACKER) < 0)
		_exit(1);
	call_once();
}

static uint64_t group_id(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_ino;
}

static void a_container_is_one_owner(void **state)
{
	struct tracing *tracing = set_up(state);
	uint64_t group;

	if (!make_groups())
		need_unmet("no control groups of version 2 can be made here");
	group = group_id(GROUP);
	assert_int_equal(owner_as(tracing, 0, call_in_group), group);
	assert_int_equal(owner_as(tracing, 0, call_in_container), group);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TRACING_TEST(codes_beyond_the_limit_are_counted_together),
		TRACING_TEST(codes_of_one_user_leave_room_for_anothers),
		TRACING_TEST(processes_of_one_user_leave_room_for_anothers),
		TRACING_TEST(sums_of_one_user_leave_room_for_anothers),
		TRACING_TEST(a_user_is_one_owner_in_any_namespace),
		{ "a_container_is_one_owner_multi", a_container_is_one_owner, tracing_setup_multi,
		  remove_groups, NULL },
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
