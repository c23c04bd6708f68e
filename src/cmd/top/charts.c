// SPDX-License-Identifier: Apache-2.0
/* What GPUs did in the last minutes, in the room that neither their bars nor the processes need. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cmd/top/draw.h"
#include "screen/sparkline.h"
#include "view/shown.h"

enum {
	PANEL_WIDTH = 38, /* the least */
	PANEL_ROWS = 5, /* the least, with the title */
	PANEL_ROWS_MAX = 12,
	GAP = 2,
};

static const struct {
	const char *name, *whole; /* what a full column is, where its name does not say so */
	enum trail_figure figure;
	enum role role;
} figures[] = {
	{ "utilisation", "", TRAIL_UTILIZATION, ROLE_GOOD },
	{ "memory", "", TRAIL_MEMORY, ROLE_ACCENT },
	{ "power", " of limit", TRAIL_POWER, ROLE_WARN },
};

struct charts {
	const struct top *top;
	const struct sample *sample;
	struct canvas *canvas;
	int row, per_line, height; /* of a panel */
	int drawn;
};

static void draw_panel(struct charts *charts, const struct entity *e, unsigned figure)
{
	struct canvas *canvas = charts->canvas;
	unsigned seconds = scale_seconds[charts->top->scale];
	struct trail_curve panel = { .figure = figures[figure].figure,
				     .end_ns = charts->sample->mono_ns,
				     .window_ns = seconds * NSEC_PER_SEC };
	int width = (canvas->columns + GAP) / charts->per_line - GAP;
	int column = charts->drawn % charts->per_line * (width + GAP);
	int row = charts->row + charts->drawn / charts->per_line * charts->height, titled;
	char key[TRAIL_KEY], minutes[16];
	double highest;

	trail_key_of_entity(charts->sample, e, key);
	panel.trail = trails_find(charts->top->trails, key);
	titled = canvas_textf(canvas, row, column, width, ROLE_HEAD, "GPU %u %s", e->id.index,
			      figures[figure].name);
	snprintf(minutes, sizeof(minutes), "%u min", seconds / 60);
	canvas_right(canvas, row, column, width, ROLE_DIM, minutes);
	highest = trail_highest(&panel);
	if (highest >= 0)
		canvas_textf(canvas, row, column + titled, width - titled - (int)strlen(minutes) - 1,
			     ROLE_DIM, " max %.0f %%%s", highest * 100, figures[figure].whole);
	sparkline_draw(canvas, row + 1, column, charts->height - 1, width, figures[figure].role,
		       trail_curve_value, &panel);
	charts->drawn++;
}

static int whole_gpus(const struct snapshot *s)
{
	int n = 0;

	for (uint32_t i = 0; i < s->entities_n; i++)
		n += !entity_is_mig(&s->entities[i]);
	return n;
}

/* As many figures of each as find room; 0: none does. */
static int choose_figures(struct charts *charts, int gpus, int rows)
{
	for (int n = (int)ARRAY_SIZE(figures); n > 0; n--) {
		int most = MAX(charts->canvas->columns / PANEL_WIDTH, 1), panels = n * gpus, lines;

		charts->per_line = MIN(most, panels);
		/* What a GPU has stands in one line. */
		if (charts->per_line < n)
			continue;
		charts->per_line -= charts->per_line % n;
		lines = (panels + charts->per_line - 1) / charts->per_line;
		charts->height = MIN(rows / lines, (int)PANEL_ROWS_MAX);
		if (charts->height >= PANEL_ROWS)
			return n;
	}
	return 0;
}

int draw_charts(const struct top *top, struct canvas *canvas, int row, int rows)
{
	const struct sample *shown = top_shown(top);
	struct charts charts = { .top = top, .sample = shown, .canvas = canvas, .row = row };
	const struct snapshot *s = shown->snapshot; /* of several machines: none */
	int gpus = s ? whole_gpus(s) : 0, n = gpus > 0 ? choose_figures(&charts, gpus, rows) : 0;

	for (uint32_t i = 0; n > 0 && i < s->entities_n; i++)
		for (int k = 0; k < n && !entity_is_mig(&s->entities[i]); k++)
			draw_panel(&charts, &s->entities[i], (unsigned)k);
	return n > 0 ? (charts.drawn + charts.per_line - 1) / charts.per_line * charts.height : 0;
}
