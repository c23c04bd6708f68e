// SPDX-License-Identifier: Apache-2.0
/*
 * src/nccl_socket receives what NCCL's plugin in programs (src/nccl_plugin) sends over the agent's UNIX
 * socket, in a confined process of its own (a role of gpusonde-reader). Who sends, and how much, is
 * plugin_socket/clients.h's; a client has NCCL_CLIENT_ROWS rows, and what does not fit is in the last one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/macro.h"
#include "base/row_list.h"
#include "model/nccl_measured.h"
#include "model/nccl_wire.h"
#include "plugin_socket/clients.h"

enum { NCCL_CLIENT_ROWS = 64 };

struct nccl_receiver;

struct nccl_receiver *nccl_receiver_new(void);
void nccl_receiver_free(struct nccl_receiver *receiver);
DEFINE_CLEANUP(struct nccl_receiver *, nccl_receiver_free, nccl_receiver_freep)

/* Those that send. */
struct plugin_clients *nccl_receiver_clients(struct nccl_receiver *receiver);
/* The rows of all clients (struct nccl_measured); those that are gone are in it for the last time. */
void nccl_receiver_rows(struct nccl_receiver *receiver, struct row_list *rows);
/* Of all clients that ever were, also of those whose rows found no room. */
const struct nccl_totals *nccl_receiver_totals(const struct nccl_receiver *receiver);

/* For one message of @n bytes: whether it is whole and means something. */
bool nccl_wire_is_valid(const struct nccl_wire *message, size_t n);
