// SPDX-License-Identifier: Apache-2.0
/*
 * Passwords against bcrypt hashes, which are made to cost: a tenth of a second each and more. A thread of
 * its own computes them, one after the other, so that the HTTP thread goes on with everybody else; the
 * request waits, suspended.
 *
 * Invariants
 *  1. The thread computes for at most 1 / (1 + VERIFY_REST) of a core, however many passwords are tried:
 *     who guesses gets no more. It is started by the first password.
 *  2. A password that was right is remembered, as a keyed digest of it, its user and its hash, so that a
 *     client which asks every second costs one computation. One that was wrong is not, but for seconds.
 *  3. At most VERIFY_JOBS wait, VERIFY_JOBS_PER_ADDRESS of one address; the same password of several
 *     requests is one. Others are told to come again.
 *  4. A user who is not there costs as much as one who is, with a wrong password.
 *
 * All functions are the HTTP thread's.
 */
#pragma once

#include <microhttpd.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

struct access;
struct verify;

enum {
	VERIFY_REST = 3,
	VERIFY_JOBS = 16,
	VERIFY_JOBS_PER_ADDRESS = 2,
	VERIFY_WAITERS = 16, /* requests for one job */
	VERIFY_CACHE = 64,
};

enum verify_answer {
	VERIFY_RIGHT,
	VERIFY_WRONG,
	VERIFY_WAIT, /* asked: ask again when the connection is resumed */
	VERIFY_BUSY, /* too many wait */
};

/* @wake_fd: an eventfd that is written to when verify_resume() has something to do. */
int verify_new(int wake_fd, struct verify **ret_verify);
/* Resumes the connections that wait; MHD_run() or MHD_stop_daemon() must follow. */
void verify_free(struct verify *verify);

/*
 * @address: a number for where the client is. VERIFY_WAIT has suspended @connection; the answer to a job is
 * there for one further call with the same arguments.
 */
enum verify_answer verify_ask(struct verify *verify, const struct access *access, const char *user,
			      const char *password, uint64_t address, struct MHD_Connection *connection);
/* Resumes the connections whose answers are there. */
void verify_resume(struct verify *verify);
