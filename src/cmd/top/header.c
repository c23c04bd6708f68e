// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "cmd/top/alert.h"
#include "cmd/top/draw.h"
#include "cmd/top/totals.h"
#include "cmd/top/value.h"
#include "config.h"
#include "screen/bar.h"
#include "view/names.h"
#include "view/shown.h"
#include "view/table/parts.h"

enum {
	LINE_TEXT = 512,
	MODELS_MAX = 4,
	CLOCK_TEXT = 40,
	ROOMY_ROWS = 24,
	NARROW_COLUMNS = 50,
	COUNTS_SHORT = 80
};
#define OLD_NS (3 * NSEC_PER_SEC) /* an age from which it is no longer said in passing */

/* GPUs by model: "8x H100 80GB HBM3", each once, in the order of the GPUs. */
struct models {
	const char *names[MODELS_MAX];
	unsigned counts[MODELS_MAX], n, others;
};

static void add_models(struct models *models, const struct snapshot *s)
{
	for (uint32_t i = 0; i < s->entities_n; i++) {
		const char *name = s->entities[i].id.name;
		unsigned k = 0;

		if (entity_is_mig(&s->entities[i]))
			continue;
		while (k < models->n && !STRV_EQ(models->names[k], name))
			k++;
		if (k == MODELS_MAX) {
			models->others++;
			continue;
		}
		models->names[k] = name;
		models->counts[k]++;
		models->n = MAX(models->n, k + 1);
	}
}

static void models_text(const struct sample *shown, char *text, size_t size)
{
	struct models models = { 0 };
	size_t used = 0;

	text[0] = '\0';
	for (uint32_t i = 0; i < sample_parts(shown); i++)
		if (sample_part(shown, i) && sample_part(shown, i)->snapshot)
			add_models(&models, sample_part(shown, i)->snapshot);
	for (unsigned k = 0; k < models.n && used < size; k++)
		used += (size_t)snprintf(
			text + used, size - used, "%s%ux %s", k > 0 ? ", " : "", models.counts[k],
			models.names[k] + (strncmp(models.names[k], "NVIDIA ", 7) == 0 ? 7 : 0));
	if (models.others > 0 && used < size)
		snprintf(text + used, size - used, ", %u others", models.others);
}

static void clock_text(int64_t real_ns, char text[static CLOCK_TEXT])
{
	time_t seconds = (time_t)(real_ns / NSEC_PER_SEC);
	struct tm tm;

	strftime(text, CLOCK_TEXT, "%H:%M:%S", localtime_r(&seconds, &tm));
}

/* Of several machines: of the one that has said nothing for longest. */
static int64_t age_of(const struct top *top, const struct sample *shown)
{
	int64_t age_ns = 0;

	if (!shown->parts)
		return MAX(top->now_real_ns - shown->snapshot->real_ns, INT64_C(0));
	for (uint32_t i = 0; i < shown->parts_n; i++)
		age_ns = MAX(age_ns, shown->parts[i].age_ns);
	return age_ns + MAX(top->now_mono_ns - shown->mono_ns, INT64_C(0));
}

/* Of a recording. */
static void replay_text(const struct top *top, int64_t real_ns, char *text, size_t size)
{
	time_t seconds = (time_t)(real_ns / NSEC_PER_SEC);
	char when[32];
	struct tm tm;

	strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", localtime_r(&seconds, &tm));
	if (top->frozen)
		snprintf(text, size, "REPLAY %s, Space plays", when);
	else
		snprintf(text, size, "REPLAY %s, %gx", when, top->replay);
}

/* What time it is there, and how old what is shown is. */
static int draw_age(const struct top *top, const struct sample *shown, struct canvas *canvas, int row)
{
	char text[2 * CLOCK_TEXT], clock[CLOCK_TEXT];
	int64_t age_ns = age_of(top, shown);
	enum role role = age_ns > OLD_NS ? ROLE_WARN : ROLE_DIM;
	int width;

	clock_text(shown->parts ? shown->real_ns : shown->snapshot->real_ns, clock);
	if (top->replay > 0)
		replay_text(top, shown->snapshot->real_ns, text, sizeof(text));
	else if (top->recorded || top->back > 0)
		snprintf(text, sizeof(text), "%s, %" PRId64 " s AGO", clock, age_ns / NSEC_PER_SEC);
	else
		snprintf(text, sizeof(text), "%s, age %.1f s%s", clock, (double)age_ns * 1e-9,
			 top->frozen ? ", FROZEN" : "");
	if (top->recorded || top->back > 0 || top->frozen || top->replay > 0)
		role = ROLE_WARN;
	width = canvas_width(text);
	canvas_text(canvas, row, canvas->columns - width, width, role, text);
	return width + 2;
}

static bool is_simulated(const struct sample *shown)
{
	for (uint32_t i = 0; i < sample_parts(shown); i++) {
		const struct sample *part = sample_part(shown, i);

		if (part && part->snapshot && part->snapshot->simulated)
			return true;
	}
	return false;
}

static int draw_driver(const struct snapshot *s, struct canvas *canvas, int row, int at, int room)
{
	const struct source *driver = snapshot_driver(s);
	char cuda[16];

	if (driver->driver_version[0])
		at += canvas_textf(canvas, row, at, room - at, ROLE_DIM, "  driver %s",
				   driver->driver_version);
	cuda_version_text(driver->cuda_version, cuda);
	if (cuda[0])
		at += canvas_textf(canvas, row, at, room - at, ROLE_DIM, "  CUDA %s", cuda);
	return at;
}

/* As it was named: two machines may have the same name of their own. */
static const char *name_of(const struct sample *shown)
{
	return shown->host[0] ? shown->host : shown->snapshot->hostname[0] ? shown->snapshot->hostname : "-";
}

static void draw_names(const struct top *top, const struct sample *shown, struct canvas *canvas, int row)
{
	char models[LINE_TEXT];
	int room = canvas->columns, at = 0;

	/* What it is comes before how old it is. */
	if (room >= NARROW_COLUMNS)
		room -= draw_age(top, shown, canvas, row);
	if (is_simulated(shown))
		at += canvas_text(canvas, row, at, room, ROLE_WARN, "SIMULATED ");
	if (shown->parts)
		at += canvas_textf(canvas, row, at, room - at, ROLE_HEAD, "%" PRIu32 " host%s",
				   shown->parts_n, shown->parts_n == 1 ? "" : "s");
	else
		at += canvas_text(canvas, row, at, room - at, ROLE_HEAD, name_of(shown));
	models_text(shown, models, sizeof(models));
	at += canvas_textf(canvas, row, at, room - at, ROLE_TEXT, "  %s", models[0] ? models : "no GPUs");
	if (!shown->parts)
		draw_driver(shown->snapshot, canvas, row, at, room);
}

/*
 * Names before figures; what is not known of any GPU is left out, and so is what there is no room for. What
 * is of @n GPUs and not of all says so, as on the web page, shorter where the terminal is narrow.
 */
static int draw_total(struct canvas *canvas, int row, int at, const char *name, const char *text, unsigned n,
		      unsigned gpus)
{
	char whole[128];

	snprintf(whole, sizeof(whole), "%s", text);
	if (n < gpus)
		snprintf(whole, sizeof(whole),
			 canvas->columns > COUNTS_SHORT ? "%s (%u of %u)" : "%s (%u/%u)", text, n, gpus);
	if (at + canvas_width(name) + 1 + canvas_width(whole) > canvas->columns)
		return at;
	at += canvas_textf(canvas, row, at, canvas->columns - at, ROLE_DIM, "%s ", name);
	return at + canvas_text(canvas, row, at, canvas->columns - at, ROLE_TEXT, whole) + 3;
}

/* With its limit, where that is known of the same GPUs and there is room. */
static int draw_power(struct canvas *canvas, int row, int at, const struct gpu_totals *totals)
{
	char text[64];
	int after = at;

	if (totals->power.n > 0 && totals->limited.n == totals->power.n) {
		snprintf(text, sizeof(text), "%.0f/%.0f W", totals->power.sum, totals->limit.sum);
		after = draw_total(canvas, row, at, "power", text, totals->power.n, totals->gpus);
	}
	if (totals->power.n > 0 && after == at) {
		snprintf(text, sizeof(text), "%.0f W", totals->power.sum);
		after = draw_total(canvas, row, at, "power", text, totals->power.n, totals->gpus);
	}
	return after;
}

static void draw_totals(const struct sample *shown, struct canvas *canvas, int row)
{
	static const double gib = 1024.0 * 1024.0 * 1024.0;
	struct gpu_totals totals;
	char text[64];
	int at = 0;

	totals_init(&totals);
	for (uint32_t i = 0; i < sample_parts(shown); i++)
		if (sample_part(shown, i) && sample_part(shown, i)->snapshot)
			totals_add(&totals, sample_part(shown, i)->snapshot);
	if (totals.gpus > 0)
		at += canvas_textf(canvas, row, at, canvas->columns, value_severity_role(totals.worst),
				   "%s   ", totals.word);
	if (totals.load.n > 0) {
		snprintf(text, sizeof(text), "%.0f %%", totals.load.sum / totals.load.n * 100);
		at = draw_total(canvas, row, at, "util", text, totals.load.n, totals.gpus);
	}
	if (totals.used.n > 0) {
		snprintf(text, sizeof(text), "%.1f/%.1f GiB", totals.used.sum / gib, totals.memory.sum / gib);
		at = draw_total(canvas, row, at, "memory", text, totals.used.n, totals.gpus);
	}
	at = draw_power(canvas, row, at, &totals);
	if (totals.heat.n > 0) {
		snprintf(text, sizeof(text), "%.0f %sC", totals.heat.most, canvas->ascii ? "" : "\u00b0");
		at = draw_total(canvas, row, at, "hottest", text, totals.heat.n, totals.gpus);
	}
	snprintf(text, sizeof(text), "%u", totals.processes);
	draw_total(canvas, row, at, "processes", text, totals.gpus, totals.gpus);
}

/* Whole titles, short ones, these without blanks, or keys alone but for the tab that is shown. */
enum names { NAMES_WHOLE, NAMES_BRIEF, NAMES_TIGHT, NAMES_NONE };

static int tab_text(const struct top *top, enum tab tab, enum names names, char *text, size_t size)
{
	const char *title = names == NAMES_WHOLE                  ? tabs[tab].title :
			    names < NAMES_NONE || tab == top->tab ? tabs[tab].brief :
								    "";

	if (names == NAMES_TIGHT)
		snprintf(text, size, "%c%s ", tabs[tab].key, title);
	else
		snprintf(text, size, " %c%s%s ", tabs[tab].key, *title ? " " : "", title);
	return canvas_width(text);
}

static enum names names_that_fit(const struct top *top, int columns)
{
	char text[64];

	for (enum names names = NAMES_WHOLE; names < NAMES_NONE; names++) {
		int width = 0;

		for (unsigned i = 0; i < top_tabs(top); i++)
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
	for (unsigned i = 0; i < top_tabs(top); i++) {
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

	for (unsigned i = 0; i < top_tabs(top); i++) {
		column -= tab_text(top, (enum tab)i, names, text, sizeof(text));
		if (column < 0)
			return (enum tab)i;
	}
	return TABS;
}

/* On a second line, where there is room, since the remedy stands at the end. Returns the next row. */
static int draw_alert(const struct sample *shown, struct canvas *canvas, int row)
{
	struct alert alert;
	enum role role;
	size_t n;

	if (!alert_newest(shown, &alert))
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

/* Why there is nothing to show of the one that was chosen. */
static const char *failure_of(const struct top *top)
{
	const struct sample *all = top->sample;

	for (uint32_t i = 0; all && i < all->parts_n; i++)
		if (STRV_EQ(all->parts[i].name, top->host))
			return all->parts[i].failure;
	return all ? all->failure : "";
}

static void draw_no_data(const struct top *top, struct canvas *canvas, int row)
{
	const char *failure = failure_of(top);

	canvas_textf(canvas, row, 0, canvas->columns, ROLE_HEAD, "gpusonde " GPUSONDE_VERSION "%s%s",
		     top->host[0] ? "  " : "", top->host);
	if (*failure)
		canvas_text(canvas, row + 1, 0, canvas->columns, ROLE_BAD, failure);
	else
		canvas_text(canvas, row + 1, 0, canvas->columns, ROLE_DIM, "waiting for the first data ...");
}

int draw_header(struct top *top, struct canvas *canvas)
{
	const struct sample *shown = top_shown(top);
	int row = 0;

	top->alert_rows = 0;
	if (!shown || (!shown->snapshot && !shown->parts)) {
		draw_no_data(top, canvas, row);
		row += 2;
	} else {
		draw_names(top, shown, canvas, row++);
		draw_totals(shown, canvas, row++);
		top->alert_row = row;
		row = draw_alert(shown, canvas, row);
		top->alert_rows = row - top->alert_row;
	}
	top->tabs_row = row;
	draw_tabs(top, canvas, row++);
	return row;
}
