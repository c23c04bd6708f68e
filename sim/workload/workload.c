// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/workload.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/macro.h"
#include "base/text.h"
#include "sim/workload/tally.h"

enum { STEPS_MAX = 4096, THREADS_MAX = 1024, SCRIPT_BYTES = 1 << 20 };

#ifdef WORKLOAD_LINKED
/* All calls are looked up by name; this one makes the linker see that the runtime is needed. */
extern int cudaFree(void *address);
__attribute__((used)) static int (*const linked)(void *) = cudaFree;
#endif

static struct step steps[STEPS_MAX];
static uint32_t step_count;
static const char *program;

static void fail(const struct step *step, const char *what)
{
	fprintf(stderr, "workload: step %d, \"%s\": %s; sim/workload/README.md lists the steps\n",
		(int)(step - steps) + 1, step->word_count > 0 ? step->words[0] : "", what);
	exit(2);
}

static bool is(const struct step *step, const char *word)
{
	return step->word_count > 0 && STRV_EQ(step->words[0], word);
}

static uint64_t number(const struct step *step, uint32_t word, uint64_t otherwise)
{
	uint64_t value = otherwise;

	if (word < step->word_count && parse_u64(step->words[word], &value) < 0)
		fail(step, "a number is wanted");
	return value;
}

static void run(struct worker *worker, uint32_t from, uint32_t to);

struct thread {
	pthread_t id;
	const struct worker *parent;
	uint32_t from, to;
};

static void *run_thread(void *argument)
{
	const struct thread *thread = argument;
	struct worker *worker = calloc(1, sizeof(*worker));

	if (!worker)
		abort();
	worker->driver = thread->parent->driver;
	worker->per_thread = thread->parent->per_thread;
	worker->device = thread->parent->device;
	worker->context = thread->parent->context;
	worker->function = thread->parent->function;
	worker->seed = (unsigned)(thread->id);
	run(worker, thread->from, thread->to);
	free(worker->host);
	free(worker);
	return NULL;
}

static void run_threads(struct worker *worker, const struct step *step, uint32_t from, uint32_t to)
{
	static struct thread threads[THREADS_MAX];
	uint64_t count = number(step, 1, 2);

	if (count > THREADS_MAX)
		fail(step, "too many threads");
	for (uint64_t i = 0; i < count; i++) {
		threads[i] = (struct thread){ .parent = worker, .from = from, .to = to };
		if (pthread_create(&threads[i].id, NULL, run_thread, &threads[i]) != 0)
			fail(step, "no more threads");
	}
	for (uint64_t i = 0; i < count; i++)
		pthread_join(threads[i].id, NULL);
}

/* The child counts and prints for itself. */
static void run_child(struct worker *worker, const struct step *step, uint32_t from, uint32_t to)
{
	pid_t child;
	int status;

	fflush(stdout);
	child = fork();
	if (child < 0)
		fail(step, "cannot fork");
	if (child == 0) {
		tally_reset();
		run(worker, from, to);
		tally_print(stdout);
		exit(0);
	}
	waitpid(child, &status, 0);
}

/* The rest of the script in a new program: exec keeps the PID. */
static void run_exec(const struct step *step)
{
	_cleanup_free_ char *script = calloc(1, SCRIPT_BYTES);
	size_t length = 0;

	if (!script)
		abort();
	for (const struct step *next = step + 1; next < steps + step_count; next++) {
		for (uint32_t i = 0; i < next->word_count && length < SCRIPT_BYTES - 1; i++)
			length += (size_t)snprintf(script + length, SCRIPT_BYTES - length, "%s ",
						   next->words[i]);
		if (length < SCRIPT_BYTES - 1)
			length += (size_t)snprintf(script + length, SCRIPT_BYTES - length, ";");
	}
	tally_print(stdout);
	execl(program, program, script, (char *)NULL);
	fail(step, "cannot execute itself");
}

/* Prints "ready" and waits for a line, so that a test can do its part. */
static void wait_for_line(void)
{
	char line[64];

	printf("ready\n");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		exit(3);
}

static void run_block(struct worker *worker, const struct step *step, uint32_t from, uint32_t to)
{
	if (is(step, "threads"))
		run_threads(worker, step, from, to);
	else if (is(step, "fork"))
		run_child(worker, step, from, to);
	else
		for (uint64_t i = number(step, 1, 1); i > 0; i--)
			run(worker, from, to);
}

static void run(struct worker *worker, uint32_t from, uint32_t to)
{
	while (from < to) {
		struct step *step = &steps[from];

		if (step->end > 0) {
			run_block(worker, step, from + 1, step->end - 1);
			from = step->end;
			continue;
		}
		if (is(step, "exec"))
			run_exec(step);
		else if (is(step, "pause"))
			wait_for_line();
		else if (is(step, "print"))
			tally_print(stdout);
		else if (is(step, "sleep"))
			usleep((useconds_t)number(step, 1, 1) * 1000);
		else if (is(step, "kill"))
			kill(getpid(), SIGKILL);
		else if (is(step, "exit"))
			_exit((int)number(step, 1, 0));
		else if (!step_run(worker, step))
			fail(step, "there is no such step, or it is not written so");
		from++;
	}
}

static void parse(char *script)
{
	uint32_t open[64], depth = 0;
	char *save = NULL, *save_word, *line;

	for (line = strtok_r(script, ";\n", &save); line; line = strtok_r(NULL, ";\n", &save)) {
		struct step *step = &steps[step_count];
		char *word;

		if (step_count == STEPS_MAX)
			fail(step - 1, "the script is too long");
		line[strcspn(line, "#")] = '\0';
		save_word = NULL;
		for (word = strtok_r(line, " \t", &save_word); word;
		     word = strtok_r(NULL, " \t", &save_word)) {
			if (step->word_count == STEP_WORDS)
				fail(step, "has too many words");
			step->words[step->word_count++] = word;
		}
		if (step->word_count == 0)
			continue;
		step_count++;
		if (is(step, "threads") || is(step, "repeat") || is(step, "fork")) {
			if (depth == ARRAY_SIZE(open))
				fail(step, "blocks are nested too deep");
			open[depth++] = step_count - 1;
		} else if (is(step, "end")) {
			if (depth == 0)
				fail(step, "ends nothing");
			steps[open[--depth]].end = step_count;
		}
	}
	if (depth > 0)
		fail(&steps[open[depth - 1]], "has no end");
}

/* All arguments, or what the file holds, as one script. */
static char *read_script(int argc, char **argv)
{
	char *script = calloc(1, SCRIPT_BYTES);
	size_t length = 0;
	FILE *file;

	if (!script)
		return NULL;
	if (argc == 3 && STRV_EQ(argv[1], "--script")) {
		file = fopen(argv[2], "re");
		if (!file) {
			perror(argv[2]);
			exit(2);
		}
		length = fread(script, 1, SCRIPT_BYTES - 1, file);
		fclose(file);
		return script;
	}
	for (int i = 1; i < argc; i++) {
		length += (size_t)snprintf(script + length, SCRIPT_BYTES - length, "%s;", argv[i]);
		if (length >= SCRIPT_BYTES)
			exit(2);
	}
	return script;
}

int main(int argc, char **argv)
{
	struct worker *worker = calloc(1, sizeof(*worker));
	char *script = read_script(argc, argv);

	if (!worker || !script)
		return 1;
	if (argc < 2) {
		fprintf(stderr, "usage: %s STEP... | --script FILE; sim/workload/README.md lists the steps\n",
			argv[0]);
		return 2;
	}
	program = "/proc/self/exe";
	parse(script);
	run(worker, 0, step_count);
	tally_print(stdout);
	free(worker->host);
	free(worker);
	free(script);
	return 0;
}
