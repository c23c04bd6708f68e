// SPDX-License-Identifier: Apache-2.0
/* The process that receives, a role of gpusonde-reader: it answers the agent's questions (protocol.h). */
#pragma once

#include "plugin_socket/clients.h"
#include "plugin_socket/protocol.h"

struct plugin_server {
	struct plugin_clients *clients;
	uint32_t row_bytes, rows_max;
	/* Before the first client; may be NULL. */
	void (*greeting)(const uint8_t greeting[static PLUGIN_GREETING_BYTES], void *userdata);
	/* Fills @rows, and returns how many records were lost, of the totals. */
	uint64_t (*table)(enum plugin_table table, struct row_list *rows, void *userdata);
	/* What is handed on as it came, and what of it found no room so far; NULL: nothing is. */
	struct row_list *(*records)(void *userdata);
	uint64_t (*records_sent)(void *userdata);
	void *userdata;
};

/* Until the agent closes @channel; returns the exit status. */
int plugin_serve(int channel, const struct plugin_server *server);
