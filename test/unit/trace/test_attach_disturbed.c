// SPDX-License-Identifier: Apache-2.0
/*
 * What may happen to a process within a traced call: it shares its memory with another process, is killed,
 * executes another program, is stopped and stepped by a debugger that then ends. The process goes on as it
 * would untraced, and each call is counted for the process that made it, once.
 */
#include "needs.h"
#include "test.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/macro.h"
#include "tracing.h"

enum { OUTER = 3, INNER = 4, TIMES = 5, STACK_BYTES = 64 << 10, STEPS = 2000, WELL = 7, NOBODY = 65534 };

static const struct trace_spec with_events = { .flags = TRACE_SPEC_RETURNS | TRACE_SPEC_EVENT };

/* Of the traced child; memory that it shares with the test. */
struct shared {
	pid_t second; /* the process that it made */
	int second_status;
};
static struct shared *shared;

/* Written by the traced process, within a call; read by it before it goes on. */
static int inside[2], go_on[2];

static struct tracing *begin(void **state)
{
	struct tracing *tracing = tracing_of(state);

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(shared != MAP_FAILED);
	assert_int_equal(pipe2(inside, O_CLOEXEC) | pipe2(go_on, O_CLOEXEC), 0);
	tracing_attach(tracing, (const void *)traced_outer, OUTER, &with_events);
	return tracing;
}

static void end(void)
{
	for (int i = 0; i < 2; i++) {
		close(inside[i]);
		close(go_on[i]);
	}
	munmap(shared, sizeof(*shared));
}

static void check_counts(const struct tracing *tracing, pid_t pid, unsigned outer, unsigned inner)
{
	assert_int_equal(tracing_stat(tracing, pid, OUTER).count, outer);
	assert_int_equal(tracing_stat(tracing, pid, INNER).count, inner);
	assert_int_equal(tracing_stat(tracing, pid, OUTER).nested, 0);
	assert_int_equal(tracing_stat(tracing, pid, INNER).nested, 0);
}

static void check_well(int status)
{
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), WELL);
}

/* ---- two processes in one address space ---- */

static int call_inner(_unused_ void *userdata)
{
	traced_body = NULL;
	for (int i = 0; i < TIMES; i++)
		traced_inner(0, 0, 0, 0, 0, 0);
	return WELL;
}

static void wait_for_second(void)
{
	if (waitpid(shared->second, &shared->second_status, 0) != shared->second)
		_exit(1);
}

/* As posix_spawn() does, with a stack of its own; the caller waits until it ends. */
static int spawn_within(_unused_ uint64_t a, _unused_ uint64_t b, _unused_ uint64_t c, _unused_ uint64_t d,
			_unused_ uint64_t e, _unused_ uint64_t f)
{
	static char stack[STACK_BYTES] __attribute__((aligned(16)));

	shared->second =
		clone(call_inner, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, NULL, NULL);
	wait_for_second();
	return 0;
}

/* On the same stack. */
static int vfork_within(_unused_ uint64_t a, _unused_ uint64_t b, _unused_ uint64_t c, _unused_ uint64_t d,
			_unused_ uint64_t e, _unused_ uint64_t f)
{
	pid_t pid = vfork();

	if (pid == 0)
		_exit(call_inner(NULL));
	shared->second = pid;
	wait_for_second();
	return 0;
}

static void call_outer_once(void *userdata)
{
	traced_body = (traced_fn *)userdata;
	traced_outer(0, 0, 0, 0, 0, 0);
	_exit(WELL);
}

static void a_second_process_is_counted_apart(void **state)
{
	static traced_fn *const ways[] = { spawn_within, vfork_within };
	struct tracing *tracing = begin(state);

	tracing_attach(tracing, (const void *)traced_inner, INNER, &with_events);
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		pid_t pid;

		check_well(traced_run(call_outer_once, (void *)ways[i], &pid));
		check_well(shared->second_status);
		check_counts(tracing, pid, 1, 0);
		check_counts(tracing, shared->second, 0, TIMES);
		assert_int_equal(tracing_counters(tracing).unmatched, 0);
		assert_int_equal(tracing_counters(tracing).abandoned, 0);
	}
	end();
}

static int call_both(_unused_ void *userdata)
{
	for (int i = 0; i < TIMES; i++)
		traced_outer(0, 0, 0, 0, 0, 0);
	return WELL;
}

/* At the same time; the second one ends first, within a call of the other. */
static int race_within(_unused_ uint64_t a, _unused_ uint64_t b, _unused_ uint64_t c, _unused_ uint64_t d,
		       _unused_ uint64_t e, _unused_ uint64_t f)
{
	static char stack[STACK_BYTES] __attribute__((aligned(16)));

	traced_body = NULL;
	shared->second = clone(call_both, stack + sizeof(stack), CLONE_VM | SIGCHLD, NULL, NULL);
	for (int i = 0; i < TIMES; i++)
		traced_inner(0, 0, 0, 0, 0, 0);
	wait_for_second();
	return 0;
}

static void processes_that_share_memory_call_at_once(void **state)
{
	struct tracing *tracing = begin(state);
	pid_t pid;

	tracing_attach(tracing, (const void *)traced_inner, INNER, &with_events);
	check_well(traced_run(call_outer_once, (void *)race_within, &pid));
	check_well(shared->second_status);
	check_counts(tracing, shared->second, TIMES, 0);
	assert_int_equal(tracing_stat(tracing, pid, OUTER).count, 1);
	assert_int_equal(tracing_stat(tracing, pid, INNER).nested, TIMES);
	end();
}

/* ---- the end within a call ---- */

static int stay_inside(_unused_ uint64_t a, _unused_ uint64_t b, _unused_ uint64_t c, _unused_ uint64_t d,
		       _unused_ uint64_t e, _unused_ uint64_t f)
{
	char byte = 0;

	return write(inside[1], &byte, 1) == 1 && read(go_on[0], &byte, 1) == 1 ? 0 : -1;
}

static pid_t start_inside(void)
{
	pid_t pid = fork();
	char byte;

	assert_true(pid >= 0);
	if (pid == 0) {
		traced_body = stay_inside;
		traced_outer(0, 0, 0, 0, 0, 0);
		traced_body = NULL;
		for (int i = 1; i < TIMES; i++)
			traced_outer(0, 0, 0, 0, 0, 0);
		_exit(WELL);
	}
	assert_int_equal(read(inside[0], &byte, 1), 1);
	return pid;
}

static void let_go(void)
{
	assert_int_equal(write(go_on[1], "", 1), 1);
}

static void a_process_killed_within_a_call_leaves_nothing(void **state)
{
	struct tracing *tracing = begin(state);
	pid_t pid = start_inside();
	int status;

	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	tracing_drain(tracing);
	assert_non_null(tracing_event(tracing, TRACE_EVENT_EXIT, -1, pid, 0));
	assert_int_equal(tracing_counters(tracing).abandoned, 1);
	/* The next process, perhaps of the same number, begins anew. */
	pid = start_inside();
	let_go();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	check_well(status);
	check_counts(tracing, pid, TIMES, 0);
	assert_int_equal(tracing_counters(tracing).abandoned, 1);
	end();
}

/* A copy of this test that belongs to root and is setuid, in a folder that everybody may enter. */
#define PRINT_USER "--print-user"
static char setuid_path[] = "/tmp/gpusonde-setuid-XXXXXX";

static int execute_setuid(_unused_ uint64_t a, _unused_ uint64_t b, _unused_ uint64_t c, _unused_ uint64_t d,
			  _unused_ uint64_t e, _unused_ uint64_t f)
{
	if (setresgid(NOBODY, NOBODY, NOBODY) < 0 || setresuid(NOBODY, NOBODY, NOBODY) < 0 ||
	    dup2(inside[1], STDOUT_FILENO) < 0)
		_exit(1);
	execl(setuid_path, setuid_path, PRINT_USER, (char *)NULL);
	_exit(1);
}

static void remove_setuid(void)
{
	unlink(setuid_path);
	memset(strchr(setuid_path, '\0') - 6, 'X', 6);
}

static void make_setuid(void)
{
	int to = mkostemp(setuid_path, O_CLOEXEC);
	struct statvfs fs;
	struct stat st;

	assert_true(to >= 0);
	assert_int_equal(fstat(traced_file(), &st) | fstatvfs(to, &fs), 0);
	for (off_t at = 0; at < st.st_size;)
		assert_true(sendfile(to, traced_file(), &at, (size_t)(st.st_size - at)) > 0);
	assert_int_equal(fchmod(to, 04755), 0);
	close(to);
	if (geteuid() != 0 || fs.f_flag & ST_NOSUID) {
		remove_setuid();
		need_unmet("a setuid program needs root, and a /tmp that is not mounted nosuid");
	}
}

static void a_setuid_program_begins_within_a_call(void **state)
{
	struct tracing *tracing = begin(state);
	char text[8] = "";
	int status;
	pid_t pid;

	make_setuid();
	status = traced_run(call_outer_once, (void *)execute_setuid, &pid);
	remove_setuid();
	assert_int_equal(status, 0);
	assert_int_equal(read(inside[0], text, sizeof(text) - 1), 2);
	assert_string_equal(text, "0\n"); /* it has root's rights, as untraced */
	tracing_drain(tracing);
	assert_non_null(tracing_event(tracing, TRACE_EVENT_EXEC, -1, pid, 0));
	assert_int_equal(tracing_counters(tracing).abandoned, 1);
	check_counts(tracing, pid, 0, 0);
	end();
}

/* ---- copies of code ---- */

/* Can be executed anywhere. */
#if defined(__aarch64__)
#define MOVABLE "b 1f\n1: mov w0, #7\nret\n"
#else
#define MOVABLE "push %rbp\npop %rbp\nmov $7, %eax\nret\n"
#endif
__asm__(".pushsection .text\n"
	".globl movable\n.hidden movable\n.type movable, %function\n"
	".balign 32\nmovable:\n" MOVABLE ".size movable, . - movable\n.popsection\n");
traced_fn movable;
enum { MOVABLE_BYTES = 16 };

static _Noreturn void execute_copy(const void *code)
{
	void *copy = mmap(NULL, MOVABLE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	traced_fn *function;

	if (copy == MAP_FAILED)
		_exit(1);
	memcpy(copy, code, MOVABLE_BYTES);
	__builtin___clear_cache(copy, (char *)copy + MOVABLE_BYTES);
	if (mprotect(copy, MOVABLE_BYTES, PROT_READ | PROT_EXEC) < 0)
		_exit(1);
	memcpy(&function, &copy, sizeof(function));
	_exit(function(0, 0, 0, 0, 0, 0));
}

static void copy_from_file(_unused_ void *userdata)
{
	struct attach_site site = traced_site((const void *)movable, OUTER);
	char code[MOVABLE_BYTES];

	if (pread(traced_file(), code, sizeof(code), (off_t)site.offset) != sizeof(code))
		_exit(1);
	execute_copy(code);
}

static void copy_from_memory(_unused_ void *userdata)
{
	execute_copy((const void *)movable);
}

static void copies_of_code_are_not_seen(void **state)
{
	struct tracing *tracing = begin(state);
	int status;
	pid_t pid;

	tracing_attach(tracing, (const void *)movable, OUTER, &with_events);
	check_well(traced_run(copy_from_file, NULL, &pid));
	check_counts(tracing, pid, 0, 0);
	/* docs/tracing.md: a copy of memory has the breakpoint, which nobody knows there. */
	status = traced_run(copy_from_memory, NULL, &pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTRAP);
	end();
}

/* ---- debuggers ---- */

static void attach_debugger(pid_t pid)
{
	int status;

	assert_int_equal(ptrace(PTRACE_ATTACH, pid, NULL, NULL), 0);
	assert_int_equal(waitpid(pid, &status, __WALL), pid);
	assert_true(WIFSTOPPED(status));
}

/* Out of the call, past the return probe, and over the next entry probes. */
static void a_debugger_steps_over_probes(void **state)
{
	struct tracing *tracing = begin(state);
	pid_t pid = start_inside();
	int status = 0, steps = 0;

	attach_debugger(pid);
	let_go();
	for (; steps < STEPS; steps++) {
		assert_int_equal(ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL), 0);
		assert_int_equal(waitpid(pid, &status, __WALL), pid);
		if (!WIFSTOPPED(status))
			break;
		assert_int_equal(WSTOPSIG(status), SIGTRAP);
	}
	if (WIFSTOPPED(status)) {
		assert_int_equal(ptrace(PTRACE_DETACH, pid, NULL, NULL), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
	}
	assert_true(steps > 20 * TIMES); /* it stepped, and was not let run */
	check_well(status);
	check_counts(tracing, pid, TIMES, 0);
	assert_int_equal(tracing_counters(tracing).unmatched, 0);
	end();
}

static _Noreturn void debug_until_killed(pid_t pid, bool resume, int fd)
{
	int status;

	if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) < 0 || ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) < 0 ||
	    waitpid(pid, &status, __WALL) != pid)
		_exit(1);
	if (resume && ptrace(PTRACE_CONT, pid, NULL, NULL) < 0)
		_exit(1);
	if (write(fd, "", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

/* With the process stopped, or running. A program that is just being stepped ends then, untraced as well. */
static void a_debugger_ends_within_a_call(void **state)
{
	struct tracing *tracing = begin(state);

	for (int resume = 0; resume < 2; resume++) {
		pid_t pid = start_inside(), debugger = fork();
		int status;
		char byte;

		assert_true(debugger >= 0);
		if (debugger == 0)
			debug_until_killed(pid, resume, inside[1]);
		assert_int_equal(read(inside[0], &byte, 1), 1);
		kill(debugger, SIGKILL);
		assert_int_equal(waitpid(debugger, &status, 0), debugger);
		assert_true(WIFSIGNALED(status));
		let_go();
		assert_int_equal(waitpid(pid, &status, 0), pid);
		check_well(status);
		check_counts(tracing, pid, TIMES, 0);
		assert_int_equal(tracing_counters(tracing).unmatched, 0);
	}
	end();
}

/* gpusonde ends while a debugger holds the process within a call. */
static void probes_go_while_a_debugger_holds_the_process(void **state)
{
	struct tracing *tracing = begin(state);
	pid_t pid = start_inside();
	int status;

	attach_debugger(pid);
	tracing_detach(tracing);
	let_go();
	assert_int_equal(ptrace(PTRACE_DETACH, pid, NULL, NULL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	check_well(status);
	end();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TRACING_TEST(a_second_process_is_counted_apart),
		TRACING_TEST(processes_that_share_memory_call_at_once),
		TRACING_TEST(a_process_killed_within_a_call_leaves_nothing),
		TRACING_TEST(a_setuid_program_begins_within_a_call),
		TRACING_TEST(copies_of_code_are_not_seen),
		TRACING_TEST(a_debugger_steps_over_probes),
		TRACING_TEST(a_debugger_ends_within_a_call),
		TRACING_TEST(probes_go_while_a_debugger_holds_the_process),
	};

	if (argc == 2 && strcmp(argv[1], PRINT_USER) == 0)
		return printf("%u\n", geteuid()) < 0;
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests_name("attach_disturbed", tests, NULL, NULL);
}
