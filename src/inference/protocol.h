// SPDX-License-Identifier: Apache-2.0
/*
 * src/inference finds inference servers (vLLM, SGLang, ...) among the machine's processes and reads their own
 * pages of metrics, for the agent (agent/inference.c), in two processes:
 *
 *   a role of gpusonde-reader  looks at processes: which are servers, where they listen (find.c, names.c,
 *                              ports.c); it may look at other users' ones, and connects to nothing
 *   gpusonde-inference         asks servers for their pages, and reads them (fetch.c, page.c); it has no
 *                              rights, and opens nothing
 *
 * Invariants
 *  1. A server is asked for its page alone, by one request at a time, at the port that its kind is known to
 *     have, that its command line says, or that is its only one: no other socket is ever connected to.
 *  2. What servers are called, which ports they have and what their pages say, their users choose: names are
 *     those of model/servers.def, and every list, text and time has a limit.
 *  3. It connects to addresses of this machine, of this network namespace, and follows nothing to elsewhere.
 *
 * Between the agent and these: questions, each with its answer or answers.
 */
#pragma once

#include <stdint.h>

#include "helper/helper.h"
#include "helper/message.h"
#include "model/server.h"

/* To the finder. */
struct find_question {
	char version[QUESTION_VERSION_BYTES];
	uint32_t arguments; /* 1: command lines may be read, which lie in the processes' memory */
	uint32_t reserved;
};

struct find_answer {
	uint32_t n;
	uint32_t reserved;
	uint64_t left_out; /* servers that found no room */
	struct found_server list[SERVERS_MAX]; /* only @n are sent */
};

/* To gpusonde-inference: whose pages are wanted. For each one an answer, in this order. */
struct pages_question {
	char version[QUESTION_VERSION_BYTES];
	uint32_t n;
	uint32_t reserved;
	struct page_asked {
		uint32_t kind; /* enum server_kind */
		uint32_t port, is_ipv6;
		uint8_t address[16];
	} asked[SERVERS_MAX];
};

struct page_answer {
	uint32_t index;
	uint32_t read; /* 1: @page is what it said; 0: @error says why not */
	char error[SERVER_ERROR_MAX];
	struct server_page page;
};

_Static_assert(sizeof(struct find_answer) <= HELPER_MESSAGE_MAX, "an answer fits in a message");
