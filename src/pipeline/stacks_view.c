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

static void say_missing(struct stack_sums *s)
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
	stacks_say(s, "the Python of ", s->unknown_python, " processes is not known");
	if (s->unknown_version)
		strbuf_addf(&s->said, " (3.%u)", s->unknown_version >> 16 & 0xff);
}

/* A process's user chooses its name. */
static void name_process(const struct stacks_process *process, char name[static PROCESS_NAME])
{
	snprintf(name, PROCESS_NAME, "%.*s %" PRIu32, (int)TRACE_COMM, process->comm, process->tgid);
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

/* The rows, those that weigh most first. Beyond @max, those of a process are one. */
static int choose(const struct stack_sums *s, uint32_t max, struct chosen **ret_chosen, uint32_t *ret_n,
		  double (**ret_others)[STACK_WEIGHTS])
{
	_cleanup_free_ struct chosen *chosen = calloc(s->rows_n + 1, sizeof(*chosen));
	_cleanup_free_ double(*others)[STACK_WEIGHTS] = calloc(s->processes_n + 1, sizeof(*others));
	_cleanup_free_ bool *has_others = calloc(s->processes_n + 1, sizeof(*has_others));
	double sums[STACK_WEIGHTS] = { 0 };
	uint32_t n = s->rows_n;

	if (!chosen || !others || !has_others)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->rows_n; i++)
		for (unsigned k = 0; k < STACK_WEIGHTS; k++)
			sums[k] += s->rows[i].weights[k];
	for (uint32_t i = 0; i < s->rows_n; i++)
		chosen[i] = (struct chosen){ i, s->rows[i].process, weight_of(&s->rows[i], sums) };
	if (max && n > max) {
		qsort(chosen, n, sizeof(*chosen), by_part);
		n = max;
		/* Their places are taken by the sums, of which there are no more than there were rows. */
		for (uint32_t i = max; i < s->rows_n; i++) {
			uint32_t process = chosen[i].process;

			for (unsigned k = 0; k < STACK_WEIGHTS; k++)
				others[process][k] += s->rows[chosen[i].row].weights[k];
			if (!has_others[process])
				chosen[n++] = (struct chosen){ STACKS_NONE, process, 0 };
			has_others[process] = true;
		}
	}
	*ret_chosen = TAKE_PTR(chosen);
	*ret_others = TAKE_PTR(others);
	*ret_n = n;
	return 0;
}

/* What a view is made of: numbers of places, each in it once, and texts, which move while they grow. */
struct making {
	const struct stack_sums *sums;
	struct stack_view *view;
	struct hashmap places; /* by python place: its number */
	size_t places_cap;
	struct strbuf texts;
	int r;
};

/* An offset in place of a pointer, until all texts are there. */
static const char *making_text(struct making *m, const char *text)
{
	uintptr_t at = m->texts.len;

	strbuf_add(&m->texts, text, strlen(text) + 1);
	return (const char *)at;
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
		to->name = making_text(m, to->name);
		to->file = making_text(m, to->file);
		view->page.places_n++;
		return number;
	}
	view->places[number] = (struct stack_place){
		.name = making_text(m, python_stacks_text(python, from->name)),
		.file = making_text(m, python_stacks_text(python, from->file)),
		.line = from->line,
		.first_line = from->first_line,
	};
	view->page.places_n++;
	return number;
}
static void making_row(struct making *m, const struct chosen *chosen,
		       const double others[static STACK_WEIGHTS], uint32_t **indexes,
		       struct stack_row *ret_row)
{
	const struct stack_sums *s = m->sums;
	const struct stacks_process *process = &s->processes[chosen->process];
	const struct stacks_row *row = chosen->row == STACKS_NONE ? NULL : &s->rows[chosen->row];
	uint32_t path = row ? row->path : PYTHON_PATH_OTHERS, n;
	const uint32_t *places = python_stacks_places(s->python, path, &n);
	char name[PROCESS_NAME];

	name_process(process, name);
	*ret_row = (struct stack_row){
		.places = *indexes,
		.n = n,
		.pid = process->tgid,
		.process = making_text(m, name),
		.call = row ? probe_at((uint16_t)row->call)->symbol : "",
	};
	memcpy(ret_row->weights, row ? row->weights : others, sizeof(ret_row->weights));
	for (uint32_t i = 0; i < n; i++)
		*(*indexes)++ = making_place(m, places[i]);
}

static int making_fill(struct making *m, const struct chosen *chosen, uint32_t n,
		       double (*others)[STACK_WEIGHTS])
{
	struct stack_view *view = m->view;
	size_t indexes_n = 0;
	uint32_t *indexes, places_n;

	for (uint32_t i = 0; i < n; i++) {
		python_stacks_places(m->sums->python,
				     chosen[i].row == STACKS_NONE ? PYTHON_PATH_OTHERS :
							     m->sums->rows[chosen[i].row].path,
				     &places_n);
		indexes_n += places_n;
	}
	view->rows = calloc(n + 1, sizeof(*view->rows));
	indexes = view->indexes = calloc(indexes_n + 1, sizeof(*view->indexes));
	if (!view->rows || !indexes)
		return -ENOMEM;
	for (uint32_t i = 0; i < n && m->r == 0; i++)
		making_row(m, &chosen[i], others[chosen[i].process], &indexes, &view->rows[i]);
	if (m->r < 0 || m->texts.failed)
		return -ENOMEM;
	view->texts = strbuf_take(&m->texts);
	for (uint32_t i = 0; i < n; i++)
		settle_text(m, &view->rows[i].process);
	for (size_t i = 0; i < view->page.places_n; i++) {
		settle_text(m, &view->places[i].name);
		settle_text(m, &view->places[i].file);
	}
	view->page.places = view->places;
	view->page.rows = view->rows;
	view->page.rows_n = n;
	return 0;
}

static void making_head(struct stack_sums *s, struct making *m)
{
	struct stack_page *page = &m->view->page;

	say_missing(s);
	page->estimated = s->sampled;
	page->has_gpu_time = s->has_gpu_time;
	page->duration_ns = clock_mono_ns() - s->begin_ns;
	page->real_ns = clock_real_ns() - page->duration_ns;
	page->incomplete = s->said.len > 0 ? making_text(m, s->said.data) : NULL;
}

int stack_sums_view(struct stack_sums *s, uint32_t rows_max, struct stack_view **ret_view)
{
	_cleanup_(stack_view_freep) struct stack_view *view = calloc(1, sizeof(*view));
	_cleanup_free_ struct chosen *chosen = NULL;
	_cleanup_free_ double(*others)[STACK_WEIGHTS] = NULL;
	struct making m = { .sums = s, .view = view };
	uint32_t n;
	int r;

	if (!view)
		return -ENOMEM;
	if (s->native)
		stack_natives_resolve(s->native);
	strbuf_init(&m.texts, 0);
	strbuf_add(&m.texts, "", 1); /* so that no offset is 0 */
	making_head(s, &m);
	r = choose(s, rows_max, &chosen, &n, &others);
	if (r == 0)
		r = making_fill(&m, chosen, n, others);
	if (r == 0 && view->page.incomplete)
		settle_text(&m, &view->page.incomplete);
	strbuf_done(&m.texts);
	hashmap_done(&m.places);
	if (r == 0)
		*ret_view = TAKE_PTR(view);
	return r;
}
