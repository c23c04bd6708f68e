// SPDX-License-Identifier: Apache-2.0
/* The machine that the GPUs are in: processors, memory, what is waited for, disks and network. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cmd/top/draw.h"
#include "cmd/top/growth.h"
#include "screen/bar.h"
#include "screen/sparkline.h"
#include "view/number.h"

enum { NAME = 8, BAR = 24, FIGURES = 22, CURVE_LEAST = 20, CELL = 13, SIDE_BY_SIDE = 110, TEXT = 80 };

struct machine {
	const struct top *top;
	const struct sample *sample;
	const struct host *host;
	struct canvas *canvas;
};

static void share_text(double share, char text[static TEXT])
{
	if (share < 0)
		snprintf(text, TEXT, "-");
	else
		snprintf(text, TEXT, "%.0f %%", share * 100);
}

/* -1: it is not known. */
static double known(const struct machine *m, enum host_metric metric)
{
	return presence_is(m->host->p[metric]) ? m->host->v[metric] : -1;
}

/* A bar with its figures, and what has been in the last minutes. */
static void draw_share(const struct machine *m, int row, const char *name, double share, const char *text,
		       enum trail_figure figure)
{
	int at = NAME + BAR + 1 + FIGURES;
	char key[TRAIL_KEY];
	struct trail_curve curve = { .figure = figure,
				     .end_ns = m->sample->mono_ns,
				     .window_ns = scale_seconds[m->top->scale] * NSEC_PER_SEC };

	canvas_text(m->canvas, row, 0, NAME, ROLE_DIM, name);
	bar_draw(m->canvas, row, NAME, BAR, ROLE_GOOD, share);
	canvas_text(m->canvas, row, NAME + BAR + 1, FIGURES, ROLE_TEXT, text);
	if (m->canvas->columns - at < CURVE_LEAST)
		return;
	trail_key_of_host(m->sample, key);
	curve.trail = trails_find(m->top->trails, key);
	sparkline_draw(m->canvas, row, at, 1, m->canvas->columns - at, ROLE_ACCENT, trail_curve_value,
		       &curve);
}

/* "12 % user  3 % system": what the processors did, but for nothing. */
static void draw_states(const struct machine *m, int row)
{
	int at = NAME;

	for (unsigned i = HOST_CPU_USER; i <= HOST_CPU_STEAL; i++) {
		double share = growth_state(m->sample, (enum host_metric)i);

		if (i == HOST_CPU_IDLE || share < 0)
			continue;
		at += canvas_textf(m->canvas, row, at, m->canvas->columns - at, ROLE_DIM, "%s ",
				   host_metrics[i].value);
		at += canvas_textf(m->canvas, row, at, m->canvas->columns - at, ROLE_TEXT, "%.0f %%  ",
				   share * 100);
	}
}

static void memory_text(double used, double total, char text[static TEXT])
{
	char a[BYTES_TEXT], b[BYTES_TEXT];

	bytes_text(used, a);
	bytes_text(total, b);
	snprintf(text, TEXT, "%s of %s", a, b);
}

static int draw_memory(const struct machine *m, int row)
{
	double total = known(m, HOST_MEMORY_TOTAL), free_bytes = known(m, HOST_MEMORY_AVAILABLE);
	double swap = known(m, HOST_SWAP_TOTAL), used = known(m, HOST_SWAP_USED);
	char text[TEXT] = "-";

	if (total > 0 && free_bytes >= 0)
		memory_text(total - free_bytes, total, text);
	draw_share(m, row++, "MEMORY", total > 0 && free_bytes >= 0 ? 1 - free_bytes / total : -1, text,
		   TRAIL_MEMORY);
	if (swap <= 0 || used < 0)
		return row;
	memory_text(used, swap, text);
	canvas_text(m->canvas, row, 0, NAME, ROLE_DIM, "SWAP");
	bar_draw(m->canvas, row, NAME, BAR, ROLE_WARN, used / swap);
	canvas_text(m->canvas, row, NAME + BAR + 1, FIGURES, ROLE_TEXT, text);
	return row + 1;
}

/* Pressure: of the time, in how much some tasks, or all, waited for it. */
static void draw_waits(const struct machine *m, int row)
{
	int at = NAME;

	canvas_text(m->canvas, row, 0, NAME, ROLE_DIM, "LOAD");
	if (presence_is(m->host->p[HOST_LOAD]))
		at += canvas_textf(m->canvas, row, at, m->canvas->columns - at, ROLE_TEXT, "%.2f   ",
				   m->host->v[HOST_LOAD]);
	for (unsigned i = HOST_PRESSURE_CPU_SOME; i <= HOST_PRESSURE_IO_FULL; i++) {
		double share = growth_host(m->sample, (enum host_metric)i);

		if (share < 0)
			continue;
		at += canvas_textf(m->canvas, row, at, m->canvas->columns - at, ROLE_DIM, "%s wait for %s ",
				   STRV_EQ(host_metrics[i].value2, "some") ? "some" : "all",
				   host_metrics[i].value);
		at += canvas_textf(m->canvas, row, at, m->canvas->columns - at,
				   share >= 0.1 ? ROLE_WARN : ROLE_TEXT, "%.0f %%  ", MIN(share, 1.0) * 100);
	}
}

/* ---- disks and network ---- */

enum growth_kind { GROWS_BYTES, GROWS_TIME, GROWS_COUNT };

struct growth_column {
	const char *title;
	enum growth_kind kind;
	unsigned row, and; /* two rows' sum; the same: one's */
};

static void growth_text(enum growth_kind kind, double v, char text[static TEXT])
{
	char part[BYTES_TEXT];

	if (v < 0) {
		snprintf(text, TEXT, "-");
	} else if (kind == GROWS_TIME) {
		share_text(MIN(v, 1.0), text);
	} else if (kind == GROWS_COUNT) {
		snprintf(text, TEXT, "%.1f/s", v);
	} else {
		bytes_text(v, part);
		snprintf(text, TEXT, "%s/s", part);
	}
}

/* The sum of two rows is known if both are. */
static double growth_of(const struct machine *m, enum host_kind kind, const struct host_device *device,
			const struct growth_column *column)
{
	double a = growth_device(m->sample, kind, device, column->row);
	double b = growth_device(m->sample, kind, device, column->and);

	if (column->and == column->row)
		return a;
	return a >= 0 && b >= 0 ? a + b : -1;
}

static int draw_devices(const struct machine *m, int row, int end, int at, const char *title,
			enum host_kind kind, const struct growth_column columns[static 3])
{
	const struct host_devices *devices = &m->host->devices[kind];
	int name = NAME + 10;

	canvas_text(m->canvas, row, at, name, ROLE_HEAD, title);
	for (int k = 0; k < 3; k++)
		canvas_right(m->canvas, row, at + name + k * CELL, CELL - 1, ROLE_HEAD, columns[k].title);
	for (uint32_t i = 0; i < devices->n && ++row < end; i++) {
		const struct host_device *device = &devices->list[i];

		canvas_text(m->canvas, row, at, name, ROLE_TEXT, device->name);
		for (int k = 0; k < 3; k++) {
			double v = growth_of(m, kind, device, &columns[k]);
			char text[TEXT];

			growth_text(columns[k].kind, v, text);
			canvas_right(m->canvas, row, at + name + k * CELL, CELL - 1,
				     v > 0 && columns[k].kind == GROWS_COUNT ? ROLE_WARN : ROLE_TEXT, text);
		}
	}
	return row + 1;
}

static void draw_all_devices(const struct machine *m, int row, int end)
{
	static const struct growth_column disks[] = {
		{ "READ", GROWS_BYTES, DISK_READ_BYTES, DISK_READ_BYTES },
		{ "WRITTEN", GROWS_BYTES, DISK_WRITTEN_BYTES, DISK_WRITTEN_BYTES },
		{ "BUSY", GROWS_TIME, DISK_BUSY, DISK_BUSY },
	};
	static const struct growth_column interfaces[] = {
		{ "RECEIVED", GROWS_BYTES, INTERFACE_RECEIVED_BYTES, INTERFACE_RECEIVED_BYTES },
		{ "SENT", GROWS_BYTES, INTERFACE_SENT_BYTES, INTERFACE_SENT_BYTES },
		{ "ERRORS", GROWS_COUNT, INTERFACE_RECEIVE_ERRORS, INTERFACE_SEND_ERRORS },
	};
	bool beside = m->canvas->columns >= SIDE_BY_SIDE;
	int below = draw_devices(m, row, end, 0, "DISK", HOST_DISKS, disks);

	if (beside || below + 1 < end)
		draw_devices(m, beside ? row : below + 1, end, beside ? m->canvas->columns / 2 : 0, "NETWORK",
			     HOST_INTERFACES, interfaces);
}

void draw_machine(const struct top *top, struct canvas *canvas, int row, int rows)
{
	const struct sample *shown = top_shown(top);
	const struct snapshot *s = shown ? shown->snapshot : NULL;
	struct machine m = { .top = top, .sample = shown, .host = s ? &s->host : NULL, .canvas = canvas };
	int end = row + rows;
	char text[TEXT];

	if (!s || !s->host.read) {
		canvas_text(canvas, row, 0, canvas->columns, ROLE_DIM,
			    shown && shown->parts ? "Of one machine: H, and Enter on it." :
						    tabs[TAB_MACHINE].nothing);
		return;
	}
	share_text(growth_busy(shown), text);
	draw_share(&m, row++, "CPU", growth_busy(shown), text, TRAIL_UTILIZATION);
	draw_states(&m, row++);
	row = draw_memory(&m, row);
	draw_waits(&m, row++);
	if (row + 1 < end)
		draw_all_devices(&m, row + 1, end);
}
