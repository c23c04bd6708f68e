// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cmd/top/draw.h"
#include "cmd/top/value.h"
#include "screen/bar.h"
#include "screen/sparkline.h"
#include "view/shown.h"
#include "view/table/parts.h"

enum {
	BAR_MIN = 6,
	BAR_MAX = 40,
	CELL_MIN = 22, /* of a GPU where several share a line */
	SPARK_MAX = 60,
	INDEX_WIDTH = 3,
	INSTANCE_WIDTH = 6, /* "12:3/0" */
	STATE_WIDTH = 11,
	FIGURES_TEXT = 24,
};

#define FULL 0.97 /* from where the next allocation may fail */

struct bars {
	const struct top *top;
	const struct sample *sample; /* of the machine that is drawn */
	struct canvas *canvas;
	uint32_t n;
	int index_width; /* wider where instances are among them */
	bool details; /* a second line has what slows a GPU down */
	const struct entity *list[READING_ENTITIES_MAX];
};

static const double gib = 1024.0 * 1024.0 * 1024.0;

static struct value value_of(const struct bars *bars, const struct entity *e, value_fn *fn)
{
	const struct row row = { .sample = bars->sample, .entity = e };
	struct value value = { .role = ROLE_TEXT };

	fn(bars->sample, &row, &value);
	return value;
}

/* A GPU without new data shows its last figures; they are dim, since they are not those of now. */
static enum role role_of(const struct entity *e, enum role role)
{
	return !e->present || e->stale ? ROLE_DIM : role;
}

static double share_of(const struct entity *e, enum gpu_metric part, enum gpu_metric whole)
{
	double a, b;

	return entity_number(e, part, &a) && entity_number(e, whole, &b) && b > 0 ? a / b : -1;
}

static double load_of(const struct entity *e)
{
	double v;

	return entity_number(e, GPU_UTILIZATION_GPU, &v) ? v : -1;
}

static void share_text(double share, char text[static FIGURES_TEXT])
{
	if (share < 0)
		snprintf(text, FIGURES_TEXT, "-");
	else
		snprintf(text, FIGURES_TEXT, "%.0f %%", share * 100);
}

static void memory_text(const struct entity *e, char text[static FIGURES_TEXT])
{
	double used, total;

	if (entity_number(e, GPU_MEMORY_USED, &used) && entity_number(e, GPU_MEMORY_TOTAL, &total))
		snprintf(text, FIGURES_TEXT, "%.1f/%.1f GiB", used / gib, total / gib);
	else
		snprintf(text, FIGURES_TEXT, "-");
}

/* "410/700 W" and what else is shown with a bar's line, or "-". */
static void pair_text(const struct entity *e, enum gpu_metric part, enum gpu_metric whole, double scale,
		      const char *unit, char text[static FIGURES_TEXT])
{
	double v, of;

	if (!entity_number(e, part, &v))
		snprintf(text, FIGURES_TEXT, "-");
	else if (whole < GPU_METRICS && entity_number(e, whole, &of))
		snprintf(text, FIGURES_TEXT, "%.0f/%.0f %s", v * scale, of * scale, unit);
	else
		snprintf(text, FIGURES_TEXT, "%.0f %s", v * scale, unit);
}

static void draw_curve(const struct bars *bars, const struct entity *e, int row, int column, int width)
{
	char key[TRAIL_KEY];
	struct trail_curve curve = { .figure = TRAIL_UTILIZATION,
				     .end_ns = bars->sample->mono_ns,
				     .window_ns = scale_seconds[bars->top->scale] * NSEC_PER_SEC };

	trail_key_of_entity(bars->sample, e, key);
	curve.trail = trails_find(bars->top->trails, key);
	sparkline_draw(bars->canvas, row, column, 1, width, ROLE_ACCENT, trail_curve_value, &curve);
}

/* Index, name and state; the columns that they took. */
static int draw_identity(const struct bars *bars, const struct entity *e, int row, int name_width)
{
	struct value index = value_of(bars, e, value_gpu_index), name = value_of(bars, e, value_gpu_name);
	struct value state = value_of(bars, e, value_gpu_state);
	struct value throttled = value_of(bars, e, value_throttled_by);
	int at = bars->index_width + 1, said;

	if (entity_is_mig(e))
		canvas_right(bars->canvas, row, 0, bars->index_width, ROLE_ACCENT, index.text);
	else
		canvas_right(bars->canvas, row, 0, INDEX_WIDTH, ROLE_ACCENT, index.text);
	canvas_text(bars->canvas, row, at, name_width - 1, ROLE_TEXT, name.text);
	at += name_width;
	said = canvas_text(bars->canvas, row, at, STATE_WIDTH - 1, state.role, state.text);
	if (!bars->details && state.role == ROLE_GOOD && throttled.known && throttled.role == ROLE_WARN)
		canvas_text(bars->canvas, row, at + said, STATE_WIDTH - 1 - said, ROLE_WARN, " slowed");
	return at + STATE_WIDTH;
}

static int draw_bar(const struct bars *bars, const struct entity *e, int row, int at, const char *name,
		    enum role role, double share, const char *text, int bar, int figures)
{
	struct canvas *canvas = bars->canvas;

	at += canvas_textf(canvas, row, at, canvas->columns - at, ROLE_DIM, "%s ", name);
	bar_draw(canvas, row, at, bar, role_of(e, role), share);
	canvas_right(canvas, row, at + bar, figures, share < 0 || e->stale ? ROLE_DIM : ROLE_TEXT, text);
	return at + bar + figures + 2;
}

/* One line: the two bars take what room the figures leave. */
static int draw_line(const struct bars *bars, const struct entity *e, int row)
{
	struct canvas *canvas = bars->canvas;
	int name = canvas->columns >= 110 ? 20 : canvas->columns >= 90 ? 14 : 0;
	int fixed = bars->index_width + 1 + name + STATE_WIDTH + 5 + 6 + 2 + 4 + 15 + 2;
	bool wide = fixed + 18 + 2 * BAR_MIN <= canvas->columns, clock = canvas->columns >= 120;
	int bar = CLAMP((canvas->columns - fixed - (wide ? 18 : 0) - (clock ? 9 : 0)) / 2, (int)BAR_MIN,
			(int)BAR_MAX);
	char text[FIGURES_TEXT];
	double load = load_of(e), memory, hot;
	int at = draw_identity(bars, e, row, name);

	share_text(load, text);
	at = draw_bar(bars, e, row, at, "UTIL", ROLE_GOOD, load, text, bar, 6);
	memory_text(e, text);
	memory = share_of(e, GPU_MEMORY_USED, GPU_MEMORY_TOTAL);
	at = draw_bar(bars, e, row, at, "MEM", memory >= FULL ? ROLE_WARN : ROLE_ACCENT, memory, text, bar,
		      15);
	if (!wide)
		return at;
	pair_text(e, GPU_POWER, GPU_POWER_LIMIT_ENFORCED, 1, "W", text);
	canvas_right(canvas, row, at, 9, ROLE_TEXT, text);
	at += 11;
	pair_text(e, GPU_TEMPERATURE, GPU_METRICS, 1, canvas->ascii ? "C" : "\u00b0C", text);
	hot = entity_number(e, GPU_TEMPERATURE, &hot) ? hot : 0;
	canvas_right(canvas, row, at, 6, hot >= GPU_WARM_CELSIUS ? ROLE_WARN : ROLE_TEXT, text);
	at += 7;
	if (!clock)
		return at;
	pair_text(e, GPU_CLOCK_SM, GPU_METRICS, 1e-6, "MHz", text);
	canvas_right(canvas, row, at, 8, ROLE_TEXT, text);
	return at + 10;
}

static int draw_share(const struct bars *bars, const struct entity *e, int row, int at, const char *name,
		      enum gpu_metric metric)
{
	struct canvas *canvas = bars->canvas;
	double v;

	if (!entity_number(e, metric, &v))
		return at;
	at += canvas_textf(canvas, row, at, canvas->columns - at, ROLE_DIM, "%s ", name);
	at += canvas_textf(canvas, row, at, canvas->columns - at, ROLE_TEXT, "%.0f %%  ", v * 100);
	return at;
}

/* Of what most never use. */
static int draw_used(const struct bars *bars, const struct entity *e, int row, int at, const char *name,
		     enum gpu_metric metric)
{
	double v;

	return entity_number(e, metric, &v) && v > 0 ? draw_share(bars, e, row, at, name, metric) : at;
}

static int draw_rates(const struct bars *bars, const struct entity *e, int row, int at, const char *name,
		      enum gpu_metric sent, enum gpu_metric received)
{
	struct canvas *canvas = bars->canvas;
	double tx, rx;

	if (!entity_number(e, sent, &tx) || !entity_number(e, received, &rx))
		return at;
	at += canvas_textf(canvas, row, at, canvas->columns - at, ROLE_DIM, "%s ", name);
	at += canvas_textf(canvas, row, at, canvas->columns - at, ROLE_TEXT, "%s%.1f %s%.1f GiB/s  ",
			   canvas->ascii ? "tx " : "\u2191", tx / gib, canvas->ascii ? "rx " : "\u2193",
			   rx / gib);
	return at;
}

/* The second line: a curve, what the parts of the GPU do, its links, what slows it down, whose it is. */
static void draw_details(const struct bars *bars, const struct entity *e, int row)
{
	struct canvas *canvas = bars->canvas;
	int curve = CLAMP(canvas->columns / 4, 8, (int)SPARK_MAX), at = 4 + curve + 2;
	struct value throttled = value_of(bars, e, value_throttled_by);
	struct value given = value_of(bars, e, value_given_to);

	draw_curve(bars, e, row, 4, curve);
	if (throttled.known && throttled.role == ROLE_WARN)
		at += canvas_textf(canvas, row, at, canvas->columns - at, ROLE_WARN, "slowed: %s  ",
				   throttled.text);
	at = draw_share(bars, e, row, at, "SM", GPU_SM_ACTIVE);
	at = draw_share(bars, e, row, at, "TENSOR", GPU_PIPE_TENSOR);
	at = draw_share(bars, e, row, at, "DRAM", GPU_DRAM_ACTIVE);
	at = draw_used(bars, e, row, at, "ENC", GPU_UTILIZATION_ENCODER);
	at = draw_used(bars, e, row, at, "DEC", GPU_UTILIZATION_DECODER);
	at = draw_share(bars, e, row, at, "FAN", GPU_FAN_SPEED);
	at = draw_rates(bars, e, row, at, "PCIe", GPU_PCIE_TX_RATE, GPU_PCIE_RX_RATE);
	at = draw_rates(bars, e, row, at, "NVLink", GPU_NVLINK_TX_RATE, GPU_NVLINK_RX_RATE);
	if (given.known)
		canvas_textf(canvas, row, at, canvas->columns - at, ROLE_ACCENT, "%s", given.text);
}

/* Several in a line: index, a bar with both figures, and the state where it is not ok. */
static void draw_cell(const struct bars *bars, const struct entity *e, int row, int column, int width)
{
	struct canvas *canvas = bars->canvas;
	struct value index = value_of(bars, e, value_gpu_index), state = value_of(bars, e, value_gpu_state);
	double load = load_of(e), memory = share_of(e, GPU_MEMORY_USED, GPU_MEMORY_TOTAL);
	int bar = (width - 4 - 5 - 5 - 2) / 2;
	char text[FIGURES_TEXT];

	canvas_right(canvas, row, column, 3, ROLE_ACCENT, index.text);
	if (state.role != ROLE_GOOD) {
		canvas_text(canvas, row, column + 4, width - 5, state.role, state.text);
		return;
	}
	bar_draw(canvas, row, column + 4, bar, ROLE_GOOD, load);
	share_text(load, text);
	canvas_right(canvas, row, column + 4 + bar, 5, ROLE_TEXT, text);
	bar_draw(canvas, row, column + 10 + bar, bar, memory >= FULL ? ROLE_WARN : ROLE_ACCENT, memory);
	share_text(memory, text);
	canvas_right(canvas, row, column + 10 + 2 * bar, 5, ROLE_DIM, text);
}

static int cell_lines(const struct bars *bars)
{
	int columns = MAX(bars->canvas->columns / (int)CELL_MIN, 1);

	return ((int)bars->n + columns - 1) / columns;
}

static int draw_cells(const struct bars *bars, int row, int rows)
{
	int columns = MAX(bars->canvas->columns / (int)CELL_MIN, 1), width = bars->canvas->columns / columns;
	int lines = cell_lines(bars), shown = MIN(lines, rows);

	for (uint32_t i = 0; i < bars->n; i++) {
		/* Downwards first, as lists are read. */
		int at_row = (int)i % lines, at_column = (int)i / lines;

		if (at_row < shown)
			draw_cell(bars, bars->list[i], row + at_row, at_column * width, width);
	}
	if (lines > shown && shown > 0)
		canvas_textf(bars->canvas, row + shown - 1, 0, bars->canvas->columns, ROLE_WARN, "%-*s",
			     bars->canvas->columns,
			     "not all GPUs fit: enlarge the window, or press b for the table");
	return shown;
}

static void collect(struct bars *bars, bool instances)
{
	bars->n = 0;
	bars->index_width = INDEX_WIDTH;
	for (uint32_t i = 0; i < bars->sample->snapshot->entities_n; i++) {
		const struct entity *e = &bars->sample->snapshot->entities[i];

		if (!entity_shown(e) || (!instances && entity_is_mig(e)))
			continue;
		bars->list[bars->n++] = e;
		if (entity_is_mig(e))
			bars->index_width = INSTANCE_WIDTH;
	}
}

/* As they are drawn: so many lines for each, or several in one. */
enum manner { TWO_LINES, ONE_LINE, GPUS_ALONE, CELLS, MANNERS };

static int lines_of(struct bars *bars, enum manner manner)
{
	collect(bars, manner < GPUS_ALONE); /* the table has the instances */
	return manner == CELLS ? cell_lines(bars) : (int)bars->n * (manner == TWO_LINES ? 2 : 1);
}

/* With a heading for each of several machines. */
static int lines_of_all(struct bars *bars, const struct sample *shown, enum manner manner)
{
	int lines = 0;

	for (uint32_t i = 0; i < sample_parts(shown); i++) {
		bars->sample = sample_part(shown, i);
		if (bars->sample && bars->sample->snapshot)
			lines += lines_of(bars, manner) + (shown->parts ? 1 : 0);
	}
	return lines;
}

static int draw_lines(struct bars *bars, enum manner manner, int row, int rows)
{
	int lines = manner == TWO_LINES ? 2 : 1;
	struct canvas *canvas = bars->canvas;

	collect(bars, manner < GPUS_ALONE);
	bars->details = manner == TWO_LINES;
	if (manner == CELLS)
		return draw_cells(bars, row, rows);
	for (uint32_t i = 0; i < bars->n; i++) {
		int at_row = row + (int)i * lines, at = draw_line(bars, bars->list[i], at_row);

		if (lines == 2)
			draw_details(bars, bars->list[i], at_row + 1);
		else if (canvas->columns - at >= 12)
			draw_curve(bars, bars->list[i], at_row, at,
				   MIN(canvas->columns - at, (int)SPARK_MAX));
	}
	return (int)bars->n * lines;
}

int draw_bars(const struct top *top, struct canvas *canvas, int row, int rows)
{
	const struct sample *shown = top_shown(top);
	struct bars bars = { .top = top, .canvas = canvas };
	enum manner manner = TWO_LINES;
	int begin = row, end = row + rows;

	while (manner < CELLS && lines_of_all(&bars, shown, manner) > rows)
		manner++;
	for (uint32_t i = 0; i < sample_parts(shown) && row < end; i++) {
		bars.sample = sample_part(shown, i);
		if (!bars.sample || !bars.sample->snapshot)
			continue;
		if (shown->parts)
			canvas_text(canvas, row++, 0, canvas->columns, ROLE_HEAD, bars.sample->host);
		row += draw_lines(&bars, manner, row, end - row);
	}
	return row - begin;
}
