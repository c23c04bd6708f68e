// SPDX-License-Identifier: Apache-2.0
/*
 * A gRPC client for one connection and one call at a time: HTTP/2 by libnghttp2, without TLS. What the
 * server sends is hostile: it is bounded, and handed on in pieces, as it comes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"

/* The codes of gRPC that are told apart here. */
enum grpc_status {
	GRPC_OK = 0,
	GRPC_DEADLINE_EXCEEDED = 4,
	GRPC_RESOURCE_EXHAUSTED = 8,
	GRPC_FAILED_PRECONDITION = 9,
	GRPC_UNIMPLEMENTED = 12,
	GRPC_UNAVAILABLE = 14,
};

struct grpc_call {
	const char *path; /* "/v1.PodResourcesLister/List" */
	const void *message; /* the request's, of @n bytes */
	size_t n;
	/* The next bytes of the reply's message, without gRPC's prefix; not 0: the call fails with that. */
	int (*data)(const uint8_t *data, size_t n, void *userdata);
	void *userdata;
};

/* How a call ended that was answered. */
struct grpc_answer {
	int status; /* enum grpc_status, or another code of gRPC's */
	char message[160]; /* the server's words, printable; "": none */
};

struct grpc;

int grpc_new(struct grpc **ret_grpc);
void grpc_free(struct grpc *grpc);
DEFINE_CLEANUP(struct grpc *, grpc_free, grpc_freep)

/*
 * Calls over the connected, non-blocking socket @fd, and waits until @deadline_ns (monotonic clock). 0:
 * *ret_answer says how it ended. Else the connection is of no more use: -ETIMEDOUT; -ECONNRESET: closed;
 * -EPROTO: no gRPC; -EFBIG: the reply has more than GRPC_REPLY_MAX bytes; what data() returned; another
 * errno of the socket.
 */
int grpc_run(struct grpc *grpc, int fd, const struct grpc_call *call, int64_t deadline_ns,
	     struct grpc_answer *ret_answer);

/*
 * Between calls, when the socket is readable: takes what has come, and answers it (pings). Errors as
 * grpc_run()'s: the connection has ended.
 */
int grpc_idle(struct grpc *grpc, int fd);

/* Several times what a node of 500 pods has; kubelet's own clients take 16 MiB. */
#define GRPC_REPLY_MAX (UINT64_C(64) << 20)

/* ---- the parts of grpc_run() that touch no socket ---- */

int grpc_begin(struct grpc *grpc, const struct grpc_call *call);
/* Bytes that came from the server. Errors as grpc_run()'s. */
int grpc_feed(struct grpc *grpc, const uint8_t *data, size_t n);
/* Bytes for the server: *ret_data is valid until the next call. 0: none for now. */
int grpc_take(struct grpc *grpc, const uint8_t **ret_data, size_t *ret_n);
/* The call has ended as *ret_answer says. */
bool grpc_ended(const struct grpc *grpc, struct grpc_answer *ret_answer);
