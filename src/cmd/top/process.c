// SPDX-License-Identifier: Apache-2.0
/* A process's own screen: curves, then all that is known of it, in lines that scroll. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cmd/top/draw.h"
#include "cmd/top/lines.h"
#include "cmd/top/value.h"
#include "model/stacks.h"
#include "screen/sparkline.h"
#include "view/number.h"

enum {
	LISTED = 15,
	CURVE_NAME = 10,
	CURVE_FIGURE = 12,
	CURVE_ROWS = 2,
	CURVE_ROWS_MAX = 8,
	STACKS_SHOWN = 20,
	FRAMES_SHOWN = 10
};

/* ---- curves ---- */

struct process_curve {
	struct trail_curve means;
	double whole; /* what a full column is */
};

static double curve_share(const void *userdata, int i, int n)
{
	const struct process_curve *curve = userdata;
	double v = trail_curve_value(&curve->means, i, n);

	return v < 0 ? -1 : v / curve->whole;
}

/*
 * Name, newest and highest figure, and the curve beside them, in the rows that are left below what is said.
 * What is not known has none.
 */
static int draw_curves(const struct top *top, struct canvas *canvas, int row, int rows,
		       const struct row *shown)
{
	static const struct {
		const char *name, *unit;
		enum trail_figure figure;
		double whole, scale; /* whole 0: the highest */
	} curves[] = {
		{ "GPU", " %", TRAIL_UTILIZATION, 1, 100 },
		{ "GPU MEM", " %", TRAIL_MEMORY, 1, 100 },
		{ "CPU", " %", TRAIL_CORES, 0, 100 },
		{ "LAUNCHES", "/s", TRAIL_LAUNCHES, 0, 1 },
	};
	char key[TRAIL_KEY];
	int at = row, left = CURVE_NAME + CURVE_FIGURE;
	int height = CLAMP(rows / (int)ARRAY_SIZE(curves), (int)CURVE_ROWS, (int)CURVE_ROWS_MAX);

	if (!shown->process)
		return row;
	trail_key_of_process(shown->sample, shown->process, key);
	for (size_t i = 0; i < ARRAY_SIZE(curves); i++) {
		struct process_curve curve = { .means = { .trail = trails_find(top->trails, key),
							  .figure = curves[i].figure,
							  .end_ns = shown->sample->mono_ns,
							  .window_ns = scale_seconds[top->scale] *
								       NSEC_PER_SEC } };
		double highest = trail_highest(&curve.means), newest;

		if (highest < 0)
			continue;
		curve.whole = curves[i].whole > 0 ? curves[i].whole : MAX(highest, 1.0);
		newest = curve_share(&curve, 59, 60) * curve.whole;
		canvas_text(canvas, at, 0, CURVE_NAME, ROLE_DIM, curves[i].name);
		if (newest >= 0)
			canvas_textf(canvas, at + 1, 0, left - 1, ROLE_HEAD, "%.0f%s",
				     newest * curves[i].scale, curves[i].unit);
		if (height > CURVE_ROWS)
			canvas_textf(canvas, at + 2, 0, left - 1, ROLE_DIM, "max %.0f%s",
				     highest * curves[i].scale, curves[i].unit);
		sparkline_draw(canvas, at, left, height, canvas->columns - left, ROLE_ACCENT, curve_share,
			       &curve);
		at += height;
	}
	return at;
}

/* ---- lines ---- */

/* All columns of a process, spare ones too, so that nothing that is known of it is missing here. */
static void add_figures(const struct row *shown, struct lines *lines)
{
	unsigned n;
	const struct column *columns = tab_columns(TAB_PROCESSES, &n);
	char line[LINE_TEXT] = "";
	size_t used = 0;

	for (unsigned i = 0; i < n; i++) {
		struct value value;

		column_text(shown->sample, shown, &columns[i], &value);
		if (!value.known)
			continue;
		if (used + strlen(columns[i].title) + strlen(value.text) + 6 > 110) {
			say_line(lines, ROLE_TEXT, "%s", line);
			used = 0;
		}
		used += (size_t)snprintf(line + used, sizeof(line) - used, "%s %.80s   ", columns[i].title,
					 value.text);
		used = MIN(used, sizeof(line) - 1);
	}
	if (used > 0)
		say_line(lines, ROLE_TEXT, "%s", line);
}

/* What its own calls say that it holds. */
static void add_ledger(const struct row *shown, struct lines *lines)
{
	const json_t *memory = member_at(shown->object, "cuda.memory_bytes"), *leaked;
	const char *kind;
	json_t *bytes;
	char text[BYTES_TEXT];
	bool any = false;

	json_object_foreach((json_t *)(uintptr_t)memory, kind, bytes) {
		if (!json_is_number(bytes) || json_number_value(bytes) == 0)
			continue;
		if (!any)
			say_line(lines, ROLE_HEAD, "Memory by its CUDA calls");
		any = true;
		bytes_text(json_number_value(bytes), text);
		say_line(lines, ROLE_TEXT, "  %-12.20s %s", kind, text);
	}
	leaked = member_at(shown->object, "cuda.leaked_bytes_total");
	if (json_number_value(leaked) > 0) {
		bytes_text(json_number_value(leaked), text);
		say_line(lines, ROLE_WARN, "  never freed  %s", text);
	}
}

/* The element of a page's list that is this process's. */
static const json_t *of_process(const struct top *top, const struct sample *sample, enum page page,
				const char *path)
{
	const json_t *list = member_at(sample->pages[page], path);
	json_t *one;
	size_t i;

	json_array_foreach(list, i, one)
		if (json_integer_value(json_object_get(one, "pid")) == (json_int_t)top->process.pid)
			return one;
	return NULL;
}

/* A list as a small table of its tab's columns. */
static void add_list(const struct sample *sample, struct lines *lines, const char *title, enum tab tab,
		     const json_t *parent, const char *path)
{
	const json_t *list = member_at(parent, path);
	unsigned n;
	const struct column *columns = tab_columns(tab, &n);
	json_t *one;
	size_t i;

	if (json_array_size(list) == 0)
		return;
	say_line(lines, ROLE_HEAD, "%s", title);
	json_array_foreach(list, i, one) {
		const struct row row = { .sample = sample, .object = one, .parent = parent };
		char line[LINE_TEXT] = "  ";
		size_t used = 2;

		if (i == LISTED) {
			say_line(lines, ROLE_DIM, "  and %zu more", json_array_size(list) - LISTED);
			break;
		}
		for (unsigned k = 0; k < n && used + 1 < sizeof(line); k++) {
			struct value value;

			if (columns[k].path && columns[k].path[0] == '^')
				continue;
			column_text(sample, &row, &columns[k], &value);
			/* A negative width is to the left. */
			used += (size_t)snprintf(line + used, sizeof(line) - used, "%*.60s ",
						 column_is_right(&columns[k]) ? (int)columns[k].width :
										-(int)columns[k].width,
						 value.text);
			used = MIN(used, sizeof(line) - 1);
		}
		say_line(lines, ROLE_TEXT, "%s", line);
	}
}

static void add_findings(const struct top *top, const struct sample *sample, struct lines *lines)
{
	json_t *one;
	size_t i;
	bool any = false;

	json_array_foreach(json_object_get(sample->pages[PAGE_FINDINGS], "findings"), i, one) {
		const char *title = json_string_value(json_object_get(one, "title"));
		const char *remedy = json_string_value(json_object_get(one, "remedy"));

		if (json_integer_value(json_object_get(one, "pid")) != (json_int_t)top->process.pid)
			continue;
		if (!any)
			say_line(lines, ROLE_HEAD, "Findings (Enter: figures, since when, where to look)");
		any = true;
		say_line(lines, json_is_true(json_object_get(one, "active")) ? ROLE_WARN : ROLE_DIM,
			 "  %.90s: %.90s", title ? title : "-", remedy ? remedy : "-");
	}
}

/* ---- stacks ---- */

/* Of a row: PID, process, call, a number for each weight, then places. */
enum { ROW_PID, ROW_CALL = 2, ROW_WEIGHTS };

static json_int_t number_at(const json_t *list, size_t i)
{
	return json_integer_value(json_array_get(list, i));
}

static const char *text_at(const json_t *page, json_int_t i)
{
	const char *text =
		i < 0 ? NULL : json_string_value(json_array_get(json_object_get(page, "texts"), (size_t)i));

	return text ? text : "-";
}

/* Functions, the innermost first. */
static void add_frames(const json_t *page, const json_t *row, struct lines *lines)
{
	size_t n = json_array_size(row), first = ROW_WEIGHTS + STACK_WEIGHTS;

	for (size_t i = n; i > first && n - i < FRAMES_SHOWN; i--) {
		const json_t *place = json_array_get(json_object_get(page, "places"),
						     (size_t)MAX(number_at(row, i - 1), (json_int_t)0));

		say_line(lines, ROLE_TEXT, "      %.80s  %.80s:%" JSON_INTEGER_FORMAT,
			 text_at(page, number_at(place, 0)), text_at(page, number_at(place, 1)),
			 number_at(place, 2));
	}
	if (n > first + FRAMES_SHOWN)
		say_line(lines, ROLE_DIM, "      and %zu more", n - first - FRAMES_SHOWN);
}

static int compare_launches(const void *a, const void *b)
{
	const json_t *const *x = a, *const *y = b;
	json_int_t m = number_at(*x, ROW_WEIGHTS + STACK_LAUNCHES);
	json_int_t n = number_at(*y, ROW_WEIGHTS + STACK_LAUNCHES);

	return (m < n) - (m > n);
}

/* Those that launch most. */
static void add_stacks(const struct top *top, const struct sample *sample, struct lines *lines)
{
	const json_t *page = sample->pages[PAGE_STACKS], *rows = json_object_get(page, "rows");
	const json_t **own = calloc(json_array_size(rows) + 1, sizeof(*own));
	size_t n = 0;

	for (size_t i = 0; own && i < json_array_size(rows); i++)
		if (number_at(json_array_get(rows, i), ROW_PID) == (json_int_t)top->process.pid)
			own[n++] = json_array_get(rows, i);
	if (n > 0)
		qsort(own, n, sizeof(*own), compare_launches);
	else
		say_line(lines, ROLE_DIM,
			 "No stacks: an agent takes them (trace.stacks: yes) of what it traces");
	for (size_t i = 0; i < MIN(n, (size_t)STACKS_SHOWN); i++) {
		say_line(lines, ROLE_HEAD, "%s%" JSON_INTEGER_FORMAT " launches  %.100s",
			 json_is_true(json_object_get(page, "estimated")) ? "~" : "",
			 number_at(own[i], ROW_WEIGHTS + STACK_LAUNCHES),
			 text_at(page, number_at(own[i], ROW_CALL)));
		add_frames(page, own[i], lines);
	}
	free(own);
}

/* ---- all ---- */

static void make_lines(const struct top *top, const struct row *shown, struct lines *lines)
{
	const struct sample *sample = shown->sample;
	const json_t *trace = of_process(top, sample, PAGE_TRACE, "trace.processes");

	add_figures(shown, lines);
	if (sample->watched_pid == top->process.pid && sample->environment[0])
		say_line(lines, ROLE_DIM, "Environment  %s", sample->environment);
	add_findings(top, sample, lines);
	add_ledger(shown, lines);
	add_list(sample, lines, "CUDA calls", TAB_CALLS, trace, "calls");
	add_list(sample, lines, "Kernels", TAB_KERNELS,
		 of_process(top, sample, PAGE_KERNELS, "kernels.processes"), "kernels");
	add_list(sample, lines, "Collectives", TAB_COLLECTIVES, trace, "nccl.operations");
	add_list(sample, lines, "Operators", TAB_OPERATORS, trace, "torch.operators");
	if (!trace)
		say_line(lines, ROLE_DIM,
			 "No calls and kernels: an agent traces them (trace.enabled), gpusonde doctor --pid "
			 "%" PRIu32 " says what can be seen",
			 top->process.pid);
}

void draw_process(struct top *top, struct canvas *canvas, int row, int rows)
{
	static struct lines lines; /* of the only screen; too large for the stack */
	int end = row + rows;
	struct row shown;

	canvas_textf(canvas, row, 0, canvas->columns, ROLE_HEAD, "Process %" PRIu32 "  %s%s%s",
		     top->process.pid, top->process.comm, top->process.host[0] ? " on " : "",
		     top->process.host);
	row++;
	if (!top_find_process(top, &shown)) {
		canvas_text(canvas, row, 0, canvas->columns, ROLE_WARN,
			    top->back > 0 ? "It did not use this GPU then." : "It has ended. Esc: back");
		return;
	}
	lines.n = 0;
	if (top->stacks)
		add_stacks(top, shown.sample, &lines);
	else
		make_lines(top, &shown, &lines);
	row = draw_curves(top, canvas, row, end - row - lines.n, &shown);
	draw_lines(top, canvas, row, end - row, &lines);
}
