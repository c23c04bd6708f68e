// SPDX-License-Identifier: Apache-2.0
/*
 * Runs a command and holds it at each new executable mapping until the file has been handled: so "gpusonde
 * trace -- COMMAND" probes a library before the first call into it, even in a short-lived command.
 *
 * A seccomp filter in the command reports execve, and mmap of files with PROT_EXEC, before they happen. A
 * separate process, the *holder*, receives the reports, opens the file, passes it to gpusonde, and lets the
 * call continue after gpusonde's answer. The holder is separate because a reported call fails when its
 * listener is gone: if gpusonde were the listener and were killed, the command could not load its next
 * library. The holder stays as long as the command or any of its descendants lives; when gpusonde is gone, it
 * lets every call continue at once.
 *
 * Nothing is written into the command, and it is not ptraced: debuggers work in it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <systemd/sd-event.h>

#include "base/macro.h"

struct exec_gate;

/* A mapping or execution that a process is about to make; the call blocks until the callback returns. */
struct exec_gate_mapping {
	pid_t pid; /* process, not thread */
	int fd; /* for reading, valid during the callback only */
	const char *path;
	/* true: the process executes this file, or a file whose interpreter it is; false: it maps the file */
	bool execution;
	uint64_t address, length, offset; /* of the mapping; length 0: not known yet */
};

struct exec_gate_ops {
	/* A file is about to be mapped executable, or executed. */
	void (*mapping)(const struct exec_gate_mapping *mapping, void *userdata);
	/* The command has ended; @status is its exit status, or 128 + the signal that killed it. */
	void (*ended)(int status, void *userdata);
};

/*
 * Starts @argv, searched for in PATH. SIGCHLD must be blocked. If the filter cannot be installed, the command
 * runs unheld, and exec_gate_unheld() returns the reason. -errno if the processes cannot be started.
 */
int exec_gate_new(sd_event *event, char *const *argv, const struct exec_gate_ops *ops, void *userdata,
		  struct exec_gate **ret_gate);
/* A command that still runs continues unheld. */
void exec_gate_free(struct exec_gate *gate);
DEFINE_CLEANUP(struct exec_gate *, exec_gate_free, exec_gate_freep)

/*
 * Starts the command's program; to be called when tracing has been set up. If it is never called, the command
 * ends without executing anything.
 */
int exec_gate_release(struct exec_gate *gate);
pid_t exec_gate_pid(const struct exec_gate *gate);
/* Why the command is not held, so that early calls may be missed; or NULL. */
const char *exec_gate_unheld(const struct exec_gate *gate);
/* Mappings so far that continued without an answer, after a timeout: their calls may be missed. */
uint32_t exec_gate_missed(const struct exec_gate *gate);
/* Whether the holder was killed: since then the command's execve and mmap of libraries fail with ENOSYS. */
bool exec_gate_holder_lost(const struct exec_gate *gate);
void exec_gate_signal(struct exec_gate *gate, int signal);
