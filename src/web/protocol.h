// SPDX-License-Identifier: Apache-2.0
/*
 * What the agent and the process that listens (gpusonde-web) say to each other, over SOCK_SEQPACKET sockets,
 * one structure for each message. Both are built together, so there is no version.
 *
 * The first socket is for the agent's main loop: it hands over listening sockets and the rest, and asks
 * whether the process is alive. Then there are one socket for pages and one for atop, each used by one thread
 * of the process, which asks, and one of the agent, which answers; and two shared pages: web_news is written
 * by the agent and read-only for the process, web_counts the opposite.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "serve/atop_server.h"
#include "serve/http.h"

/* Newest numbers of the agent. */
struct web_news {
	atomic_uint_fast64_t generation; /* struct http_config's */
	atomic_uint_fast64_t atop_layout, atop_newest_exit; /* struct atop_source's */
};

/* Totals since the process was started. */
struct web_counts {
	atomic_uint_fast64_t http_requests, http_evicted, http_streams_dropped, http_refused[HTTP_REFUSALS];
	atomic_uint http_connections, http_streams, atop_clients;
};

/* The program's first argument; the second is the PID of the agent. */
#define WEB_ROLE "serve"

/* ---- the main loop's socket ---- */

enum web_order {
	WEB_NEWS, /* memory of struct web_news */
	WEB_COUNTS, /* memory of struct web_counts */
	WEB_PAGE_CHANNEL, /* a socket */
	WEB_ATOP_CHANNEL,
	WEB_LIFELINE, /* a pipe whose end is that of the agent; may be left out */
	/*
	 * Memory of records, who may ask for what (serve/access.h). Before WEB_START, and again whenever they
	 * change; where TLS comes or goes, all connections and listening sockets are closed with it.
	 */
	WEB_ACCESS,
	WEB_START, /* begins to serve; struct web_setup; no descriptor */
	WEB_LISTEN_HTTP, /* a listening socket */
	WEB_LISTEN_EXPORTER, /* the same, with the DCGM exporter's names of pages */
	WEB_LISTEN_ATOP,
	/* Stops listening. The descriptor is closed by the process when it has done so. */
	WEB_UNLISTEN_HTTP,
	WEB_UNLISTEN_ATOP,
	/* Is answered by the same byte when all of its threads have gone through what is to do. */
	WEB_PING,
};

struct web_message {
	uint8_t order; /* enum web_order */
};

enum { WEB_HOSTS_MAX = 64 << 10 };

struct web_setup {
	uint8_t order;
	uint32_t max_connections;
	char hosts[]; /* struct http_config's, with a zero byte at the end */
};

/* ---- the sockets for pages and for atop ---- */

enum web_question { WEB_PAGE, WEB_ATOP_TYPES, WEB_ATOP_STATS };

struct web_ask {
	uint32_t id; /* chosen by the process; the answer has the same */
	uint8_t question; /* enum web_question */
	uint8_t page; /* enum web_page */
	uint8_t variant;
	uint8_t atop_version;
	uint8_t posts; /* of a page: POST, and not GET */
	char who[ACCESS_NAME_MAX]; /* struct http_request's, of pages that have the agent do something */
	uint64_t exit_seq; /* struct atop_source's */
	int64_t numbers[HTTP_NUMBERS]; /* struct http_request's */
	char text[HTTP_TEXT_MAX]; /* the same */
};

enum { WEB_INLINE_MAX = ATOP_TEXT_MAX, WEB_CONTENT_TYPE_MAX = 96 };

struct web_answer {
	uint32_t id;
	int32_t error; /* 0 or -errno: then there is no body */
	uint32_t status; /* of HTTP */
	/* Of the body: inline, or if it is longer than WEB_INLINE_MAX in memory, until the next question. */
	uint32_t bytes;
	uint64_t exit_seq; /* struct atop_source's *ret_exit_seq */
	char content_type[WEB_CONTENT_TYPE_MAX];
	struct http_age age;
	char body[WEB_INLINE_MAX];
};

/* How long the process waits for an answer, and how often it is asked whether it is alive. */
#define WEB_ANSWER_NS (10 * NSEC_PER_SEC)
#define WEB_PING_NS (5 * NSEC_PER_SEC)
