// SPDX-License-Identifier: Apache-2.0
/*
 * Gets the JSON document for gpus, ps and snapshot from the running agent over its UNIX socket, else from a
 * private collector, in the same format. A client that has begun to sample continues between documents, so
 * that its counters go on, until an agent is available.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/strbuf.h"
#include "config/options.h"
#include "model/snapshot.h"

struct snapshot_client;

int snapshot_client_new(const struct options *options, struct snapshot_client **ret_client);
void snapshot_client_free(struct snapshot_client *client);
DEFINE_CLEANUP(struct snapshot_client *, snapshot_client_free, snapshot_client_freep)

/*
 * Appends the newest document with these view_json() sections to @out. Negative: neither the agent nor the
 * driver's child is available; snapshot_client_note() has the reason.
 */
int snapshot_client_get(struct snapshot_client *client, unsigned sections, struct strbuf *out);
/*
 * The same, decoded; @ret_document may be NULL. Negative: @ret_why says why, with the remedy.
 */
int snapshot_client_read(struct snapshot_client *client, unsigned sections, json_t **ret_document,
			 struct snapshot **ret_snapshot, char *ret_why, size_t size);
/*
 * Waits for this time, or until @fd (-1: none) is readable: then 1. Continues sampling without an agent.
 */
int snapshot_client_wait(struct snapshot_client *client, int64_t ns, int fd);

/*
 * A note about the source of the data: that no agent runs or can be reached, with the remedy; "" if the agent
 * has answered.
 */
const char *snapshot_client_note(const struct snapshot_client *client);
/* Cause and remedy if the client samples itself and has no data; else NULL. */
const char *snapshot_client_failure(const struct snapshot_client *client);
bool snapshot_client_from_agent(const struct snapshot_client *client);

/* One request to the agent. -errno of connect(2) or the client; *ret_status is the HTTP status. */
int agent_request(const struct options *options, const char *method, const char *path, unsigned *ret_status,
		  struct strbuf *out);
/* Cause and remedy of an error of agent_request(). */
void agent_explain(const struct options *options, int error, char *ret_text, size_t size);
