// SPDX-License-Identifier: Apache-2.0
/*
 * Keeps a collection of objects as the API server has it: lists it, in pages, then watches it, and goes on
 * from where it was when the connection ends.
 *
 *   WAITING -> LISTING (page by page) -> WATCHING -> WATCHING again ... -> LISTING when the server no longer
 *   knows the version at which we were (410)
 *
 * The first list may come from the server's cache; after a 410 it is what etcd has. A failure makes it wait:
 * twice as long each time, up to a minute, or ten seconds where nobody answered, with jitter, or as long as
 * the server says. So does a second 410 before a watch has lasted. A watch and all pages of a list have a
 * time by which they must have ended, so that a server that drips keeps nothing current that is old.
 */
#pragma once

#include "kube/client.h"
#include "base/json_reader.h"

struct watch;

/* Ids of the caller's paths are below. */
enum { WATCH_OWN_IDS = 1000 };

struct watch_config {
	const char *path; /* "/api/v1/pods" */
	const char *query; /* "fieldSelector=...", escaped; "" */
	/* Of an object; value(), begin() and end() are called for them, as of the object at hand. */
	const struct json_path *paths;
	size_t paths_n;
	struct json_ops ops;
	/* A list begins, and has ended: what it had not is gone. */
	void (*list_begins)(void *userdata);
	void (*list_ended)(void *userdata);
	/* The object at hand begins, and is whole: it is there, as of now, or gone. */
	void (*object_begins)(void *userdata);
	void (*object_ended)(bool gone, void *userdata);
	void *userdata;
	int64_t timeout_ns; /* after which the server is to end a watch */
};

enum watch_outcome {
	WATCH_BEGINS, /* nothing is known yet */
	WATCH_WELL,
	WATCH_FAILS, /* what was known stays */
	WATCH_REFUSED, /* the same, for want of rights: 401, 403, 404 */
};

struct watch_state {
	enum watch_outcome outcome;
	char error[300]; /* unless it is well */
	bool listed; /* the whole collection was known once */
	int64_t good_ns; /* when it was last well, monotonic clock; 0: never */
	uint64_t lists, watches; /* that have begun */
	uint64_t failures[NET_FAILURES]; /* requests that failed */
};

/* Copies @config but the paths' texts. */
int watch_new(struct client *client, const struct watch_config *config, struct watch **ret_watch);
void watch_free(struct watch *watch);
DEFINE_CLEANUP(struct watch *, watch_free, watch_freep)
/* Begins what is due. Returns when to call it again at the latest, monotonic clock. */
int64_t watch_step(struct watch *watch, int64_t now_ns);
/* Ends the connection, and goes on with another one, where it was. */
void watch_reconnect(struct watch *watch);
/* Credentials are others now: does not wait for a failure's end. */
void watch_hurry(struct watch *watch);
/* A request was answered by 401, or a certificate did not fit: credentials are to be read again. */
bool watch_take_rejected(struct watch *watch);
const struct watch_state *watch_state(const struct watch *watch);
