// SPDX-License-Identifier: Apache-2.0
/*
 * Requests to the API server: GET alone, by libcurl, several at a time, each a stream of bytes to its
 * caller. HTTP/1.1, so that a watch has a connection of its own and can delay nothing else. Redirections are
 * not followed, nothing is unpacked, no proxy but a configured one is used.
 */
#pragma once

#include <stdint.h>

#include "kube/access.h"
#include "model/net_failure.h"

struct client;
struct request;

/* How a request ended. */
struct outcome {
	long status; /* HTTP's; 0: there was no answer */
	enum net_failure failure; /* NET_OK: there is none */
	int error; /* 0; -EIO: of the connection; or what data() returned */
	int64_t retry_after_ns; /* the server wants to be left alone for so long; 0: it did not say */
	char words[256]; /* why it failed, printable; "" if it did not */
};

struct request_ops {
	/* The next bytes of an answer of status 200. Not 0: the request ends with that error. May be NULL. */
	int (*data)(const char *data, size_t n, void *userdata);
	/* It has ended, and is gone. May start others. */
	void (*done)(const struct outcome *outcome, void *userdata);
};

struct client_figures {
	uint64_t requests, bytes; /* of answers, headers included */
};

/* When a request is given up. */
struct request_limits {
	int64_t quiet_ns; /* no byte has come for so long */
	int64_t whole_ns; /* it has not ended so long after it began, whatever comes */
};

/* What one object, or a short list, is waited for: a server that drips would hold up all others. */
#define REQUEST_LIMITS_SHORT ((const struct request_limits){ 10 * NSEC_PER_SEC, 30 * NSEC_PER_SEC })

int client_new(struct access *access, struct client **ret_client);
void client_free(struct client *client);
DEFINE_CLEANUP(struct client *, client_free, client_freep)

/*
 * Begins GET @path, which begins with "/", with the header Accept. *ret_request is valid until done().
 * -errno: it could not begin, and done() is not called.
 */
int client_get(struct client *client, const char *path, const char *accept,
	       const struct request_limits *limits, const struct request_ops *ops, void *userdata,
	       struct request **ret_request);
/* Ends it without done(). NULL does nothing. */
void client_cancel(struct client *client, struct request *request);
/* Whether an answer of status 200 has begun. */
bool request_is_answered(const struct request *request);
/* Goes on with all requests; calls data() and done(). */
void client_step(struct client *client);
/* Waits until something can go on, @fd is readable, or for @timeout_ms. True: @fd is readable. */
bool client_wait(struct client *client, int fd, int timeout_ms);
/* What is not in use is closed, so that the next requests make connections with what has changed. */
void client_close_idle(struct client *client);
void client_take_figures(struct client *client, struct client_figures *ret_figures);
