// SPDX-License-Identifier: Apache-2.0
/* The model's inference servers; internals of server.c, and what the rest of the model calls of it. */
#pragma once

#include "model/server.h"

enum { SERVER_MARKS_MAX = 16 };

/* The sums when a page was read. */
struct server_mark {
	int64_t boot_ns;
	double v[SERVER_METRICS];
	uint8_t p[SERVER_METRICS];
};

/* What the model keeps of a server. */
struct tracked_server {
	struct inference_server s;
	double raw[SERVER_TOLD]; /* the newest of the page's numbers */
	uint32_t members_n, marks_n;
	struct process_id members[SERVER_MEMBERS_MAX];
	struct server_mark marks[SERVER_MARKS_MAX]; /* oldest first */
};

struct server_table {
	bool read;
	uint32_t n;
	uint64_t left_out;
	struct tracked_server list[SERVERS_MAX];
};

struct model;

/* Shares out what GPUs' time and energy have grown by in a reading whose processes have been credited. */
void servers_count(struct model *model);
void servers_publish(const struct server_table *table, struct servers *ret_servers);
