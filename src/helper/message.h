// SPDX-License-Identifier: Apache-2.0
/* Messages over a SOCK_SEQPACKET socket, each with at most one file descriptor. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

/* @fd -1: none. It stays the caller's. 0 or -errno; -EAGAIN: a non-blocking socket is full. */
int send_with_fd(int channel, const void *data, size_t n, int fd);
/*
 * Returns the bytes received, 0 when the other end is closed, or -errno; -EMSGSIZE: the message was longer
 * than @n. *ret_fd, owned by the caller: -1 if none was sent.
 */
ssize_t receive_with_fd(int channel, void *data, size_t n, int *ret_fd);

/* Of every question to a helper the first member: GPUSONDE_VERSION of who asks. */
enum { QUESTION_VERSION_BYTES = 32 };

/*
 * A question of @n bytes, at the helper's end. 0: it has come; 1: the agent has closed @channel.
 * -EPROTONOSUPPORT: it is of another version, or length; -errno. *ret_fd as above; NULL: none is wanted.
 */
int receive_question(int channel, void *ret_question, size_t n, int *ret_fd);
