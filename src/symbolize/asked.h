// SPDX-License-Identifier: Apache-2.0
/*
 * Questions that have no answer yet, those that wait to be sent and those that were. Accounts (users, see
 * proc/account.h) take turns, and none may have more than is left for all others: one that floods has at most
 * half of the table, and there is always room for another.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/hashmap.h"
#include "symbolize/symbolize.h"

struct asked_account;

struct asked {
	struct asked *next; /* in its account's queue */
	struct asked_account *account;
	uint64_t id; /* in messages: another one each time it is sent */
	uint32_t at; /* in asked_table.all */
	bool sent;
	unsigned tries; /* helpers that were lost with it */
	struct symbolizer_question question; /* its texts are stored behind the struct */
};

struct asked_table {
	uint32_t max, window; /* sent ones */
	struct asked **all;
	uint32_t n, room, sent_n;
	struct asked_account *turn, *last; /* whose turn it is, and the last in the row */
	struct hashmap by_id; /* sent ones, to their place in all */
	uint64_t ids;
};

void asked_init(struct asked_table *table, uint32_t max, uint32_t window);
void asked_done(struct asked_table *table);
/* Copies the question. -EAGAIN: the account has its share; -ENOMEM. */
int asked_add(struct asked_table *table, const struct symbolizer_question *question, uint64_t account);
/* The next one to send, with its new id. NULL: none now. */
struct asked *asked_next(struct asked_table *table);
/* It was sent. -ENOMEM: it is not known by its id. */
int asked_mark_sent(struct asked_table *table, struct asked *asked);
/* The sent one with this id; NULL: none. */
struct asked *asked_find(const struct asked_table *table, uint64_t id);
/* All sent ones will be sent again. */
void asked_take_back(struct asked_table *table);
void asked_remove(struct asked_table *table, struct asked *asked);
