// SPDX-License-Identifier: Apache-2.0
/*
 * src/nccl_socket receives what the plugin in programs (src/nccl_plugin) sends over the agent's UNIX
 * socket, in a confined process of its own (a role of gpusonde-reader): clients are whoever can reach the
 * socket.
 *
 * Invariants
 *  1. Who a client is, the kernel says (SO_PEERCRED), when it connects. Nothing that it sends changes that.
 *  2. A message is taken whole or not at all; one that is wrong in anything ends its connection, and is
 *     counted.
 *  3. Memory is bounded: NCCL_CLIENTS_MAX connections, of one user at most as many as are free, each with
 *     NCCL_CLIENT_ROWS rows; what does not fit is in the client's last row.
 *  4. All clients have their turn: of each at most NCCL_CLIENT_TURN messages are read, then of the next.
 *  5. A connection that is refused is accepted and closed, so that it takes no place of the kernel's queue.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/macro.h"
#include "base/row_list.h"
#include "model/nccl_measured.h"
#include "model/nccl_wire.h"

enum {
	NCCL_CLIENTS_MAX = 512,
	NCCL_CLIENT_ROWS = 64,
	NCCL_CLIENT_TURN = 16,
};

struct nccl_receiver;

struct nccl_receiver *nccl_receiver_new(void);
void nccl_receiver_free(struct nccl_receiver *receiver);
DEFINE_CLEANUP(struct nccl_receiver *, nccl_receiver_free, nccl_receiver_freep)

/* Takes a connection, and its descriptor. False: refused, closed. */
bool nccl_receiver_add(struct nccl_receiver *receiver, int fd);
/* What is served besides clients, each once: 0 or -errno. Descriptors stay the caller's. */
int nccl_receiver_listen(struct nccl_receiver *receiver, int listener);
int nccl_receiver_channel(struct nccl_receiver *receiver, int channel);
/* Readable when there is something to be served. */
int nccl_receiver_fd(const struct nccl_receiver *receiver);
/*
 * Waits for any of them, at most so long (-1: for ever), and serves clients. Returns how many had something,
 * or -errno; *ret_channel: the channel has.
 */
int nccl_receiver_wait(struct nccl_receiver *receiver, int timeout_ms, bool *ret_channel);
/* The rows of all clients (struct nccl_measured); those that are gone are in it for the last time. */
void nccl_receiver_rows(struct nccl_receiver *receiver, struct row_list *rows);
/* Of all clients that ever were, also of those whose rows found no room. */
const struct nccl_totals *nccl_receiver_totals(const struct nccl_receiver *receiver);
uint64_t nccl_receiver_refused(const struct nccl_receiver *receiver);

/* For one message of @n bytes: whether it is whole and means something. */
bool nccl_wire_is_valid(const struct nccl_wire *message, size_t n);
