// SPDX-License-Identifier: Apache-2.0
/*
 * Where the commands for people get their JSON from: the running agent over its UNIX socket, else a collector
 * of their own. The document is the same, byte for byte in its shape. Once a client has begun to sample for
 * itself it keeps doing so between documents, so that its counters go on, until an agent appears.
 */
#pragma once

#include <stdbool.h>

#include "base/strbuf.h"
#include "config/options.h"

struct snapshot_client;

int snapshot_client_new(const struct options *options, struct snapshot_client **ret_client);
void snapshot_client_free(struct snapshot_client *client);
DEFINE_CLEANUP(struct snapshot_client *, snapshot_client_free, snapshot_client_freep)

/*
 * The newest document with these view_json() sections, appended to @out. Negative: neither agent nor driver's
 * child could be had at all; snapshot_client_note() says why.
 */
int snapshot_client_get(struct snapshot_client *client, unsigned sections, struct strbuf *out);
/* Lets this time pass, sampling if the client does so itself. */
int snapshot_client_wait(struct snapshot_client *client, int64_t ns);

/*
 * What a reader must know about the source: that no agent runs, or could not be reached, with the remedy. ""
 * when all is well.
 */
const char *snapshot_client_note(const struct snapshot_client *client);
/* The client samples for itself and has no data: the cause and the remedy; else NULL. */
const char *snapshot_client_failure(const struct snapshot_client *client);
bool snapshot_client_from_agent(const struct snapshot_client *client);

/* One request to the agent. -errno as connect(2) and the client have it; *ret_status is HTTP's. */
int agent_ask(const struct options *options, const char *method, const char *path, unsigned *ret_status,
	      struct strbuf *out);
/* Why it could not be asked, and what to do. */
void agent_explain(const struct options *options, int error, char *ret_text, size_t size);
