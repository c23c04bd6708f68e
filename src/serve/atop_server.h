// SPDX-License-Identifier: Apache-2.0
/*
 * The server side of atop's GPU protocol, in the main loop, never blocking. A request has two bytes, a code
 * ('T': GPU types, 'S': statistics) and the protocol version; the answer has a four-byte header, version and
 * length, and a text, which the caller provides.
 *
 * Invariants
 *  1. A client's requests are answered in sequence; while an answer is being sent, nothing more is read from
 *     the client. So a client needs at most one answer's memory, and one that receives nothing for
 *     ATOP_STUCK_S seconds is disconnected.
 *  2. Exit records count as delivered only when the whole answer has been passed to the kernel.
 *  3. At most ATOP_CLIENTS. Beyond that the client with too many requests is disconnected first, then one
 *     that has never sent any, then the one idle for longest. Idle clients are otherwise kept, because atop's
 *     interval may be many minutes.
 *  4. Clients are served in turn, one answer at a time, and each gets at most a few hundred a second.
 */
#pragma once

#include <systemd/sd-event.h>

#include "base/strbuf.h"

/* The longest text that atop accepts; atop closes the connection permanently above it. */
enum { ATOP_TEXT_MAX = 8192, ATOP_VERSION_NEWEST = 2, ATOP_CLIENTS = 32, ATOP_STUCK_S = 10 };

struct atop_source {
	/*
	 * Both append a text of at most ATOP_TEXT_MAX bytes in this version (1 or 2). On a negative errno the
	 * connection is closed.
	 */
	int (*types)(unsigned version, struct strbuf *out, void *userdata);
	/*
	 * @exit_seq: the last exit record this client has received; *ret_exit_seq: the last one in this text.
	 */
	int (*stats)(unsigned version, uint64_t exit_seq, struct strbuf *out, uint64_t *ret_exit_seq,
		     void *userdata);
	/*
	 * Changes with the list of GPUs. A client that requests statistics after a change is disconnected: it
	 * matches them by position, and atop 2.8 crashes at an unannounced GPU.
	 */
	uint64_t (*layout)(void *userdata);
	/* The newest exit record: a new client gets later ones. */
	uint64_t (*newest_exit)(void *userdata);
};

struct atop_server_stats {
	uint64_t requests;
	uint64_t malformed; /* connections closed because of invalid requests */
	uint64_t dropped; /* connections closed for not receiving, or in favour of others */
	unsigned clients;
};

struct atop_server;

/* @source must remain valid. */
int atop_server_new(sd_event *event, const struct atop_source *source, void *userdata,
		    struct atop_server **ret_server);
void atop_server_free(struct atop_server *server);

/* Serves the connections to a listening TCP or UNIX socket, and takes ownership, also on failure. */
int atop_server_listen_fd(struct atop_server *server, int fd);
void atop_server_unlisten(struct atop_server *server);

/* Serves a connected, non-blocking socket; takes ownership. */
void atop_server_add(struct atop_server *server, int fd);
void atop_server_stats(const struct atop_server *server, struct atop_server_stats *ret_stats);
