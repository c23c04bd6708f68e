// SPDX-License-Identifier: Apache-2.0
/*
 * Inference servers (vLLM, SGLang, ...): what their own pages of metrics say, and what of the GPUs' time
 * and energy is theirs. src/inference finds and reads them, the model adds counters up, views show the sums.
 *
 * Numbers of a page are the claims of the user who runs the server. GPUs' time and energy are the model's
 * own: of a GPU on which only processes of the server are, all of both; of one that it shares, a part, which
 * is marked as an estimate: by busy time, and where nobody was busy by processes.
 */
#pragma once

#include "base/process_id.h"
#include "model/metric.h"

enum server_kind {
#define SERVER(id_, name_, port_, flag_, remedy_) SERVER_##id_,
#include "model/servers.def"
#undef SERVER
	SERVER_KINDS
};

enum server_state {
#define SERVER_STATE(id_, name_, words_) SERVER_STATE_##id_,
#include "model/server_states.def"
	SERVER_STATES
};

enum {
	SERVERS_MAX = 16,
	SERVER_MEMBERS_MAX = 64, /* processes of a server */
	SERVER_ERROR_MAX = 128,
	SERVER_TOLD = SERVER_GPU_SECONDS, /* the metrics before it are what pages tell */
};

struct server_row {
	const char *name;
	uint16_t port;
	const char *flag, *remedy;
};
extern const struct server_row server_kinds[SERVER_KINDS];

struct server_state_row {
	const char *name, *words;
};
extern const struct server_state_row server_states[SERVER_STATES];

struct inference_server {
	struct process_id id; /* of the process that the others come from */
	uint32_t uid; /* UINT32_MAX: unknown */
	uint32_t kind; /* enum server_kind */
	uint32_t state; /* enum server_state */
	uint32_t port; /* of its page; 0: unknown */
	int64_t read_boot_ns; /* when its page was read last; 0: never */
	char error[SERVER_ERROR_MAX]; /* why not, of the newest try; "" */
	double v[SERVER_METRICS];
	uint8_t p[SERVER_METRICS];
};

struct servers {
	bool read; /* false: nobody looks for them (inference.servers) */
	uint32_t n;
	uint64_t left_out; /* servers beyond the first SERVERS_MAX, of the newest look */
	struct inference_server list[SERVERS_MAX];
};

/* A server as it was found, with its processes. */
struct found_server {
	struct process_id id;
	uint32_t uid, kind, state, port;
	uint8_t address[16]; /* IPv6, or IPv4 in its first bytes */
	uint32_t is_ipv6;
	uint32_t members_n;
	struct process_id members[SERVER_MEMBERS_MAX];
};

/* What a page said; v and p of SERVER_METRICS, sums as the page has them. */
struct server_page {
	double v[SERVER_METRICS];
	uint8_t p[SERVER_METRICS];
};
