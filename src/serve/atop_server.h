// SPDX-License-Identifier: Apache-2.0
/*
 * The server side of atop's GPU protocol, in the main loop, never blocking. A client asks with two bytes, a
 * code ('T' which GPUs, 'S' statistics) and the version it speaks, and gets four bytes, version and length,
 * and a text. What stands in the text is the caller's business.
 *
 * Invariants
 *  1. A client's requests are answered one after the other; while an answer is not taken, nothing more is
 *     read from it. So a client costs at most one answer, and one that takes nothing for ATOP_STUCK_S seconds
 *     is dropped.
 *  2. Exit records count as delivered only when the whole answer has been handed to the kernel.
 *  3. At most ATOP_CLIENTS: beyond, the greediest gives way first, then one that has never asked anything,
 *     then the one silent for longest. Idle clients are otherwise kept, because atop may ask once in many
 *     minutes.
 *  4. Clients take turns, answer by answer, and none gets more than a few hundred in a second.
 */
#pragma once

#include <systemd/sd-event.h>

#include "base/strbuf.h"

/* The most that atop accepts; its own daemon's clients drop the connection for good above it. */
enum { ATOP_TEXT_MAX = 8192, ATOP_VERSION_NEWEST = 2, ATOP_CLIENTS = 32, ATOP_STUCK_S = 10 };

struct atop_source {
	/*
	 * Both append a text of at most ATOP_TEXT_MAX bytes in this version (1 or 2); a negative errno hangs
	 * up.
	 */
	int (*types)(unsigned version, struct strbuf *out, void *userdata);
	/* @exit_seq: the last exit record this client has had; *ret_exit_seq: the last one in this text. */
	int (*stats)(unsigned version, uint64_t exit_seq, struct strbuf *out, uint64_t *ret_exit_seq,
		     void *userdata);
	/*
	 * Changes with the list of GPUs. A client that was told of other GPUs is hung up on when it asks for
	 * statistics: it matches them by position, and atop 2.8 crashes at one it was not told of.
	 */
	uint64_t (*layout)(void *userdata);
	/* The newest exit record there is: a new client gets those after it. */
	uint64_t (*newest_exit)(void *userdata);
};

struct atop_server_stats {
	uint64_t requests;
	uint64_t malformed; /* connections closed because of what they sent */
	uint64_t dropped; /* did not take an answer, or gave way */
	unsigned clients;
};

struct atop_server;

/* @source must stay. */
int atop_server_new(sd_event *event, const struct atop_source *source, void *userdata,
		    struct atop_server **ret_server);
void atop_server_free(struct atop_server *server);

/*
 * "ADDR:PORT" as in address_parse(). -EADDRINUSE where Python's atopgpud runs: the server serves on whatever
 * else it has.
 */
int atop_server_listen_tcp(struct atop_server *server, const char *address);
/*
 * An abstract UNIX stream socket; its address is the NUL and @name, without a trailing NUL, as atop has it.
 */
int atop_server_listen_abstract(struct atop_server *server, const char *name);
void atop_server_unlisten(struct atop_server *server);
/* Bound TCP port; 0 none. */
unsigned atop_server_port(const struct atop_server *server);

/* Serves a connected, non-blocking socket, whose ownership it takes. */
void atop_server_add(struct atop_server *server, int fd);
void atop_server_stats(const struct atop_server *server, struct atop_server_stats *ret_stats);
