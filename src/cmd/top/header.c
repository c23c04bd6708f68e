// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "cmd/top/alert.h"
#include "cmd/top/draw.h"
#include "config.h"
#include "screen/bar.h"
#include "view/names.h"
#include "view/shown.h"
#include "view/table_parts.h"

enum { LINE_TEXT = 512, MODELS_MAX = 4, CLOCK_TEXT = 40, ROOMY_ROWS = 24, NARROW_COLUMNS = 50 };
#define OLD_NS (3 * NSEC_PER_SEC) /* an age from which it is no longer said in passing */

/* "8x H100 80GB HBM3", each model once, in the order of the GPUs. */
static void models_text(const struct snapshot *s, char *text, size_t size)
{
	const char *models[MODELS_MAX];
	unsigned counts[MODELS_MAX] = { 0 }, n = 0, others = 0;
	size_t used = 0;

	text[0] = '\0';
	for (uint32_t i = 0; i < s->entities_n; i++) {
		const char *name = s->entities[i].id.name;
		unsigned k = 0;

		if (entity_is_mig(&s->entities[i]))
			continue;
		while (k < n && !STRV_EQ(models[k], name))
			k++;
		if (k == MODELS_MAX) {
			others++;
			continue;
		}
		models[k] = name;
		counts[k]++;
		n = MAX(n, k + 1);
	}
	for (unsigned k = 0; k < n && used < size; k++)
		used += (size_t)snprintf(text + used, size - used, "%s%ux %s", k > 0 ? ", " : "", counts[k],
					 models[k] + (strncmp(models[k], "NVIDIA ", 7) == 0 ? 7 : 0));
	if (others > 0 && used < size)
		snprintf(text + used, size - used, ", %u others", others);
}

static void clock_text(int64_t real_ns, char text[static CLOCK_TEXT])
{
	time_t seconds = (time_t)(real_ns / NSEC_PER_SEC);
	struct tm tm;

	strftime(text, CLOCK_TEXT, "%H:%M:%S", localtime_r(&seconds, &tm));
}

/* What time it is there, and how old what is shown is. */
static int draw_age(const struct top *top, struct canvas *canvas, int row)
{
	char text[2 * CLOCK_TEXT], clock[CLOCK_TEXT];
	int64_t age_ns = MAX(top->now_real_ns - top->sample->snapshot->real_ns, INT64_C(0));
	enum role role = age_ns > OLD_NS ? ROLE_WARN : ROLE_DIM;
	int width;

	clock_text(top->sample->snapshot->real_ns, clock);
	if (top->recorded || top->back > 0)
		snprintf(text, sizeof(text), "%s, %" PRId64 " s AGO", clock, age_ns / NSEC_PER_SEC);
	else
		snprintf(text, sizeof(text), "%s, age %.1f s%s", clock, (double)age_ns * 1e-9,
			 top->frozen ? ", FROZEN" : "");
	if (top->recorded || top->back > 0 || top->frozen)
		role = ROLE_WARN;
	width = canvas_width(text);
	canvas_text(canvas, row, canvas->columns - width, width, role, text);
	return width + 2;
}

static void draw_names(const struct top *top, struct canvas *canvas, int row)
{
	const struct snapshot *s = top->sample->snapshot;
	const struct source *driver = snapshot_driver(s);
	char models[LINE_TEXT], cuda[16];
	int room = canvas->columns, at = 0;

	/* What it is comes before how old it is. */
	if (room >= NARROW_COLUMNS)
		room -= draw_age(top, canvas, row);
	if (s->simulated)
		at += canvas_text(canvas, row, at, room, ROLE_WARN, "SIMULATED ");
	at += canvas_text(canvas, row, at, room - at, ROLE_HEAD, s->hostname[0] ? s->hostname : "-");
	models_text(s, models, sizeof(models));
	at += canvas_textf(canvas, row, at, room - at, ROLE_TEXT, "  %s", models[0] ? models : "no GPUs");
	if (driver->driver_version[0])
		at += canvas_textf(canvas, row, at, room - at, ROLE_DIM, "  driver %s",
				   driver->driver_version);
	cuda_version_text(driver->cuda_version, cuda);
	if (cuda[0])
		canvas_textf(canvas, row, at, room - at, ROLE_DIM, "  CUDA %s", cuda);
}

/* A figure over the GPUs that have it. */
struct total {
	double sum, most;
	unsigned n;
};

static void add_up(struct total *total, const struct entity *e, enum gpu_metric row)
{
	double v;

	if (!entity_number(e, row, &v))
		return;
	total->most = total->n > 0 ? MAX(total->most, v) : v;
	total->sum += v;
	total->n++;
}

/* Names before figures; what is not known of any GPU is left out. */
static int draw_total(struct canvas *canvas, int row, int at, const char *name, const char *text)
{
	at += canvas_textf(canvas, row, at, canvas->columns - at, ROLE_DIM, "%s ", name);
	at += canvas_textf(canvas, row, at, canvas->columns - at, ROLE_TEXT, "%s   ", text);
	return at;
}

static enum role worst_state(const struct snapshot *s, char word[static 24])
{
	enum gpu_severity worst = GPU_WORKS;

	snprintf(word, 24, "ok");
	for (uint32_t i = 0; i < s->entities_n; i++) {
		struct gpu_state state;

		gpu_state(s, &s->entities[i], &state);
		if (entity_is_mig(&s->entities[i]) || state.severity <= worst)
			continue;
		worst = state.severity;
		snprintf(word, 24, "%s", state.word);
	}
	return worst == GPU_WORKS ? ROLE_GOOD : worst == GPU_DOUBTFUL ? ROLE_WARN : ROLE_BAD;
}

static void draw_totals(const struct top *top, struct canvas *canvas, int row)
{
	static const double gib = 1024.0 * 1024.0 * 1024.0;
	const struct snapshot *s = top->sample->snapshot;
	struct total load = { 0 }, used = { 0 }, memory = { 0 }, power = { 0 }, limit = { 0 }, heat = { 0 };
	char text[64], word[24];
	enum role role;
	int at = 0;

	for (uint32_t i = 0; i < s->entities_n; i++) {
		const struct entity *e = &s->entities[i];

		if (entity_is_mig(e) || !e->present || e->stale)
			continue;
		add_up(&load, e, GPU_UTILIZATION_GPU);
		add_up(&used, e, GPU_MEMORY_USED);
		add_up(&memory, e, GPU_MEMORY_TOTAL);
		add_up(&power, e, GPU_POWER);
		add_up(&limit, e, GPU_POWER_LIMIT_ENFORCED);
		add_up(&heat, e, GPU_TEMPERATURE);
	}
	role = worst_state(s, word);
	if (s->entities_n > 0)
		at += canvas_textf(canvas, row, at, canvas->columns, role, "%s   ", word);
	if (load.n > 0) {
		snprintf(text, sizeof(text), "%.0f %%", load.sum / load.n * 100);
		at = draw_total(canvas, row, at, "util", text);
	}
	if (used.n > 0 && memory.n > 0) {
		snprintf(text, sizeof(text), "%.1f/%.1f GiB", used.sum / gib, memory.sum / gib);
		at = draw_total(canvas, row, at, "memory", text);
	}
	if (power.n > 0) {
		if (limit.n == power.n)
			snprintf(text, sizeof(text), "%.0f/%.0f W", power.sum, limit.sum);
		else
			snprintf(text, sizeof(text), "%.0f W", power.sum);
		at = draw_total(canvas, row, at, "power", text);
	}
	if (heat.n > 0) {
		snprintf(text, sizeof(text), "%.0f %sC", heat.most, canvas->ascii ? "" : "\u00b0");
		at = draw_total(canvas, row, at, "hottest", text);
	}
	snprintf(text, sizeof(text), "%" PRIu32, s->processes_n);
	draw_total(canvas, row, at, "processes", text);
}

/* Whole titles, short ones, or numbers alone but for the tab that is shown. */
enum names { NAMES_WHOLE, NAMES_BRIEF, NAMES_NONE };

static int tab_text(const struct top *top, enum tab tab, enum names names, char *text, size_t size)
{
	const char *title = names == NAMES_WHOLE                    ? tabs[tab].title :
			    names == NAMES_BRIEF || tab == top->tab ? tabs[tab].brief :
								      "";

	snprintf(text, size, " %u%s%s ", ((unsigned)tab + 1) % 10, *title ? " " : "", title);
	return canvas_width(text);
}

static enum names names_that_fit(const struct top *top, int columns)
{
	char text[64];

	for (enum names names = NAMES_WHOLE; names < NAMES_NONE; names++) {
		int width = 0;

		for (unsigned i = 0; i < TABS; i++)
			width += tab_text(top, (enum tab)i, names, text, sizeof(text));
		if (width <= columns)
			return names;
	}
	return NAMES_NONE;
}

static void draw_tabs(const struct top *top, struct canvas *canvas, int row)
{
	enum names names = names_that_fit(top, canvas->columns);
	int at = 0;

	canvas_role(canvas, row, ROLE_TAB);
	for (unsigned i = 0; i < TABS; i++) {
		char text[64];
		int width = tab_text(top, (enum tab)i, names, text, sizeof(text));
		bool current = i == top->tab && top->mode != MODE_HELP;

		canvas_text(canvas, row, at, width, current ? ROLE_HEAD : ROLE_TAB, text);
		if (current)
			canvas_reverse(canvas, row, at, width);
		at += width;
	}
}

enum tab draw_tab_at(const struct top *top, int columns, int column)
{
	enum names names = names_that_fit(top, columns);
	char text[64];

	for (unsigned i = 0; i < TABS; i++) {
		column -= tab_text(top, (enum tab)i, names, text, sizeof(text));
		if (column < 0)
			return (enum tab)i;
	}
	return TABS;
}

/* On a second line, where there is room, since the remedy stands at the end. Returns the next row. */
static int draw_alert(const struct top *top, struct canvas *canvas, int row)
{
	struct alert alert;
	enum role role;
	size_t n;

	if (!alert_newest(top->sample, &alert))
		return row;
	role = alert.severe ? ROLE_BAD : ROLE_WARN;
	n = strlen(alert.text);
	if (canvas_width(alert.text) > canvas->columns && canvas->rows >= ROOMY_ROWS)
		for (n = (size_t)canvas->columns; n > 0 && alert.text[n] != ' ';)
			n--;
	n = n > 0 ? n : strlen(alert.text);
	canvas_textf(canvas, row++, 0, canvas->columns, role, "%.*s", (int)n, alert.text);
	if (alert.text[n])
		canvas_text(canvas, row++, 0, canvas->columns, role, alert.text + n + 1);
	return row;
}

int draw_header(struct top *top, struct canvas *canvas)
{
	const struct sample *sample = top->sample;
	int row = 0;

	if (!sample || !sample->snapshot) {
		canvas_text(canvas, row++, 0, canvas->columns, ROLE_HEAD, "gpusonde " GPUSONDE_VERSION);
		if (sample && sample->failure[0])
			canvas_text(canvas, row, 0, canvas->columns, ROLE_BAD, sample->failure);
		else
			canvas_text(canvas, row, 0, canvas->columns, ROLE_DIM,
				    "waiting for the first data ...");
		row++;
	} else {
		draw_names(top, canvas, row++);
		draw_totals(top, canvas, row++);
		row = draw_alert(top, canvas, row);
	}
	top->tabs_row = row;
	draw_tabs(top, canvas, row++);
	return row;
}
