// SPDX-License-Identifier: Apache-2.0
#include "needs.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "nvml/source.h"

#define PATIENCE_NS (20 * NSEC_PER_SEC)

/* A source whose child is fake_helper, behaving as the test says. */
struct fixture {
	sd_event *event;
	struct nvml_source *source;
	struct nvml_config config;
	struct nvml_status status;
	unsigned readings;
	struct reading last; /* without its arrays */
	bool release_at_once;
};
static struct fixture f;
static char helper[4096];

static void on_reading(struct reading *reading, void *userdata)
{
	assert_ptr_equal(userdata, &f);
	f.readings++;
	memcpy(&f.last, reading, offsetof(struct reading, entities));
	if (f.release_at_once)
		nvml_source_release(f.source);
}

static void begin(const char *how)
{
	need_programs();
	snprintf(helper, sizeof(helper), "%s/test/unit/nvml/fake_helper", test_build_root());
	memset(&f, 0, sizeof(f));
	assert_true(sd_event_new(&f.event) >= 0);
	f.config = (struct nvml_config){ .helper = helper,
					 .library = how,
					 .call_timeout_ns = 300 * NSEC_PER_MSEC };
}

static void create(void)
{
	assert_int_equal(nvml_source_new(f.event, &f.config, on_reading, &f, &f.source), 0);
}

static void start(const char *how)
{
	begin(how);
	create();
}

static int stop(void **state)
{
	(void)state;
	nvml_source_free(f.source);
	sd_event_unref(f.event);
	memset(&f, 0, sizeof(f));
	/* Whatever was started has ended, or was killed and ends as soon as a busy machine lets it. */
	for (int64_t until = clock_mono_ns() + PATIENCE_NS; clock_mono_ns() < until; usleep(1000))
		if (waitpid(-1, NULL, WNOHANG) == -1)
			return errno == ECHILD ? 0 : -1;
	return -1;
}

/* Runs the loop, with a tick every few milliseconds, until the condition holds; fails after a long while. */
#define WAIT_FOR(condition_)                                                               \
	do {                                                                               \
		int64_t until = clock_mono_ns() + PATIENCE_NS;                             \
                                                                                           \
		nvml_source_status(f.source, &f.status);                                   \
		while (!(condition_)) {                                                    \
			if (clock_mono_ns() > until)                                       \
				fail_msg("in vain: %s (%s)", #condition_, f.status.error); \
			nvml_source_tick(f.source);                                        \
			assert_true(sd_event_run(f.event, 5000) >= 0);                     \
			nvml_source_status(f.source, &f.status);                           \
		}                                                                          \
	} while (0)

static void delivers_readings(void **state)
{
	(void)state;
	start("good");
	WAIT_FOR(f.readings == 3);
	assert_int_equal(f.last.entities_n, 1);
	assert_int_equal(f.last.cuda_version, getpid());
	assert_int_equal(f.status.starts, 1);
	assert_true(f.status.running);
	assert_string_equal(f.status.error, "");
}

static void kills_and_replaces_what_hangs(void **state)
{
	(void)state;
	begin("then-hang");
	/* Enough for a busy machine to let the child get as far as its call. */
	f.config.call_timeout_ns = 2 * NSEC_PER_SEC;
	create();
	WAIT_FOR(f.status.busy && f.status.overdue > 0 && f.readings == 1 && f.status.call[0]);
	assert_string_equal(f.status.call, "nvmlDeviceGetPowerUsage");
	WAIT_FOR(f.status.error[0]);
	assert_non_null(strstr(f.status.error, "nvmlDeviceGetPowerUsage did not return"));
	WAIT_FOR(f.readings == 2);
	assert_int_equal(f.status.starts, 2);
	assert_int_equal(f.status.crashes, 0);
	/*
	 * What the first had left to survive, the second found; and it does not count attachments from zero.
	 */
	assert_string_equal(f.last.driver_version, "kept");
	assert_int_equal(f.last.attach, 2);
	assert_string_equal(f.status.error, "");
	/* What was killed ends as soon as a busy machine lets it. */
	WAIT_FOR(f.status.stuck == 0);
}

/* Held up for longer than a call may take, while the answer lies in the socket. */
static void an_answer_that_is_there_counts(void **state)
{
	(void)state;
	start("good");
	WAIT_FOR(f.readings == 1);
	for (unsigned i = 2; i <= 6; i++) {
		nvml_source_tick(f.source);
		usleep(400000);
		while (sd_event_run(f.event, 0) > 0)
			;
		nvml_source_status(f.source, &f.status);
		assert_string_equal(f.status.error, "");
		assert_int_equal(f.readings, i);
	}
	assert_int_equal(f.status.starts, 1);
}

/* The mapping is the child's: nonsense in it makes no nonsense of ours. */
static void a_call_cannot_have_begun_in_the_future_or_before_time(void **state)
{
	(void)state;
	start("hang-since-ever");
	WAIT_FOR(f.status.call[0]);
	assert_true(f.status.call_seconds >= 0 &&
		    f.status.call_seconds <= (double)clock_mono_ns() / NSEC_PER_SEC + 1);
}

static void replaces_what_crashes(void **state)
{
	(void)state;
	start("then-crash");
	WAIT_FOR(f.status.crashes == 1);
	assert_non_null(strstr(f.status.error, "crashed in nvmlDeviceGetPowerUsage"));
	WAIT_FOR(f.readings == 2 && f.status.starts == 2);
}

static void one_that_always_crashes_is_not_started_in_a_flurry(void **state)
{
	int64_t began = clock_mono_ns();

	(void)state;
	start("crash");
	WAIT_FOR(f.status.crashes == 3);
	/* At once, after 1 s: the third start cannot have been sooner. */
	assert_true(clock_mono_ns() - began >= NSEC_PER_SEC);
	assert_int_equal(f.readings, 0);
}

static void nonsense_ends_a_child(void **state)
{
	static const char *const ways[] = { "then-garbage", "then-twice", "unasked",   "then-scribble",
					    "then-many",    "then-exit",  "then-close" };

	(void)state;
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		start(ways[i]);
		WAIT_FOR(f.status.error[0]);
		WAIT_FOR(f.status.starts >= 2);
		if (i + 1 < sizeof(ways) / sizeof(ways[0]))
			assert_int_equal(stop(NULL), 0);
	}
}

static void the_mapping_cannot_be_made_shorter(void **state)
{
	(void)state;
	start("shrink");
	WAIT_FOR(f.readings == 1);
	assert_int_equal(f.status.starts, 1);
}

static void a_child_may_die_between_readings(void **state)
{
	(void)state;
	start("dies-idle");
	WAIT_FOR(f.readings == 2);
	assert_int_equal(f.status.starts, 2);
	assert_int_equal(f.status.crashes, 0);
}

static void a_missing_helper_is_said(void **state)
{
	(void)state;
	begin("good");
	f.config.helper = "/nonexistent/gpusonde-nvml";
	create();
	WAIT_FOR(f.status.error[0]);
	assert_non_null(strstr(f.status.error, "/nonexistent/gpusonde-nvml"));
	assert_non_null(strstr(f.status.error, "nvml.helper"));
	assert_false(f.status.running);
}

static void another_version_is_said(void **state)
{
	(void)state;
	start("foreign");
	WAIT_FOR(f.status.error[0]);
	assert_non_null(strstr(f.status.error, "another version"));
}

static void lets_go_and_takes_back(void **state)
{
	(void)state;
	start("good");
	WAIT_FOR(f.readings == 1);
	nvml_source_release(f.source);
	WAIT_FOR(f.readings == 2);
	assert_int_equal(f.last.state, READING_RELEASED);
	assert_true(f.status.released);
	assert_false(f.status.running);
	/* Nobody is left who could hold the driver. */
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	nvml_source_resume(f.source);
	WAIT_FOR(f.status.running);
	WAIT_FOR(f.readings >= 3 && f.last.state == READING_OK);
}

static void releasing_while_it_hangs_ends_it(void **state)
{
	(void)state;
	start("then-hang");
	WAIT_FOR(f.status.busy && f.readings == 1);
	nvml_source_release(f.source);
	WAIT_FOR(f.readings == 2);
	assert_int_equal(f.last.state, READING_RELEASED);
	assert_int_equal(f.status.starts, 1);
}

static void releasing_within_a_reading(void **state)
{
	(void)state;
	begin("good");
	f.release_at_once = true;
	create();
	WAIT_FOR(f.readings >= 2);
	assert_int_equal(f.last.state, READING_RELEASED);
}

static void who_does_not_go_is_killed(void **state)
{
	(void)state;
	start("stays");
	WAIT_FOR(f.readings == 1);
	nvml_source_release(f.source);
	WAIT_FOR(f.status.error[0]);
	WAIT_FOR(f.readings == 2);
	assert_int_equal(f.last.state, READING_RELEASED);
}

static void freeing_ends_a_child_that_hangs(void **state)
{
	(void)state;
	start("hang");
	WAIT_FOR(f.status.busy);
	/* The teardown checks that nobody is left. */
}

/*
 * Holds a process at its very end, where SIGKILL has no more effect: the nearest there is to one that is
 * stuck in the kernel. False where tracing is forbidden.
 */
#define NO_PTRACE "ptrace(PTRACE_SEIZE) is not permitted here"

static bool hold_at_end(pid_t pid)
{
	return ptrace(PTRACE_SEIZE, pid, NULL, (void *)(intptr_t)PTRACE_O_TRACEEXIT) == 0;
}

static void let_it_end(pid_t pid)
{
	assert_int_equal(waitpid(pid, NULL, __WALL), pid); /* it has come to its end */
	assert_int_equal(ptrace(PTRACE_DETACH, pid, NULL, NULL), 0);
}

static void no_more_than_max_stuck_are_left_behind(void **state)
{
	pid_t pids[2];

	(void)state;
	begin("hang");
	f.config.max_stuck = 2;
	create();
	for (unsigned i = 0; i < 2; i++) {
		WAIT_FOR(f.status.starts == i + 1 && f.status.busy);
		pids[i] = f.status.child;
		if (!hold_at_end(pids[i]))
			need_unmet(NO_PTRACE);
		WAIT_FOR(f.status.stuck == i + 1);
	}
	/* Far beyond the distance of a second at which the third would be started. */
	for (int64_t until = clock_mono_ns() + 1500 * NSEC_PER_MSEC; clock_mono_ns() < until;) {
		nvml_source_tick(f.source);
		assert_true(sd_event_run(f.event, 5000) >= 0);
	}
	nvml_source_status(f.source, &f.status);
	assert_int_equal(f.status.starts, 2);
	assert_int_equal(f.status.stuck, 2);
	assert_false(f.status.running);
	assert_non_null(
		strstr(f.status.error, "2 processes are stuck in the driver (nvmlDeviceGetPowerUsage)"));
	/* One ends after all: its place is another's. */
	let_it_end(pids[0]);
	WAIT_FOR(f.status.starts == 3);
	let_it_end(pids[1]);
	WAIT_FOR(f.status.stuck == 0);
}

/* Holds a child at its end for a while, as a busy machine may. */
struct slow_end {
	pid_t pid;
	bool held;
	atomic_bool ready;
};

static void *end_slowly(void *userdata)
{
	struct slow_end *slow = userdata;

	slow->held = hold_at_end(slow->pid);
	slow->ready = true;
	if (!slow->held)
		return NULL;
	waitpid(slow->pid, NULL, __WALL);
	usleep(300000);
	ptrace(PTRACE_DETACH, slow->pid, NULL, NULL);
	return NULL;
}

static void freeing_waits_for_one_that_ends_slowly(void **state)
{
	struct slow_end slow = { .pid = 0 };
	pthread_t thread;

	(void)state;
	start("hang");
	WAIT_FOR(f.status.busy);
	slow.pid = f.status.child;
	assert_int_equal(pthread_create(&thread, NULL, end_slowly, &slow), 0);
	while (!slow.ready)
		usleep(1000);
	nvml_source_free(f.source);
	f.source = NULL;
	if (slow.held)
		assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(pthread_join(thread, NULL), 0);
	if (!slow.held)
		need_unmet(NO_PTRACE);
}

/* Gone, or a zombie that its new parent has yet to wait for. */
static bool has_ended(pid_t pid)
{
	char path[64], comm[64], state_of = 'Z';
	FILE *stat;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	stat = fopen(path, "r");
	if (!stat)
		return true;
	if (fscanf(stat, "%*d %63s %c", comm, &state_of) != 2)
		state_of = 'Z';
	fclose(stat);
	return state_of == 'Z';
}

/* Tells who its child is, and dies. */
static _Noreturn void be_an_agent_that_is_killed(int fd)
{
	begin("/nonexistent/libnvidia-ml.so.1");
	snprintf(helper, sizeof(helper), "%s/gpusonde-nvml", test_build_root());
	create();
	while (f.readings == 0) {
		nvml_source_tick(f.source);
		sd_event_run(f.event, 5000);
	}
	nvml_source_status(f.source, &f.status);
	if (write(fd, &f.status.child, sizeof(f.status.child)) == sizeof(f.status.child))
		raise(SIGKILL);
	_exit(1);
}

/* SIGKILL of the agent leaves no child: the helper itself sees to that, so the real one is used. */
static void no_child_outlives_its_agent(void **state)
{
	int pipes[2];
	pid_t agent, child = 0;

	need_programs();
	(void)state;
	assert_int_equal(pipe(pipes), 0);
	agent = fork();
	if (agent == 0)
		be_an_agent_that_is_killed(pipes[1]);
	close(pipes[1]);
	assert_int_equal(read(pipes[0], &child, sizeof(child)), sizeof(child));
	assert_int_equal(waitpid(agent, NULL, 0), agent);
	assert_true(child > 0);
	for (int64_t until = clock_mono_ns() + PATIENCE_NS; !has_ended(child);) {
		assert_true(clock_mono_ns() < until);
		usleep(5000);
	}
	close(pipes[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(delivers_readings, stop),
		cmocka_unit_test_teardown(kills_and_replaces_what_hangs, stop),
		cmocka_unit_test_teardown(an_answer_that_is_there_counts, stop),
		cmocka_unit_test_teardown(a_call_cannot_have_begun_in_the_future_or_before_time, stop),
		cmocka_unit_test_teardown(replaces_what_crashes, stop),
		cmocka_unit_test_teardown(one_that_always_crashes_is_not_started_in_a_flurry, stop),
		cmocka_unit_test_teardown(nonsense_ends_a_child, stop),
		cmocka_unit_test_teardown(the_mapping_cannot_be_made_shorter, stop),
		cmocka_unit_test_teardown(a_child_may_die_between_readings, stop),
		cmocka_unit_test_teardown(a_missing_helper_is_said, stop),
		cmocka_unit_test_teardown(another_version_is_said, stop),
		cmocka_unit_test_teardown(lets_go_and_takes_back, stop),
		cmocka_unit_test_teardown(releasing_while_it_hangs_ends_it, stop),
		cmocka_unit_test_teardown(releasing_within_a_reading, stop),
		cmocka_unit_test_teardown(who_does_not_go_is_killed, stop),
		cmocka_unit_test_teardown(freeing_ends_a_child_that_hangs, stop),
		cmocka_unit_test_teardown(freeing_waits_for_one_that_ends_slowly, stop),
		cmocka_unit_test_teardown(no_more_than_max_stuck_are_left_behind, stop),
		cmocka_unit_test_teardown(no_child_outlives_its_agent, stop),
	};

	return cmocka_run_group_tests_name("source", tests, NULL, NULL);
}
