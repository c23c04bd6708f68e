// SPDX-License-Identifier: Apache-2.0
/* What a recording says to a question of /api/v1/history or /api/v1/moment (agent/record/history.h). */
#pragma once

#include "agent/answers.h"
#include "store/reader.h"

/* 0, or why not, which @answer says. The question's numbers are enum history_number, unchecked. */
int history_answer(struct store_reader *reader, const struct question *question, bool moment,
		   struct answer *answer);
/* A time of a question, in real time: below 0 it is so long before now. */
int64_t history_when(int64_t number, int64_t now_ns);
void history_refuse(struct answer *answer, int error, const char *why);
