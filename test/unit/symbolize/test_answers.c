// SPDX-License-Identifier: Apache-2.0
/*
 * Questions and answers as such: bounds, processes that come and go, what cannot be known. With a process of
 * our own, without device code.
 */
#include "needs.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "symbolize/house.h"

static pid_t wait_in_vain(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* when a test fails */
		pause();
		_exit(0);
	}
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void what_lies_in_a_file_and_is_no_kernel(_unused_ void **state)
{
	const struct symbolizer_config config = { .read_memory = true };
	struct symbolizer *symbolizer = patient_symbolizer(&config);
	struct program self = { .pid = wait_in_vain() };
	struct kernel *kernel =
		ask(symbolizer, question_of(&self, (uintptr_t)what_lies_in_a_file_and_is_no_kernel + 1));

	need_processes();
	assert_int_equal(kernel->source, KERNEL_SOURCE_UNRESOLVED);
	assert_non_null(strstr(kernel->file, "test_symbolize_answers"));
	assert_int_equal(strncmp(kernel->brief, "test_symbolize_answers+0x", 25), 0);
	assert_int_equal(strtoull(strchr(kernel->brief, '+') + 1, NULL, 16), kernel->offset);
	assert_string_equal(kernel->brief, kernel->symbol);
	assert_string_equal(kernel->brief, kernel->name);
	for (unsigned i = 0; i < KERNEL_FIGURES; i++)
		assert_int_equal(kernel->figures[i], -1);
	kernel_unref(kernel);
	end(self.pid);
	symbolizer_free(symbolizer);
}

/* Tried again, since it may be mapped soon; then said to be unknown. */
static void what_lies_nowhere(_unused_ void **state)
{
	const struct symbolizer_config config = { .read_memory = true };
	struct symbolizer *symbolizer = patient_symbolizer(&config);
	struct program self = { .pid = wait_in_vain() };
	int64_t begin_ns = clock_mono_ns();
	struct kernel *kernel = ask(symbolizer, question_of(&self, 0xdead0000));
	struct symbolizer_stats stats;

	assert_true(clock_mono_ns() - begin_ns > NSEC_PER_SEC);
	assert_int_equal(kernel->source, KERNEL_SOURCE_UNRESOLVED);
	assert_string_equal(kernel->brief, "0xdead0000");
	assert_string_equal(kernel->file, "");
	assert_int_equal(kernel->offset, 0);
	kernel_unref(kernel);
	symbolizer_stats(symbolizer, &stats);
	assert_int_equal(stats.asked, 1);
	assert_int_equal(stats.answered, 1);
	assert_int_equal(stats.named[KERNEL_SOURCE_UNRESOLVED], 1);
	end(self.pid);
	symbolizer_free(symbolizer);
}

/* It is answered at once when its process is over. */
static void nobody_waits_for_the_dead(_unused_ void **state)
{
	const struct symbolizer_config config = { .read_memory = true, .again_ns = AGES_NS };
	struct symbolizer *symbolizer = patient_symbolizer(&config);
	struct program self = { .pid = wait_in_vain() };
	struct symbolizer_question q = question_of(&self, 0xdead0000);
	int64_t begin_ns = clock_mono_ns();
	struct kernel *kernel;

	assert_int_equal(symbolizer_ask(symbolizer, &q), 0);
	symbolizer_forget(symbolizer, (pid_t)q.process.pid, q.incarnation);
	kernel = wait_for(symbolizer, q.id);
	assert_int_equal(kernel->source, KERNEL_SOURCE_UNRESOLVED);
	kernel_unref(kernel);
	end(self.pid);
	kernel = ask(symbolizer, question_of(&self, (uintptr_t)nobody_waits_for_the_dead));
	assert_int_equal(kernel->source, KERNEL_SOURCE_UNRESOLVED);
	assert_string_equal(kernel->file, "");
	kernel_unref(kernel);
	assert_true(clock_mono_ns() - begin_ns < AGES_NS / 2);
	symbolizer_free(symbolizer);
}

/* A process that began after the first call that is asked about is another one, with the same PID. */
static void a_pid_that_came_again(_unused_ void **state)
{
	const struct symbolizer_config config = { .read_memory = true };
	struct symbolizer *symbolizer = patient_symbolizer(&config);
	struct program self = { .pid = wait_in_vain() };
	struct symbolizer_question q = question_of(&self, (uintptr_t)a_pid_that_came_again + 1);
	struct kernel *kernel;

	need_processes();
	q.incarnation -= 10 * NSEC_PER_SEC;
	kernel = ask(symbolizer, q);
	assert_string_equal(kernel->file, "");
	kernel_unref(kernel);
	kernel = ask(symbolizer, question_of(&self, (uintptr_t)a_pid_that_came_again + 1));
	assert_string_not_equal(kernel->file, "");
	kernel_unref(kernel);
	end(self.pid);
	symbolizer_free(symbolizer);
}

/* Told of an exec while questions wait: neither PID nor start are others', but what lies there now is. */
static void a_program_that_became_another(_unused_ void **state)
{
	struct program self = { .pid = wait_in_vain() };
	struct symbolizer_config config = { .read_memory = true };
	struct symbolizer_question q, p;
	struct stall stall;
	struct symbolizer *symbolizer;
	struct kernel *kernel;

	need_processes();
	stall_open(&stall, self.pid);
	config.proc_root = stall.root;
	symbolizer = patient_symbolizer(&config);
	stall_begin(&stall, symbolizer);
	q = question_of(&self, (uintptr_t)a_program_that_became_another + 1);
	assert_int_equal(symbolizer_ask(symbolizer, &q), 0);
	p = question_of(&self, 0x10);
	p.incarnation = q.incarnation;
	p.symbol = "name";
	p.path = "/proc/self/exe";
	assert_int_equal(symbolizer_ask(symbolizer, &p), 0);
	symbolizer_forget(symbolizer, (pid_t)q.process.pid, q.incarnation);
	stall_end(&stall, symbolizer);
	kernel = wait_for(symbolizer, q.id);
	assert_int_equal(kernel->source, KERNEL_SOURCE_UNRESOLVED);
	assert_string_equal(kernel->file, "");
	kernel_unref(kernel);
	kernel_unref(wait_for(symbolizer, p.id));
	/* What it is now may be asked about. */
	kernel = ask(symbolizer, question_of(&self, (uintptr_t)a_program_that_became_another + 1));
	assert_string_not_equal(kernel->file, "");
	kernel_unref(kernel);
	end(self.pid);
	symbolizer_free(symbolizer);
	stall_close(&stall);
}

/*
 * Its beginning was not seen: that is no reason to know nothing of it; and it is forgotten with the process
 * all the same.
 */
static void a_beginning_that_was_lost(_unused_ void **state)
{
	const struct symbolizer_config config = { .read_memory = true };
	struct symbolizer *symbolizer = patient_symbolizer(&config);
	struct program self = { .pid = wait_in_vain() };
	struct symbolizer_question q = question_of(&self, (uintptr_t)a_beginning_that_was_lost + 1);
	struct kernel *kernel;
	uint64_t bytes;
	struct symbolizer_stats stats;

	need_processes();
	q.incarnation = 0;
	kernel = ask(symbolizer, q);
	assert_string_not_equal(kernel->file, "");
	kernel_unref(kernel);
	symbolizer_stats(symbolizer, &stats);
	bytes = stats.bytes;
	assert_true(bytes > 0);
	symbolizer_forget(symbolizer, (pid_t)q.process.pid, incarnation());
	q.process.pid = 0x7ffffff0; /* nobody's: when it is answered, the other is forgotten */
	kernel_unref(ask(symbolizer, q));
	symbolizer_stats(symbolizer, &stats);
	assert_true(stats.bytes < bytes);
	end(self.pid);
	symbolizer_free(symbolizer);
}

/* A process that maps @n files of one page, as it is told, and waits. */
static pid_t map_many(unsigned n, int protection)
{
	int ready[2];
	pid_t pid;
	char byte;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		char path[] = "/tmp/gpusonde-naming-file-XXXXXX";

		prctl(PR_SET_PDEATHSIG, SIGKILL); /* when a test fails */
		for (unsigned i = 0; i < n; i++) {
			int fd = mkstemp(path);

			if (fd < 0 || unlink(path) < 0 || ftruncate(fd, 4096) < 0 ||
			    mmap(NULL, 4096, protection, MAP_PRIVATE, fd, 0) == MAP_FAILED)
				_exit(1);
			close(fd);
			memcpy(path + sizeof(path) - 7, "XXXXXX", 6);
		}
		(void)!write(ready[1], "", 1);
		pause();
		_exit(0);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static void check_many(unsigned n, int protection, uint64_t bytes_max, uint64_t left_out_min)
{
	const struct symbolizer_config config = { .read_memory = true };
	struct symbolizer *symbolizer = patient_symbolizer(&config);
	struct program self = { .pid = map_many(n, protection) };
	struct symbolizer_stats stats;
	struct kernel *kernel = ask(symbolizer, question_of(&self, (uintptr_t)check_many + 1));

	assert_string_not_equal(kernel->file, "");
	kernel_unref(kernel);
	symbolizer_stats(symbolizer, &stats);
	printf("# %u files: %llu bytes, %llu left out\n", n, (unsigned long long)stats.bytes,
	       (unsigned long long)stats.left_out);
	assert_in_range(stats.bytes, 1, bytes_max);
	assert_true(left_out_min ? stats.left_out >= left_out_min : stats.left_out == 0);
	end(self.pid);
	symbolizer_free(symbolizer);
}

/* Data is not kept; of code there is a limit, and what is beyond is counted. */
static void processes_with_many_files(_unused_ void **state)
{
	need_processes();
	check_many(10000, PROT_READ, 50000, 0);
	check_many(8000, PROT_READ | PROT_EXEC, 2000000, 2000);
}

/* Mappings have their own share of memory: those of the process that was asked about least lately go. */
static void many_processes_in_little_memory(_unused_ void **state)
{
	const struct symbolizer_config config = { .limits.bytes = 64 << 10 };
	struct symbolizer *symbolizer = patient_symbolizer(&config);
	struct program programs[12] = { 0 };
	struct symbolizer_stats stats;

	need_processes();
	for (unsigned i = 0; i < ARRAY_SIZE(programs); i++) {
		struct kernel *kernel;

		programs[i].pid = wait_in_vain();
		kernel = ask(symbolizer, question_of(&programs[i], (uintptr_t)check_many + 1));
		assert_string_not_equal(kernel->file, "");
		kernel_unref(kernel);
	}
	symbolizer_stats(symbolizer, &stats);
	printf("# %llu bytes\n", (unsigned long long)stats.bytes);
	assert_in_range(stats.bytes, 1000, 16 << 10);
	for (unsigned i = 0; i < ARRAY_SIZE(programs); i++)
		end(programs[i].pid);
	symbolizer_free(symbolizer);
}

/* Names of others: no control characters, no broken UTF-8, whatever a handle was made for. */
static void names_are_cleaned(_unused_ void **state)
{
	const struct symbolizer_config config = { 0 };
	struct symbolizer *symbolizer = patient_symbolizer(&config);
	struct program self = { .pid = wait_in_vain() };
	struct symbolizer_question q = question_of(&self, 0x10);
	struct kernel *kernel;

	q.symbol = "a\nb\x1b[31m\xff";
	q.path = "/no\nwhere";
	kernel = ask(symbolizer, q);
	assert_int_equal(kernel->source, KERNEL_SOURCE_HANDLE);
	assert_null(strpbrk(kernel->symbol, "\n\x1b\xff"));
	assert_null(strpbrk(kernel->name, "\n\x1b\xff"));
	assert_null(strpbrk(kernel->brief, "\n\x1b\xff"));
	assert_string_equal(kernel->file, "/no?where");
	kernel_unref(kernel);
	end(self.pid);
	symbolizer_free(symbolizer);
}

static void a_full_queue_refuses(_unused_ void **state)
{
	const struct symbolizer_config config = { .limits.questions = 4 };
	struct symbolizer *symbolizer = patient_symbolizer(&config);
	struct program self = { .pid = wait_in_vain() };
	struct symbolizer_answer answer;
	struct symbolizer_stats stats;
	unsigned taken = 0;

	/* Nobody takes the answers, so they stay. */
	for (unsigned i = 0; i < 7; i++) {
		struct symbolizer_question q = question_of(&self, (uintptr_t)a_full_queue_refuses + 1);

		assert_int_equal(symbolizer_ask(symbolizer, &q), i < 4 ? 0 : -EAGAIN);
	}
	while (symbolizer_stats(symbolizer, &stats), stats.answered < 4)
		usleep(1000);
	assert_int_equal(stats.refused, 3);
	assert_int_equal(stats.asked, 4);
	while (symbolizer_take(symbolizer, &answer)) {
		kernel_unref(answer.kernel);
		taken++;
	}
	assert_int_equal(taken, 4);
	kernel_unref(ask(symbolizer, question_of(&self, (uintptr_t)a_full_queue_refuses + 1)));
	end(self.pid);
	symbolizer_free(symbolizer);
}

static void answers_can_be_waited_for(_unused_ void **state)
{
	const struct symbolizer_config config = { 0 };
	struct symbolizer *symbolizer = patient_symbolizer(&config);
	struct pollfd pollfd = { .fd = symbolizer_fd(symbolizer), .events = POLLIN };
	struct program self = { .pid = wait_in_vain() };
	struct symbolizer_question q = question_of(&self, (uintptr_t)answers_can_be_waited_for + 1);
	struct symbolizer_answer answer;
	int64_t begin_ns;

	assert_false(symbolizer_take(symbolizer, &answer));
	assert_int_equal(poll(&pollfd, 1, 0), 0);
	assert_int_equal(symbolizer_ask(symbolizer, &q), 0);
	assert_int_equal(poll(&pollfd, 1, 10000), 1);
	assert_true(symbolizer_take(symbolizer, &answer));
	kernel_unref(answer.kernel);
	assert_false(symbolizer_take(symbolizer, &answer));
	assert_int_equal(poll(&pollfd, 1, 0), 0);
	end(self.pid);
	/* The thread has nothing to do, and is woken. */
	begin_ns = clock_mono_ns();
	symbolizer_free(symbolizer);
	assert_true(clock_mono_ns() - begin_ns < AGES_NS / 2);
}

/* With questions, answers and retries left: nothing leaks, nobody hangs. */
static void an_end_in_the_middle(_unused_ void **state)
{
	const struct symbolizer_config config = { .read_memory = true, .again_ns = 2 * AGES_NS };
	struct program self = { .pid = wait_in_vain() };

	for (unsigned round = 0; round < 8; round++) {
		struct symbolizer *symbolizer = patient_symbolizer(&config);
		int64_t begin_ns;

		for (unsigned i = 0; i < 50; i++) {
			struct symbolizer_question q =
				question_of(&self, i % 2 ? 0xdead0000 : (uintptr_t)an_end_in_the_middle + i);

			q.symbol = i % 3 ? NULL : "name";
			assert_int_equal(symbolizer_ask(symbolizer, &q), 0);
			assert_int_equal(symbolizer_image(symbolizer, self.pid, q.incarnation,
							  (uintptr_t)symbolizer, 0),
					 0);
		}
		usleep(round * 3000);
		begin_ns = clock_mono_ns();
		symbolizer_free(symbolizer);
		assert_true(clock_mono_ns() - begin_ns < AGES_NS / 2);
	}
	end(self.pid);
}

/*
 * A folder in place of /proc, in which reading a process's maps never ends: what a file system that does not
 * answer does.
 */
static void a_file_system_that_hangs(_unused_ void **state)
{
	char root[] = "/tmp/gpusonde-naming-XXXXXX", path[128];
	struct symbolizer_config config = { .limits.questions = 2,
					    .proc_root = root,
					    .patience_ns = 600 * NSEC_PER_MSEC };
	struct program other = { .pid = 4242 };
	struct symbolizer_question q = question_of(&other, 0x1000);
	struct symbolizer *symbolizer;
	FILE *f;

	assert_non_null(mkdtemp(root));
	snprintf(path, sizeof(path), "%s/4242", root);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/4242/stat", root);
	f = fopen(path, "w");
	assert_non_null(f);
	fprintf(f, "4242 (x) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 1 0 0\n");
	fclose(f);
	snprintf(path, sizeof(path), "%s/4242/maps", root);
	assert_int_equal(mkfifo(path, 0600), 0);
	symbolizer = patient_symbolizer(&config);
	assert_int_equal(symbolizer_ask(symbolizer, &q), 0);
	assert_int_equal(symbolizer_ask(symbolizer, &q), 0);
	assert_int_equal(symbolizer_ask(symbolizer, &q), -EAGAIN);
	/* Neither waits for the file system, which would be for ever; the thread is left behind. */
	symbolizer_forget(symbolizer, (pid_t)q.process.pid, q.incarnation);
	symbolizer_free(symbolizer);
	unlink(path);
	snprintf(path, sizeof(path), "%s/4242/stat", root);
	unlink(path);
	snprintf(path, sizeof(path), "%s/4242", root);
	rmdir(path);
	rmdir(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_lies_in_a_file_and_is_no_kernel),
		cmocka_unit_test(what_lies_nowhere),
		cmocka_unit_test(nobody_waits_for_the_dead),
		cmocka_unit_test(a_pid_that_came_again),
		cmocka_unit_test(a_program_that_became_another),
		cmocka_unit_test(a_beginning_that_was_lost),
		cmocka_unit_test(processes_with_many_files),
		cmocka_unit_test(many_processes_in_little_memory),
		cmocka_unit_test(names_are_cleaned),
		cmocka_unit_test(a_full_queue_refuses),
		cmocka_unit_test(answers_can_be_waited_for),
		cmocka_unit_test(an_end_in_the_middle),
		cmocka_unit_test(a_file_system_that_hangs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
