// SPDX-License-Identifier: Apache-2.0
/*
 * What the tests of naming share: programs made by nvcc, which wait to be looked at, and questions with their
 * answers.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/clock.h"
#include "symbolize/symbolize.h"

/* Longer than anything takes on the busiest machine. */
#define AGES_NS (120 * NSEC_PER_SEC)
/* That waits so long for its thread's end, unless @config says how long: one that is abandoned leaks. */
struct symbolizer *patient_symbolizer(const struct symbolizer_config *config);

enum { TOLD_MAX = 64, SYMBOLS_MAX = 64 };

/* A folder of its own, for what is compiled and copied. */
extern char house_dir[64];
bool house_has_nvcc(void);
/* Group setup and teardown. */
int house_open(void **state);
int house_close(void **state);

/* In house_dir: compiles kernels.cu with @options to @output. */
void compile(const char *output, const char *options);
/* In house_dir. */
void command(const char *format, ...) __attribute__((format(printf, 1, 2)));

struct program {
	pid_t pid;
	uint64_t incarnation; /* 0: a new one for each question */
	int in, out;
	struct {
		char what[32];
		uint64_t address;
	} told[TOLD_MAX];
	unsigned told_n;
	char buf[8192];
	size_t buf_n;
};

/* Runs it in house_dir and reads what it tells. */
void start(struct program *program, const char *path, const char *environment);
void stop(struct program *program);
/* Gives an order, and reads what it tells. */
void order(struct program *program, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The newest address that was told of this; fails where there is none. */
uint64_t told(const struct program *program, const char *what);

/*
 * A folder in place of /proc, in which reading one process's maps takes until it is let go; all others are
 * what they are. What is asked in between waits, in its order.
 */
struct stall {
	char root[64];
};
void stall_open(struct stall *stall, pid_t other);
/* The thread is busy with that process now. */
void stall_begin(struct stall *stall, struct symbolizer *symbolizer);
void stall_end(struct stall *stall, struct symbolizer *symbolizer);
void stall_close(struct stall *stall);

/* From now on, in the clock of incarnations. */
uint64_t incarnation(void);
struct symbolizer_question question_of(const struct program *program, uint64_t function);
struct kernel *wait_for(struct symbolizer *symbolizer, uint64_t id);
/* Asks, and waits for the answer, the caller's to unref. */
struct kernel *ask(struct symbolizer *symbolizer, struct symbolizer_question question);

/* What ptxas -v said of a kernel whose symbol has @part, for @sm: -1 absent. */
int64_t ptxas(const char *output, const char *part, unsigned sm, const char *what);
