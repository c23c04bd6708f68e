// SPDX-License-Identifier: Apache-2.0
/* Texts and stacks of an analysis, and what users may have of what they share. */
#pragma once

#include "analysis/stack.h"
#include "base/hashmap.h"
#include "base/row_list.h"
#include "base/strbuf.h"
#include "base/user_shares.h"

/* Texts, printable, each once, by number. */
struct text_table {
	struct strbuf bytes; /* of all, each with its NUL */
	struct row_list at; /* uint32_t: where each begins */
	struct hashmap by;
	size_t bytes_max;
};

/* Stacks, each once, by number; their frames are texts. */
struct stack_table {
	struct text_table texts;
	struct row_list stacks; /* struct stack_row */
	struct row_list numbers; /* uint32_t: frames, the innermost first */
	struct hashmap by;
	uint32_t generation; /* all begin anew when they are full: numbers before are of no stack then */
	uint64_t since_ns;
};

enum analysis_share {
#define SHARE(id_, room_) SHARE_##id_,
#include "analysis/shares.def"
#undef SHARE
	ANALYSIS_SHARES
};
enum {
#define SHARE(id_, room_) ROOM_##id_ = (room_),
#include "analysis/shares.def"
#undef SHARE
};
_Static_assert((int)ANALYSIS_SHARES <= (int)USER_SHARES_TABLES, "each is counted");

/* text.c */
void text_table_init(struct text_table *table, uint32_t max, size_t bytes);
void text_table_done(struct text_table *table);
void text_table_clear(struct text_table *table);
/* -ENOBUFS, -ENOMEM. */
int text_table_add(struct text_table *table, const char *text, uint32_t *ret_text);
/* "" for what is no text's number. */
const char *text_table_get(const struct text_table *table, uint32_t text);

/* share.c */
void shares_init(struct user_shares *shares);
/* Whether a user may have @n more of it. User 0 is not told from others and may have all. */
bool share_has(struct analysis *analysis, uint64_t user, enum analysis_share share, uint32_t n);
void share_take(struct analysis *analysis, uint64_t user, enum analysis_share share, uint32_t n);
void share_give(struct analysis *analysis, uint64_t user, enum analysis_share share, uint32_t n);
/* Nobody has any of it. */
void share_clear(struct analysis *analysis, enum analysis_share share);

/* stack.c */
void stack_table_init(struct stack_table *table);
void stack_table_done(struct stack_table *table);
/* Numbers of its frames' texts, the innermost first; NULL: it is not known any more. */
const uint32_t *stack_numbers(const struct analysis *analysis, uint64_t stack, uint32_t *ret_n);

/* merged.c */
struct ranked_stack {
	uint64_t stack;
	int32_t rank; /* -1: not known */
	uint32_t pid;
};
/*
 * Several stacks by frame; sorts @list. To be freed. NULL: none has frames, or out of memory.
 */
struct analysis_frames *stacks_merge(const struct analysis *analysis, struct ranked_stack *list, uint32_t n);
