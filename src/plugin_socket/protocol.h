// SPDX-License-Identifier: Apache-2.0
/* Between the agent (agent/plugin_socket.c) and a process that receives: a question; rows, an answer. */
#pragma once

#include <stdint.h>

#include "helper/parts.h"

enum { PLUGIN_ANSWER = PART_OTHERS, PLUGIN_GREETING_BYTES = 32 };

/*
 * The first two have rows of one kind; a protocol may have no totals. Records are those that have come since
 * the answer before, in their order; a protocol may have none.
 */
enum plugin_table { PLUGIN_TABLE_ROWS, PLUGIN_TABLE_TOTALS, PLUGIN_TABLE_RECORDS, PLUGIN_TABLES };

struct plugin_question {
	char version[32]; /* GPUSONDE_VERSION */
	uint8_t greeting[PLUGIN_GREETING_BYTES]; /* what clients are told when they connect, if they are */
	/* With the first one comes the socket that listens. */
};

/* After the tables. */
struct plugin_answer {
	uint32_t message; /* PLUGIN_ANSWER */
	uint32_t rows[PLUGIN_TABLES];
	uint32_t pad;
	uint64_t digest[PLUGIN_TABLES]; /* 0: the table is empty */
	uint64_t refused, dropped;
	uint64_t lost; /* of the totals */
	uint64_t records_dropped; /* so far */
};
