// SPDX-License-Identifier: Apache-2.0
/* What a recording says to a question of /api/v1/history or /api/v1/moment (agent/history.h). */
#pragma once

#include "serve/http.h"
#include "store/reader.h"

struct history_question {
	bool moment; /* else a history */
	int64_t numbers[HTTP_NUMBERS]; /* enum history_number, unchecked */
};

struct history_text {
	unsigned status; /* of HTTP */
	bool is_json; /* else plain text */
	struct strbuf body;
};

/* 0, or why not, which @text says. */
int history_answer(struct store_reader *reader, const struct history_question *question,
		   struct history_text *text);
void history_refuse(struct history_text *text, int error, const char *why);
