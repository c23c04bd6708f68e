// SPDX-License-Identifier: Apache-2.0
/*
 * Names of kernels from a helper process (src/helper), which runs the symbolizer: reading memory and files
 * that users choose may hang or crash it. It is started with the first question and ends when nobody has
 * asked anything for a minute; one that hangs or crashes is replaced, and what it was asked is asked again.
 *
 * Invariants
 *  1. No call blocks, but symbols_look() and symbols_wait().
 *  2. A process at which a helper hung or crashed is not asked about again, nor for a growing time others of
 *     its user: one user cannot keep the helpers busy with hanging.
 *  3. No user's questions displace another's.
 *  4. Each accepted question is answered once: with a kernel, or with NULL if it is given up.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <systemd/sd-event.h>

#include "base/macro.h"
#include "symbolize/symbolize.h"

struct symbols;

struct symbols_config {
	/* of the helper; .limits.questions bounds those without an answer */
	struct symbolizer_config symbolizer;
	const char *program; /* NULL: gpusonde-reader */
	/*
	 * symbols_environment() asks for what tells about a process's job (proc/job.h), and for these
	 * variables, separated by commas. NULL: for what selects its devices.
	 */
	const char *variables;
	/* 0 means the default */
	int64_t stall_ns; /* a step that waits so long hangs, five times that when reading a file; 1 s */
	int64_t penalty_ns; /* the first of a user; 1 min */
	int64_t idle_ns; /* 1 min */
};

struct symbols_ops {
	/* @kernel stays the caller's; NULL: the question is given up. May ask. */
	void (*kernel)(uint64_t id, struct kernel *kernel, void *userdata);
	/*
	 * Variables and result of proc_environment(), and behind them, if it could be read,
	 * PROC_DEVICE_NODES with what proc_device_nodes() found; or those of proc_job_environment(). -EIO:
	 * given up. May be NULL if nothing is asked.
	 */
	void (*environment)(uint32_t pid, int state, const char *text, size_t n, void *userdata);
	/* For the log, in a sentence. May be NULL. */
	void (*notice)(int level, const char *text, void *userdata);
};

struct symbols_stats {
	/* .asked, .answered, .refused and .named are counted here, the rest by the helpers. */
	struct symbolizer_stats symbolizer;
	uint64_t withheld; /* questions not asked, or given up, because of the process or its user */
	uint64_t starts, crashes, hung; /* of helpers */
	unsigned stuck; /* killed helpers that do not end */
	uint32_t users; /* about whose processes nothing is asked now */
	uint32_t waiting; /* questions without an answer */
	pid_t pid; /* of the helper; 0: none runs */
};

int symbols_new(sd_event *event, const struct symbols_config *config, const struct symbols_ops *ops,
		void *userdata, struct symbols **ret_symbols);
void symbols_free(struct symbols *symbols);
DEFINE_CLEANUP(struct symbols *, symbols_free, symbols_freep)

/*
 * Copies the question; .seq is set here. -EAGAIN: too many of this user wait, or its questions are not asked
 * for a while; another error: this one is never answered.
 */
int symbols_ask(struct symbols *symbols, const struct symbolizer_question *question);
/* As symbolizer_image(). */
int symbols_image(struct symbols *symbols, pid_t pid, uint64_t incarnation, uint64_t address);
/* As symbolizer_look(): waits until the helper has read the mappings, a second at most. */
int symbols_look(struct symbols *symbols, const struct symbolizer_mapping *mapping);
void symbols_forget(struct symbols *symbols, pid_t pid, uint64_t incarnation);
/*
 * ops.environment() will be called once. -EAGAIN: too many are asked for, or nothing of this user for a
 * while; -EPERM: not of this process.
 */
int symbols_environment(struct symbols *symbols, struct process_id process);
/* Handles answers, for at most so long; true: there was one, or none is waited for. */
void symbols_wait(struct symbols *symbols, int timeout_ms);
void symbols_stats(struct symbols *symbols, struct symbols_stats *ret_stats);
