// SPDX-License-Identifier: Apache-2.0
/*
 * A command that is held at each new executable mapping until somebody has seen the file: so "gpusonde trace
 * -- COMMAND" probes a library before the first call into it, however short the command lives.
 *
 * A seccomp filter in the command reports execve, and mmap of files with PROT_EXEC, before they happen. A
 * process of its own, the *holder*, takes the reports, opens the file, hands it to us, and lets the call go
 * on when we have answered. The holder is not we, because a reported call whose listener has gone fails: were
 * gpusonde killed, the command would lose its next library. So the holder stays while the command or anything
 * that it started lives, and lets everything go on at once when we are gone.
 *
 * Nothing is written into the command, nor is it stopped by ptrace: debuggers work in it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <systemd/sd-event.h>

#include "base/macro.h"

struct exec_gate;

/* What a process is about to do; it stands still in that call, until the answer. */
struct exec_gate_mapping {
	pid_t pid; /* process, not thread */
	int fd; /* to be read, not kept */
	const char *path;
	/*
	 * it becomes this program, if that succeeds, or one whose interpreter this is; else it maps the file
	 */
	bool execution;
	uint64_t address, length, offset; /* where it will lie. Length 0: that is not known yet */
};

struct exec_gate_ops {
	/* A file is about to be mapped executable, or to be executed. */
	void (*mapping)(const struct exec_gate_mapping *mapping, void *userdata);
	/* The command has ended; @status as exit(3) has it, 128 + signal for a killed one. */
	void (*ended)(int status, void *userdata);
};

/*
 * Starts @argv, searched for in PATH. SIGCHLD must be blocked. Where a filter cannot be had the command runs
 * unheld, and exec_gate_unheld() says why. -errno of execvp when it could not be run at all.
 */
int exec_gate_new(sd_event *event, char *const *argv, const struct exec_gate_ops *ops, void *userdata,
		  struct exec_gate **ret_gate);
/* Leaves the command, if it still runs, to itself. */
void exec_gate_free(struct exec_gate *gate);
DEFINE_CLEANUP(struct exec_gate *, exec_gate_free, exec_gate_freep)

/*
 * Lets the command begin, once what traces it has been set up. A command that was never let begin ends
 * without having begun.
 */
int exec_gate_release(struct exec_gate *gate);
pid_t exec_gate_pid(const struct exec_gate *gate);
/* Why early calls may be missed, or NULL. */
const char *exec_gate_unheld(const struct exec_gate *gate);
/*
 * Mappings so far that went on before they were reported, because we did not answer for seconds: calls may be
 * missing.
 */
uint32_t exec_gate_missed(const struct exec_gate *gate);
void exec_gate_signal(struct exec_gate *gate, int signal);
