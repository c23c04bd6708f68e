// SPDX-License-Identifier: Apache-2.0
/*
 * src/plugin_socket receives what our plugins in programs send over a UNIX socket (model/plugin_wire.h):
 * a client is any process that can reach it. What records mean is the protocol's own (src/nccl_socket,
 * src/cupti_socket).
 *
 * Invariants
 *  1. Who a client is, the kernel says (SO_PEERCRED), when it connects. Nothing that it sends changes that.
 *  2. A message is taken whole or not at all; one that is wrong in anything ends its connection, and is
 *     counted.
 *  3. Memory is bounded: PLUGIN_CLIENTS_MAX connections, of one user at most as many as are free, and of each
 *     what the protocol keeps.
 *  4. All clients have their turn: of each at most PLUGIN_CLIENT_TURN messages are read, then of the next.
 *  5. A connection that is refused is accepted and closed, so that it takes no place of the kernel's queue.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/macro.h"
#include "base/row_list.h"
#include "model/plugin_wire.h"

enum { PLUGIN_CLIENTS_MAX = 512, PLUGIN_CLIENT_TURN = 16 };

struct plugin_client {
	int fd; /* -1: it has gone */
	pid_t pid;
	uid_t uid;
	uint64_t since_boot_ns; /* when it connected */
	uint64_t lost; /* records, as it says */
	void *data; /* the protocol's own */
};

struct plugin_protocol {
	uint32_t magic;
	uint16_t version, records, record_bytes; /* records: of a message, at most */
	size_t data_bytes; /* of a client's data, which begin zeroed */
	const void *greeting; /* what a client is told when it connects */
	size_t greeting_bytes;
	bool (*is_valid)(const void *record);
	void (*record)(struct plugin_client *client, const void *record, void *userdata);
	/* @lost more records were lost. */
	void (*lost)(struct plugin_client *client, uint64_t lost, void *userdata);
	void (*end)(struct plugin_client *client); /* before its data go; may be NULL */
};

/* What rows of all plugins begin with. */
struct plugin_row {
	uint32_t pid, uid;
	uint64_t since_boot_ns;
};
#define PLUGIN_ROW_ASSERT(type_)                                                                             \
	_Static_assert(offsetof(type_, pid) == offsetof(struct plugin_row, pid) &&                           \
			       offsetof(type_, since_boot_ns) == offsetof(struct plugin_row, since_boot_ns), \
		       "a row of a plugin")

struct plugin_clients;

struct plugin_clients *plugin_clients_new(const struct plugin_protocol *protocol, void *userdata);
void plugin_clients_free(struct plugin_clients *clients);
DEFINE_CLEANUP(struct plugin_clients *, plugin_clients_free, plugin_clients_freep)

/* Takes a connection, and its descriptor. False: refused, closed. */
bool plugin_clients_add(struct plugin_clients *clients, int fd);
/* What is served besides clients, each once: 0 or -errno. Descriptors stay the caller's. */
int plugin_clients_listen(struct plugin_clients *clients, int listener);
int plugin_clients_channel(struct plugin_clients *clients, int channel);
/* Readable when there is something to be served. */
int plugin_clients_fd(const struct plugin_clients *clients);
/*
 * Waits for any of them, at most so long (-1: for ever), and serves clients. Returns how many had something,
 * or -errno; *ret_channel: the channel has.
 */
int plugin_clients_wait(struct plugin_clients *clients, int timeout_ms, bool *ret_channel);
uint32_t plugin_clients_count(const struct plugin_clients *clients);
struct plugin_client *plugin_clients_at(struct plugin_clients *clients, uint32_t i);
/* Frees those that have gone: what they said has been shown. */
void plugin_clients_forget(struct plugin_clients *clients);
uint64_t plugin_clients_refused(const struct plugin_clients *clients);
/* Whether @n more rows of the client fit: a user has no more than are left for all others. */
bool plugin_rows_fit(const struct row_list *rows, const struct plugin_client *client, uint32_t n);

/* For one message of @n bytes: whether it is whole and means something. */
bool plugin_message_is_valid(const struct plugin_protocol *protocol, const void *message, size_t n);
