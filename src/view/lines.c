// SPDX-License-Identifier: Apache-2.0
#include "view/lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hashmap.h"

struct making {
	const struct stack_page *page;
	struct stack_lines *lines;
	size_t lines_cap, calls_cap, calls_n;
	struct hashmap by_line; /* PID and place: index */
	struct hashmap by_call; /* line and function: index of a call */
	uint32_t *line_of; /* by call: its line, while they are made */
	size_t line_of_cap;
	uint32_t *row_of; /* by line: one plus the last row that has counted */
	size_t row_of_cap;
};

static int lines_grow(void **array, size_t *cap, size_t n, size_t size)
{
	size_t wanted = *cap ? 2 * *cap : 64;
	void *grown;

	if (n < *cap)
		return 0;
	grown = reallocarray(*array, wanted, size);
	if (!grown)
		return -ENOMEM;
	*array = grown;
	*cap = wanted;
	return 0;
}

/* A line of Python, or what is said in place of a stack; no native function. */
static bool is_line(const struct stack_place *place)
{
	return place->first_line > 0;
}

static int line_get(struct making *m, uint32_t pid, uint32_t place, uint32_t *ret_line)
{
	struct stack_lines *lines = m->lines;
	uint64_t key = (uint64_t)pid << 32 | place;
	int r;

	if (hashmap_get(&m->by_line, key, ret_line))
		return 0;
	r = lines_grow((void **)&lines->lines, &m->lines_cap, lines->lines_n, sizeof(*lines->lines));
	if (r == 0)
		r = lines_grow((void **)&m->row_of, &m->row_of_cap, lines->lines_n, sizeof(*m->row_of));
	if (r == 0)
		r = hashmap_put(&m->by_line, key, (uint32_t)lines->lines_n);
	if (r < 0)
		return r;
	lines->lines[lines->lines_n] = (struct stack_line){ .pid = pid, .place = place };
	m->row_of[lines->lines_n] = 0;
	*ret_line = (uint32_t)lines->lines_n++;
	return 0;
}

/* The row's calls are made by this line, or by what it calls. */
static int count_row(struct making *m, size_t row, uint32_t place, uint32_t *ret_line)
{
	const struct stack_row *from = &m->page->rows[row];
	int r = line_get(m, from->pid, place, ret_line);

	if (r < 0 || m->row_of[*ret_line] == row + 1)
		return r;
	m->row_of[*ret_line] = (uint32_t)row + 1;
	for (unsigned i = 0; i < STACK_WEIGHTS; i++)
		m->lines->lines[*ret_line].weights[i] += from->weights[i];
	return 0;
}

static int count_itself(struct making *m, const struct stack_row *from, uint32_t line)
{
	const uint64_t id[] = { line, (uintptr_t)from->call };
	uint64_t key = hash_bytes_secret(id, sizeof(id));
	uint32_t call;
	int r;

	m->lines->lines[line].itself += from->weights[STACK_CALLS];
	if (hashmap_get(&m->by_call, key, &call)) {
		m->lines->calls[call].count += from->weights[STACK_CALLS];
		return 0;
	}
	r = lines_grow((void **)&m->lines->calls, &m->calls_cap, m->calls_n, sizeof(*m->lines->calls));
	if (r == 0)
		r = lines_grow((void **)&m->line_of, &m->line_of_cap, m->calls_n, sizeof(*m->line_of));
	if (r == 0)
		r = hashmap_put(&m->by_call, key, (uint32_t)m->calls_n);
	if (r < 0)
		return r;
	m->line_of[m->calls_n] = line;
	m->lines->calls[m->calls_n++] = (struct stack_line_call){ from->call, from->weights[STACK_CALLS] };
	m->lines->lines[line].calls_n++;
	return 0;
}

static int count_all(struct making *m)
{
	for (size_t i = 0; i < m->page->rows_n; i++) {
		const struct stack_row *row = &m->page->rows[i];
		bool first = true;
		uint32_t line;
		int r = 0;

		if (row->weights[STACK_CALLS] <= 0)
			continue;
		for (uint32_t p = 0; r == 0 && p < row->n; p++) {
			if (!is_line(&m->page->places[row->places[p]]))
				continue;
			r = count_row(m, i, row->places[p], &line);
			if (r == 0 && first)
				r = count_itself(m, row, line);
			first = false;
		}
		if (r == 0 && first && row->n > 0) {
			r = count_row(m, i, row->places[row->n - 1], &line);
			if (r == 0)
				r = count_itself(m, row, line);
		}
		if (r < 0)
			return r;
	}
	return 0;
}

static int by_count(const void *a, const void *b)
{
	const struct stack_line_call *x = a, *y = b;

	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	return strcmp(x->call, y->call);
}

static int by_calls(const void *a, const void *b)
{
	const struct stack_line *x = a, *y = b;

	if (x->itself != y->itself)
		return x->itself > y->itself ? -1 : 1;
	if (x->weights[STACK_CALLS] != y->weights[STACK_CALLS])
		return x->weights[STACK_CALLS] > y->weights[STACK_CALLS] ? -1 : 1;
	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return (x->place > y->place) - (x->place < y->place);
}

/* Each line's calls one after the other. */
static int settle(struct making *m)
{
	struct stack_line_call *calls = calloc(m->calls_n + 1, sizeof(*calls)), *at = calls;
	struct stack_lines *lines = m->lines;

	if (!calls)
		return -ENOMEM;
	for (size_t i = 0; i < lines->lines_n; i++) {
		lines->lines[i].calls = at;
		at += lines->lines[i].calls_n;
		lines->lines[i].calls_n = 0;
	}
	for (size_t i = 0; i < m->calls_n; i++) {
		struct stack_line *line = &lines->lines[m->line_of[i]];

		calls[(size_t)(line->calls - calls) + line->calls_n++] = lines->calls[i];
	}
	for (size_t i = 0; i < lines->lines_n; i++)
		qsort(&calls[lines->lines[i].calls - calls], lines->lines[i].calls_n, sizeof(*calls),
		      by_count);
	free(lines->calls);
	lines->calls = calls;
	qsort(lines->lines, lines->lines_n, sizeof(*lines->lines), by_calls);
	return 0;
}

int stack_lines_new(const struct stack_page *page, struct stack_lines **ret_lines)
{
	_cleanup_(stack_lines_freep) struct stack_lines *lines = calloc(1, sizeof(*lines));
	struct making m = { .page = page, .lines = lines };
	int r;

	if (!lines)
		return -ENOMEM;
	/* So that there is something to sort. */
	r = lines_grow((void **)&lines->lines, &m.lines_cap, 0, sizeof(*lines->lines));
	if (r == 0)
		r = count_all(&m);
	if (r == 0)
		r = settle(&m);
	hashmap_done(&m.by_line);
	hashmap_done(&m.by_call);
	free(m.line_of);
	free(m.row_of);
	if (r == 0)
		*ret_lines = TAKE_PTR(lines);
	return r;
}

void stack_lines_free(struct stack_lines *lines)
{
	if (!lines)
		return;
	free(lines->lines);
	free(lines->calls);
	free(lines);
}
