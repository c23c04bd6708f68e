// SPDX-License-Identifier: Apache-2.0
/*
 * src/helper runs disposable processes: what may hang, crash or be taken over because it touches files, names
 * or memory that users choose. The owner sends a message and sets a deadline; a helper that does not answer
 * is killed and replaced by the next message. What the kernel does not let end (a page that never comes) is
 * left behind and counted.
 *
 * helper.c is the owner's side, confine.c what the helper does first, message.c what both sides send with,
 * starter.c the thread that starts processes.
 *
 * Invariants
 *  1. The owner never waits: no call here blocks, but helper_wait().
 *  2. A helper ends when its owner does, even by SIGKILL, unless the kernel holds it.
 *  3. It has only the capabilities of its role, a system call filter and limits (confine.h), and no
 *     descriptor but its socket and what it is sent.
 *  4. What it answers is hostile: the owner checks every length and index.
 *  5. All functions of this header belong to one thread, that of the event loop.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <systemd/sd-event.h>

#include "base/clock.h"
#include "base/macro.h"

/* Exit status of a helper that is not of its owner's version. */
enum { HELPER_FOREIGN = 64 };

enum { HELPER_MESSAGE_MAX = 128 << 10 }; /* bytes, either way */

/* A killed process that has not ended after so long is stuck: the kernel does not let it. */
#define HELPER_STUCK_NS NSEC_PER_SEC

struct helper;

struct helper_config {
	/* Its executable: a path, or a name: where that was built or is installed; NULL: gpusonde-reader. */
	const char *program;
	const char *role; /* its argument, a static string */
	/*
	 * NULL, or where a service manager starts it for each connection: then it is not our child, may have
	 * another user, and ends when the connection does. SOCK_SEQPACKET; copied.
	 */
	const char *socket;
	uint64_t capabilities; /* bits of what it may keep (confine.h), if this process has them */
	unsigned max_stuck; /* so many that were killed and do not end: no further one is started */
	int64_t idle_ns; /* ends after so long without a message; 0: never */
};

struct helper_ops {
	/* @fd, -1 for none, belongs to the callee. May call any function of this header but helper_free(). */
	void (*answer)(const void *message, size_t n, int fd, void *userdata);
	/*
	 * It ended by itself or did not answer by the deadline (@hung), and is gone with all that it was
	 * asked. The same is allowed as in answer().
	 */
	void (*lost)(bool hung, void *userdata);
};

struct helper_stats {
	uint64_t starts, crashes, hung;
	unsigned killed; /* and not ended */
	unsigned stuck; /* of these, for longer than HELPER_STUCK_NS */
	pid_t pid; /* 0: none runs, or it is a service's */
};

/*
 * Whether @program (with @capabilities, as in struct helper_config) is there and may be run: 0 or -errno.
 * *ret_path is where it was looked for.
 */
int helper_check_program(const char *program, uint64_t capabilities, char ret_path[PATH_MAX]);
int helper_new(sd_event *event, const struct helper_config *config, const struct helper_ops *ops,
	       void *userdata, struct helper **ret_helper);
void helper_free(struct helper *helper);
DEFINE_CLEANUP(struct helper *, helper_free, helper_freep)
/*
 * Sends a message, to a new process if none runs. @fd (-1: none) stays the caller's. -EAGAIN: its queue is
 * full, or one that crashed or was killed may not yet be replaced; -EBUSY: too many are stuck; another error:
 * it cannot be started.
 */
int helper_send(struct helper *helper, const void *message, size_t n, int fd);
/* It must send a message within @in_ns from now; 0: nothing is expected of it any more. */
void helper_deadline(struct helper *helper, int64_t in_ns);
/* Kills it as if a deadline had passed: counted as hung, and lost() is called. */
void helper_give_up(struct helper *helper);
/* It sent what nobody asked for: replaced as one that crashed. */
void helper_reject(struct helper *helper);
/* Ends it; lost() is not called. What it was asked is gone. */
void helper_stop(struct helper *helper);
/*
 * Handles the messages that have come, and waits at most so long for the first: for a command that can do
 * nothing else meanwhile. The exception to invariant 1.
 */
void helper_wait(struct helper *helper, int timeout_ms);
/* On whose behalf the process works now, a number of the caller's; and whether one is stuck over that. */
void helper_mark(struct helper *helper, uint64_t owner);
bool helper_is_stuck_for(const struct helper *helper, uint64_t owner);
void helper_stats(const struct helper *helper, struct helper_stats *ret_stats);
