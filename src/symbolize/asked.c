// SPDX-License-Identifier: Apache-2.0
#include "symbolize/asked.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct asked_account {
	struct asked_account *next; /* in the row */
	uint64_t key;
	uint32_t n, sent_n;
	struct asked *first, *last; /* that wait */
};

void asked_init(struct asked_table *table, uint32_t max, uint32_t window)
{
	*table = (struct asked_table){ .max = max, .window = window };
}

void asked_done(struct asked_table *table)
{
	while (table->n > 0)
		asked_remove(table, table->all[table->n - 1]);
	free(table->all);
	hashmap_done(&table->by_id);
}

/* ---- accounts ---- */

static void join_row(struct asked_table *table, struct asked_account *account)
{
	account->next = NULL;
	if (table->last)
		table->last->next = account;
	else
		table->turn = account;
	table->last = account;
}

static void leave_row(struct asked_table *table, struct asked_account *account)
{
	struct asked_account **at = &table->turn, *before = NULL;

	while (*at != account) {
		before = *at;
		at = &before->next;
	}
	*at = account->next;
	if (table->last == account)
		table->last = before;
}

static struct asked_account *account_for(struct asked_table *table, uint64_t key)
{
	struct asked_account *account = table->turn;

	while (account && account->key != key)
		account = account->next;
	if (account)
		return account;
	account = calloc(1, sizeof(*account));
	if (!account)
		return NULL;
	account->key = key;
	join_row(table, account);
	return account;
}

static void drop_if_empty(struct asked_table *table, struct asked_account *account)
{
	if (account->n > 0)
		return;
	leave_row(table, account);
	free(account);
}

/* ---- queues ---- */

static void queue_last(struct asked *asked)
{
	struct asked_account *account = asked->account;

	asked->next = NULL;
	if (account->last)
		account->last->next = asked;
	else
		account->first = asked;
	account->last = asked;
}

static void unqueue(struct asked *asked)
{
	struct asked_account *account = asked->account;
	struct asked **at = &account->first, *before = NULL;

	while (*at != asked) {
		before = *at;
		at = &before->next;
	}
	*at = asked->next;
	if (account->last == asked)
		account->last = before;
}

/* ---- questions ---- */

static struct asked *copy_question(const struct symbolizer_question *question)
{
	size_t symbol_n = question->symbol ? strlen(question->symbol) + 1 : 0;
	size_t path_n = question->path ? strlen(question->path) + 1 : 0;
	struct asked *asked = malloc(sizeof(*asked) + symbol_n + path_n);
	char *at;

	if (!asked)
		return NULL;
	*asked = (struct asked){ .question = *question };
	at = (char *)(asked + 1);
	if (symbol_n)
		asked->question.symbol = memcpy(at, question->symbol, symbol_n);
	if (path_n)
		asked->question.path = memcpy(at + symbol_n, question->path, path_n);
	return asked;
}

static int make_place(struct asked_table *table)
{
	uint32_t room = MIN(table->room ? table->room * 2 : 64, table->max);
	struct asked **all;

	if (table->n < table->room)
		return 0;
	all = reallocarray(table->all, room, sizeof(struct asked *));
	if (!all)
		return -ENOMEM;
	table->all = all;
	table->room = room;
	return 0;
}

int asked_add(struct asked_table *table, const struct symbolizer_question *question, uint64_t key)
{
	struct asked_account *account = account_for(table, key);
	struct asked *asked;
	int r;

	if (!account)
		return -ENOMEM;
	/* Less than what is free: as many as all others together could still take. */
	r = account->n >= table->max - table->n ? -EAGAIN : make_place(table);
	asked = r == 0 ? copy_question(question) : NULL;
	if (!asked) {
		drop_if_empty(table, account);
		return r < 0 ? r : -ENOMEM;
	}
	asked->account = account;
	account->n++;
	asked->at = table->n;
	table->all[table->n++] = asked;
	queue_last(asked);
	return 0;
}

/* The same rule for what the helper works on. */
static bool may_send(const struct asked_table *table, const struct asked_account *account)
{
	return account->first && account->sent_n < table->window - table->sent_n;
}

struct asked *asked_next(struct asked_table *table)
{
	struct asked_account *first = table->turn;

	if (!first || table->sent_n >= table->window)
		return NULL;
	do {
		struct asked_account *account = table->turn;

		leave_row(table, account);
		join_row(table, account);
		if (may_send(table, account)) {
			account->first->id = ++table->ids;
			return account->first;
		}
	} while (table->turn != first);
	return NULL;
}

int asked_mark_sent(struct asked_table *table, struct asked *asked)
{
	int r = hashmap_put(&table->by_id, asked->id, asked->at);

	if (r < 0)
		return r;
	unqueue(asked);
	asked->sent = true;
	asked->account->sent_n++;
	table->sent_n++;
	return 0;
}

struct asked *asked_find(const struct asked_table *table, uint64_t id)
{
	uint32_t at;

	return hashmap_get(&table->by_id, id, &at) ? table->all[at] : NULL;
}

static void forget_sent(struct asked_table *table, struct asked *asked)
{
	hashmap_del(&table->by_id, asked->id);
	asked->sent = false;
	asked->account->sent_n--;
	table->sent_n--;
}

void asked_take_back(struct asked_table *table)
{
	for (uint32_t i = 0; i < table->n; i++) {
		struct asked *asked = table->all[i];

		if (!asked->sent)
			continue;
		forget_sent(table, asked);
		asked->tries++;
		queue_last(asked);
	}
}

void asked_remove(struct asked_table *table, struct asked *asked)
{
	struct asked_account *account = asked->account;
	struct asked *moved = table->all[--table->n];

	if (asked->sent)
		forget_sent(table, asked);
	else
		unqueue(asked);
	table->all[asked->at] = moved;
	moved->at = asked->at;
	/* Cannot fail: the entry is there. */
	if (moved != asked && moved->sent)
		(void)hashmap_put(&table->by_id, moved->id, moved->at);
	account->n--;
	drop_if_empty(table, account);
	free(asked);
}
