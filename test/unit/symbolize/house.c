// SPDX-License-Identifier: Apache-2.0
#include "symbolize/house.h"

#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

enum { PATIENCE_MS = 60 * 1000 };

char house_dir[64];

bool house_has_nvcc(void)
{
	return system("command -v nvcc >/dev/null 2>&1 && command -v gcc >/dev/null 2>&1") == 0;
}

void command(const char *format, ...)
{
	char text[2048], all[2560];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	snprintf(all, sizeof(all), "cd %s && %s", house_dir, text);
	if (system(all) != 0)
		fail_msg("%s failed", all);
}

int house_open(_unused_ void **state)
{
	snprintf(house_dir, sizeof(house_dir), "/tmp/gpusonde-naming-XXXXXX");
	return mkdtemp(house_dir) ? 0 : -1;
}

int house_close(_unused_ void **state)
{
	command("rm -rf %s", house_dir);
	return 0;
}

void compile(const char *output, const char *options)
{
	const char *here = test_source_root();

	command("gcc -O1 -c -fPIC -o runtime.o %s/test/unit/symbolize/runtime.c && nvcc -cudart none "
		"--extended-lambda -diag-suppress 177 -Xptxas -v %s -o %s %s/test/unit/symbolize/kernels.cu "
		"runtime.o -ldl > %s.log 2>&1 || { cat %s.log; false; }",
		here, options, output, here, output, output);
}

/* ---- programs ---- */

static bool read_line(struct program *program, char *line, size_t size)
{
	for (;;) {
		char *end = memchr(program->buf, '\n', program->buf_n);
		struct pollfd pollfd = { .fd = program->out, .events = POLLIN };
		ssize_t n;

		if (end) {
			snprintf(line, size, "%.*s", (int)(end - program->buf), program->buf);
			program->buf_n -= (size_t)(end + 1 - program->buf);
			memmove(program->buf, end + 1, program->buf_n);
			return true;
		}
		if (poll(&pollfd, 1, PATIENCE_MS) <= 0)
			return false;
		n = read(program->out, program->buf + program->buf_n, sizeof(program->buf) - program->buf_n);
		if (n <= 0)
			return false;
		program->buf_n += (size_t)n;
	}
}

static void listen_to(struct program *program)
{
	char line[256];

	while (read_line(program, line, sizeof(line))) {
		char what[32];
		uint64_t address;

		if (strncmp(line, "ready", 5) == 0)
			return;
		if (sscanf(line, "%31s %" SCNx64, what, &address) != 2)
			continue;
		assert_in_range(program->told_n, 0, TOLD_MAX - 1);
		snprintf(program->told[program->told_n].what, sizeof(program->told[0].what), "%s", what);
		program->told[program->told_n++].address = address;
	}
	fail_msg("the program has ended");
}

void start(struct program *program, const char *path, const char *environment)
{
	int in[2], out[2];

	*program = (struct program){ 0 };
	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	program->pid = fork();
	assert_true(program->pid >= 0);
	if (program->pid == 0) {
		const char *equals = environment ? strchr(environment, '=') : NULL;
		char name[64];

		if (equals) {
			snprintf(name, sizeof(name), "%.*s", (int)(equals - environment), environment);
			setenv(name, equals + 1, 1);
		}
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* when a test fails */
		if (chdir(house_dir) < 0)
			_exit(126);
		dup2(in[0], STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		execl(path, path, (char *)NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	program->in = in[1];
	program->out = out[0];
	listen_to(program);
	program->incarnation = incarnation();
}

void stop(struct program *program)
{
	kill(program->pid, SIGKILL);
	waitpid(program->pid, NULL, 0);
	close(program->in);
	close(program->out);
	program->in = program->out = -1;
}

void order(struct program *program, const char *format, ...)
{
	char text[4096];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(text, sizeof(text) - 1, format, args);
	va_end(args);
	text[n++] = '\n';
	assert_int_equal(write(program->in, text, (size_t)n), n);
	listen_to(program);
}

uint64_t told(const struct program *program, const char *what)
{
	for (unsigned i = program->told_n; i > 0; i--)
		if (strcmp(program->told[i - 1].what, what) == 0)
			return program->told[i - 1].address;
	fail_msg("the program does not tell of %s", what);
	return 0;
}

/* ---- questions ---- */

uint64_t incarnation(void)
{
	return (uint64_t)clock_mono_ns();
}

struct symbolizer_question question_of(const struct program *program, uint64_t function)
{
	static uint64_t id;

	return (struct symbolizer_question){ .id = ++id,
					     .process.pid = (uint32_t)program->pid,
					     .incarnation = program->incarnation ? program->incarnation :
										   incarnation(),
					     .function = function,
					     .sm = 90 };
}

struct kernel *wait_for(struct symbolizer *symbolizer, uint64_t id)
{
	struct pollfd pollfd = { .fd = symbolizer_fd(symbolizer), .events = POLLIN };
	struct symbolizer_answer answer;

	while (!symbolizer_take(symbolizer, &answer))
		if (poll(&pollfd, 1, PATIENCE_MS) <= 0)
			fail_msg("no answer");
	assert_int_equal(answer.id, id);
	return answer.kernel;
}

struct kernel *ask(struct symbolizer *symbolizer, struct symbolizer_question question)
{
	assert_int_equal(symbolizer_ask(symbolizer, &question), 0);
	return wait_for(symbolizer, question.id);
}

/* ---- stalls ---- */

enum { STALLED = 4242 };

void stall_open(struct stall *stall, pid_t other)
{
	char path[128], target[32];
	FILE *f;

	snprintf(stall->root, sizeof(stall->root), "/tmp/gpusonde-naming-XXXXXX");
	assert_non_null(mkdtemp(stall->root));
	snprintf(path, sizeof(path), "%s/%d", stall->root, STALLED);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/%d/stat", stall->root, STALLED);
	f = fopen(path, "w");
	assert_non_null(f);
	fprintf(f, "%d (x) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 1 0 0\n", STALLED);
	fclose(f);
	snprintf(path, sizeof(path), "%s/%d/maps", stall->root, STALLED);
	assert_int_equal(mkfifo(path, 0600), 0);
	if (other == 0)
		return;
	snprintf(path, sizeof(path), "%s/%d", stall->root, (int)other);
	snprintf(target, sizeof(target), "/proc/%d", (int)other);
	assert_int_equal(symlink(target, path), 0);
}

void stall_begin(struct stall *stall, struct symbolizer *symbolizer)
{
	const struct symbolizer_question q = { .id = UINT64_MAX, .process.pid = STALLED, .function = 0x1000 };

	(void)stall;
	assert_int_equal(symbolizer_ask(symbolizer, &q), 0);
}

void stall_end(struct stall *stall, struct symbolizer *symbolizer)
{
	char path[128];
	int fd;

	/* Waits for the reader. */
	snprintf(path, sizeof(path), "%s/%d/maps", stall->root, STALLED);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	unlink(path);
	close(fd);
	kernel_unref(wait_for(symbolizer, UINT64_MAX));
}

void stall_close(struct stall *stall)
{
	char text[128];

	snprintf(text, sizeof(text), "rm -rf %s", stall->root);
	assert_int_equal(system(text), 0);
}

/* ---- the truth ---- */

int64_t ptxas(const char *output, const char *part, unsigned sm, const char *what)
{
	_cleanup_free_ char *line = NULL;
	char path[128], arch[16];
	bool inside = false;
	int64_t value = -1;
	size_t size = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s.log", house_dir, output);
	snprintf(arch, sizeof(arch), "'sm_%u'", sm);
	f = fopen(path, "r");
	assert_non_null(f);
	while (getline(&line, &size, f) > 0) {
		const char *at = strstr(line, what);

		if (strstr(line, "Compiling entry function"))
			inside = strstr(line, part) && strstr(line, arch);
		else if (inside && strstr(line, "Used ") && at) {
			while (at > line && (at[-1] == ' ' || (at[-1] >= '0' && at[-1] <= '9')))
				at--;
			value = strtoll(at, NULL, 10);
		}
	}
	fclose(f);
	return value;
}

struct symbolizer *patient_symbolizer(const struct symbolizer_config *config)
{
	struct symbolizer_config patient = *config;
	struct symbolizer *symbolizer;

	if (patient.patience_ns == 0)
		patient.patience_ns = AGES_NS;
	assert_int_equal(symbolizer_new(&patient, &symbolizer), 0);
	return symbolizer;
}
