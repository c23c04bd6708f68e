// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "pipeline/stacks_private.h"
#include "trace/probe.h"

enum { PROCESS_NAME = TRACE_COMM + 16 };

static void stacks_say(struct stack_sums *s, const char *before, uint64_t n, const char *after)
{
	if (n > 0)
		strbuf_addf(&s->said, "%s%s%" PRIu64 "%s", s->said.len > 0 ? "; " : "", before, n, after);
}

static uint64_t unknown_pythons(const struct stack_sums *s)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < s->processes_n; i++)
		n += s->processes[i].python != STACKS_PYTHON_ASKED;
	return n;
}

/* @cut: rows that had no room in the view. */
static void say_missing(struct stack_sums *s, uint32_t cut)
{
	strbuf_reset(&s->said);
	stacks_say(s, "", s->lost_events, " events were lost");
	stacks_say(s, "the stacks of ", s->frameless, " calls could not be told");
	stacks_say(s, "the stacks of ", s->given_up, " calls were not taken, for trace.max_overhead");
	stacks_say(s, "the bytes and waits of ", s->unreturned, " calls are not known: no return probe");
	stacks_say(s, "", s->lost_rows, " calls are left out: there are too many stacks");
	stacks_say(s, "", s->refused, " functions and stacks of users who have their share are left out");
	stacks_say(s, "", s->lost_held, " allocations are left out: too many are held");
	stacks_say(s, "", python_stacks_lost(s->python), " functions or stacks did not fit");
	if (s->native) {
		uint64_t crowded, unnamed = stack_natives_lost(s->native, &crowded);

		stacks_say(s, "", unnamed, " names of native functions, or files with such, are left out");
		stacks_say(s, "", crowded, " times there was no room for a file with native functions");
	}
	stacks_say(s, "", cut, " stacks are only added up: all are too many for a page");
	stacks_say(s, "the Python of ", unknown_pythons(s), " processes is not known");
	if (s->unknown_version)
		strbuf_addf(&s->said, " (3.%u)", s->unknown_version >> 16 & 0xff);
}

/* A process's user chooses its name. */
static void name_process(const struct stacks_process *process, char name[static PROCESS_NAME])
{
	snprintf(name, PROCESS_NAME, "%.*s %" PRIu32, (int)TRACE_COMM, process->comm, process->id.pid);
	utf8_sanitize(name);
	for (char *c = name; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
}

/* The largest of a row's parts of the sums of all weights. */
static double weight_of(const struct stacks_row *row, const double sums[static STACK_WEIGHTS])
{
	double part = 0;

	for (unsigned i = 0; i < STACK_WEIGHTS; i++)
		if (sums[i] > 0 && row->weights[i] > part * sums[i])
			part = row->weights[i] / sums[i];
	return part;
}

struct chosen {
	uint32_t row; /* STACKS_NONE: the sum of the process's others */
	uint32_t process;
	double part;
};

static int by_part(const void *a, const void *b)
{
	const struct chosen *left = a, *right = b;

	if (left->part != right->part)
		return left->part > right->part ? -1 : 1;
	return left->row < right->row ? -1 : left->row > right->row;
}

/* All rows; @sort: those that weigh most first. */
static int choose(const struct stack_sums *s, bool sort, struct chosen **ret_chosen)
{
	struct chosen *chosen = calloc(s->rows_n + 1, sizeof(*chosen));
	double sums[STACK_WEIGHTS] = { 0 };

	if (!chosen)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->rows_n; i++)
		for (unsigned k = 0; k < STACK_WEIGHTS; k++)
			sums[k] += s->rows[i].weights[k];
	for (uint32_t i = 0; i < s->rows_n; i++)
		chosen[i] = (struct chosen){ i, s->rows[i].process, weight_of(&s->rows[i], sums) };
	if (sort)
		qsort(chosen, s->rows_n, sizeof(*chosen), by_part);
	*ret_chosen = chosen;
	return 0;
}

typedef double stacks_weights[STACK_WEIGHTS];

/*
 * From @n on the rows of a process become one, whose weights are in ret_others[process]. They take the first
 * places of what they stand for: there are no more of them. Returns how many rows there are now.
 */
static int add_up(const struct stack_sums *s, struct chosen *chosen, uint32_t n, uint32_t *ret_n,
		  stacks_weights **ret_others)
{
	_cleanup_free_ bool *has_others = calloc(s->processes_n + 1, sizeof(*has_others));
	stacks_weights *others = calloc(s->processes_n + 1, sizeof(*others));

	if (!has_others || !others) {
		free(others);
		return -ENOMEM;
	}
	for (uint32_t i = n; i < s->rows_n; i++) {
		uint32_t process = chosen[i].process;

		for (unsigned k = 0; k < STACK_WEIGHTS; k++)
			others[process][k] += s->rows[chosen[i].row].weights[k];
		if (!has_others[process])
			chosen[n++] = (struct chosen){ STACKS_NONE, process, 0 };
		has_others[process] = true;
	}
	*ret_others = others;
	*ret_n = n;
	return 0;
}

/* What a view is made of: numbers of places, each in it once, and texts, which move while they grow. */
struct making {
	const struct stack_sums *sums;
	struct stack_view *view;
	struct hashmap places; /* by python place: its number */
	struct hashmap text_at; /* by what stands for the text: its offset */
	size_t places_cap;
	uint32_t *index; /* the next one of view->indexes */
	struct strbuf texts;
	int r;
};

/*
 * An offset in place of a pointer, until all texts are there. @id: an address, the same one where the text is
 * the same; a text that has several is there several times.
 */
static const char *making_text(struct making *m, const void *id, const char *text)
{
	uint32_t at = (uint32_t)m->texts.len;

	if (hashmap_get(&m->text_at, (uintptr_t)id, &at))
		return (const char *)(uintptr_t)at;
	if (hashmap_put(&m->text_at, (uintptr_t)id, at) < 0)
		m->r = -ENOMEM;
	strbuf_add(&m->texts, text, strlen(text) + 1);
	return (const char *)(uintptr_t)at;
}

static const char *making_python_text(struct making *m, uint32_t number)
{
	const char *text = python_stacks_text(m->sums->python, number);

	return making_text(m, text, text);
}

static void settle_text(const struct making *m, const char **text)
{
	*text = m->view->texts + (uintptr_t)*text;
}

static uint32_t making_place(struct making *m, uint32_t place)
{
	const struct python_stacks *python = m->sums->python;
	const struct python_place *from = python_stacks_place(python, place);
	struct stack_view *view = m->view;
	uint32_t number;

	if (hashmap_get(&m->places, place, &number))
		return number;
	number = (uint32_t)view->page.places_n;
	if (number == m->places_cap) {
		size_t cap = m->places_cap ? 2 * m->places_cap : 256;
		struct stack_place *grown = reallocarray(view->places, cap, sizeof(*grown));

		if (!grown) {
			m->r = -ENOMEM;
			return 0;
		}
		view->places = grown;
		m->places_cap = cap;
	}
	if (hashmap_put(&m->places, place, number) < 0)
		m->r = -ENOMEM;
	if (from->native) {
		struct stack_place *to = &view->places[number];

		stack_natives_place(m->sums->native, from->native, to);
		to->name = making_text(m, to->name, to->name);
		to->file = making_text(m, to->file, to->file);
		view->page.places_n++;
		return number;
	}
	view->places[number] = (struct stack_place){
		.name = making_python_text(m, from->name),
		.file = making_python_text(m, from->file),
		.line = from->line,
		.first_line = from->first_line,
	};
	view->page.places_n++;
	return number;
}

bool stack_sums_path(const struct stack_sums *s, const struct trace_header *event, uint32_t *ret_path)
{
	if (event->stack < TRACE_STACK_NONES)
		return false;
	*ret_path = python_stacks_path(s->python, event);
	return *ret_path >= PYTHON_PATHS_MADE_UP;
}

bool stack_sums_frame(const struct stack_sums *s, uint32_t path, uint32_t i, struct stack_place *ret_place,
		      bool *ret_native)
{
	const struct python_place *place;
	const uint32_t *places;
	uint32_t n;

	places = python_stacks_places(s->python, path, &n);
	if (i >= n)
		return false;
	place = python_stacks_place(s->python, places[i]);
	*ret_native = place->native != 0 || !place->file; /* a remark is no function of Python */
	if (place->native)
		stack_natives_place(s->native, place->native, ret_place);
	else
		*ret_place = (struct stack_place){
			.name = python_stacks_text(s->python, place->name),
			.file = place->file ? python_stacks_text(s->python, place->file) : "",
			.line = place->line,
			.first_line = place->first_line,
		};
	return true;
}

void stack_sums_name(struct stack_sums *s)
{
	if (s->native)
		stack_natives_resolve(s->native);
}

int64_t stack_sums_since(const struct stack_sums *s)
{
	return s->begin_ns;
}

static uint32_t path_of(const struct stack_sums *s, const struct chosen *chosen)
{
	return chosen->row == STACKS_NONE ? (uint32_t)PYTHON_PATH_OTHERS : s->rows[chosen->row].path;
}

static void making_row(struct making *m, const struct chosen *chosen, const double *weights)
{
	const struct stack_sums *s = m->sums;
	const struct stacks_process *process = &s->processes[chosen->process];
	const struct stacks_row *row = chosen->row == STACKS_NONE ? NULL : &s->rows[chosen->row];
	struct stack_row *to = &m->view->rows[m->view->page.rows_n++];
	const uint32_t *places;
	char name[PROCESS_NAME];

	name_process(process, name);
	*to = (struct stack_row){
		.places = m->index,
		.pid = process->id.pid,
		.process = making_text(m, process, name),
		.call = row ? probe_at((uint16_t)row->call)->symbol : "",
	};
	memcpy(to->weights, weights, sizeof(to->weights));
	places = python_stacks_places(s->python, path_of(s, chosen), &to->n);
	for (uint32_t i = 0; i < to->n; i++)
		*m->index++ = making_place(m, places[i]);
}

/* Room for @n rows, and for those that stand for others, which have one place each. */
static int making_room(struct making *m, const struct chosen *chosen, uint32_t n)
{
	const struct stack_sums *s = m->sums;
	size_t rows = MIN((size_t)s->rows_n, (size_t)n + s->processes_n), indexes = rows;
	uint32_t places;

	for (uint32_t i = 0; i < n; i++) {
		python_stacks_places(s->python, path_of(s, &chosen[i]), &places);
		indexes += places;
	}
	m->view->rows = calloc(rows + 1, sizeof(*m->view->rows));
	m->view->indexes = calloc(indexes + 1, sizeof(*m->view->indexes));
	m->index = m->view->indexes;
	return m->view->rows && m->view->indexes ? 0 : -ENOMEM;
}

static size_t making_bytes(const struct making *m)
{
	const struct stack_view *view = m->view;

	return m->texts.len + view->page.places_n * sizeof(*view->places) +
	       view->page.rows_n * sizeof(*view->rows) +
	       (size_t)(m->index - view->indexes) * sizeof(*view->indexes);
}

/* As many of the first @n rows as there is room for, then the sums of all others. */
static int making_rows(struct making *m, struct chosen *chosen, uint32_t n, size_t bytes_max,
		       uint32_t *ret_made)
{
	const struct stack_sums *s = m->sums;
	_cleanup_free_ stacks_weights *others = NULL;
	uint32_t i, all;
	int r = making_room(m, chosen, n);

	if (r < 0)
		return r;
	for (i = 0; i < n && m->r == 0 && (!bytes_max || making_bytes(m) < bytes_max); i++)
		making_row(m, &chosen[i], s->rows[chosen[i].row].weights);
	*ret_made = i;
	r = m->r < 0 ? m->r : add_up(s, chosen, i, &all, &others);
	for (; r == 0 && i < all && m->r == 0; i++)
		making_row(m, &chosen[i], others[chosen[i].process]);
	return r < 0 ? r : m->r;
}

static void making_head(struct stack_sums *s, struct making *m, uint32_t cut)
{
	struct stack_page *page = &m->view->page;

	say_missing(s, cut);
	page->estimated = s->sampled;
	page->has_gpu_time = s->has_gpu_time;
	page->duration_ns = clock_mono_ns() - s->begin_ns;
	page->real_ns = clock_real_ns() - page->duration_ns;
	page->incomplete = s->said.len > 0 ? making_text(m, &s->said, s->said.data) : NULL;
}

static int making_end(struct making *m)
{
	struct stack_view *view = m->view;

	if (m->r < 0 || m->texts.failed)
		return -ENOMEM;
	view->texts = strbuf_take(&m->texts);
	for (size_t i = 0; i < view->page.rows_n; i++)
		settle_text(m, &view->rows[i].process);
	for (size_t i = 0; i < view->page.places_n; i++) {
		settle_text(m, &view->places[i].name);
		settle_text(m, &view->places[i].file);
	}
	if (view->page.incomplete)
		settle_text(m, &view->page.incomplete);
	view->page.places = view->places;
	view->page.rows = view->rows;
	return 0;
}

int stack_sums_view(struct stack_sums *s, uint32_t rows_max, size_t bytes_max, struct stack_view **ret_view)
{
	_cleanup_(stack_view_freep) struct stack_view *view = calloc(1, sizeof(*view));
	_cleanup_free_ struct chosen *chosen = NULL;
	struct making m = { .sums = s, .view = view };
	uint32_t n = rows_max ? MIN(rows_max, s->rows_n) : s->rows_n, made = 0;
	int r;

	if (!view)
		return -ENOMEM;
	if (s->native)
		stack_natives_resolve(s->native);
	strbuf_init(&m.texts, 0);
	strbuf_add(&m.texts, "", 1); /* so that no offset is 0 */
	r = choose(s, n < s->rows_n || bytes_max, &chosen);
	if (r == 0)
		r = making_rows(&m, chosen, n, bytes_max, &made);
	if (r == 0) {
		making_head(s, &m, n - made);
		r = making_end(&m);
	}
	strbuf_done(&m.texts);
	hashmap_done(&m.places);
	hashmap_done(&m.text_at);
	if (r == 0)
		*ret_view = TAKE_PTR(view);
	return r;
}
