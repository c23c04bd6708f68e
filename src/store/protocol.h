// SPDX-License-Identifier: Apache-2.0
/*
 * Between who records or reads (agent/record/recording.c, store/reader.h) and gpusonde-store: first
 * STORE_OPEN with the descriptor of the folder, then frames, or questions for blocks, each answered once.
 */
#pragma once

#include <stdint.h>

#include "store/tiers.h"

enum { STORE_NAME_MAX = 256 };

enum store_ask {
	STORE_OPEN, /* with the folder; from then on the process can open nothing else */
	STORE_FRAME, /* with a file in memory */
	STORE_CLOSE, /* what is not in the file yet is put there */
	STORE_LIST,
	STORE_BLOCK,
	STORE_LAYOUT,
	STORE_ASKS,
};

struct store_question {
	char version[32]; /* GPUSONDE_VERSION; of another one's question nothing else is read */
	uint32_t ask; /* enum store_ask */
	uint32_t writes; /* STORE_OPEN: frames will come */
	int64_t id; /* of the block or layout */
	uint64_t bytes; /* of the frame */
	char name[STORE_NAME_MAX]; /* of the file in the folder */
	struct tiers_settings settings;
};

struct store_answer {
	int32_t error; /* 0 or -errno */
	uint32_t want_slow;
	uint64_t bytes; /* in the file in memory that comes with it, if one does */
	struct tiers_figures figures; /* since it was opened */
	struct database_figures file;
	char text[256]; /* what is wrong; "" */
};
