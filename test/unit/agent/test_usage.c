// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/macro.h"
#include "agent/usage.h"

/* Burns CPU until a clock of its own says that it has had 50 ms. */
static void burn(void)
{
	struct timespec ts;

	do {
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	} while (ts.tv_sec == 0 && ts.tv_nsec < 50 * NSEC_PER_MSEC);
}

static pid_t burning_child(int ready[2], bool stay)
{
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	burn();
	(void)!write(ready[1], "x", 1);
	if (stay)
		pause();
	_exit(0);
}

static void counts_live_and_ended_children(_unused_ void **state)
{
	struct usage before, live, ended;
	int ready[2];
	char c;

	usage_read(NULL, 0, &before);
	assert_true(before.resident_bytes > 100 << 10);
	assert_int_equal(pipe(ready), 0);
	pid_t pid = burning_child(ready, true);

	assert_int_equal(read(ready[0], &c, 1), 1);
	usage_read(&pid, 1, &live);
	assert_true(live.cpu_seconds >= before.cpu_seconds + 0.05);
	assert_true(live.resident_bytes > before.resident_bytes);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	usage_read(NULL, 0, &ended);
	assert_true(ended.cpu_seconds >= before.cpu_seconds + 0.05);
	usage_read(&pid, 1, &ended); /* gone: no figures, no failure */
	assert_true(ended.resident_bytes < live.resident_bytes);
	close(ready[0]);
	close(ready[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_live_and_ended_children),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
