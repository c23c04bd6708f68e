// SPDX-License-Identifier: Apache-2.0
#include "model/clock_events.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/macro.h"

enum { PARTS = 60 };

struct clock_window {
	int64_t part_ns; /* length of a part */
	int64_t newest; /* number of the newest part since boot */
	uint32_t counts[PARTS][CLOCK_EVENTS]; /* by number of the part, modulo PARTS */
};

/* Bits: nvmlClocksEventReason* of nvml.h; names: dcgm-exporter's. */
const struct clock_event_row clock_event_rows[CLOCK_EVENTS] = {
	{ "gpu_idle", 1 << 0 },    { "clocks_setting", 1 << 1 }, { "power_cap", 1 << 2 },
	{ "hw_slowdown", 1 << 3 }, { "sync_boost", 1 << 4 },     { "sw_thermal", 1 << 5 },
	{ "hw_thermal", 1 << 6 },  { "hw_power_brake", 1 << 7 }, { "display_clocks", 1 << 8 },
};

/* Empties the parts that have begun since. */
static void advance(struct clock_window *w, int64_t part)
{
	int64_t begun = MIN(part - w->newest, (int64_t)PARTS);

	for (int64_t i = 1; i <= begun; i++)
		memset(w->counts[(w->newest + i) % PARTS], 0, sizeof(w->counts[0]));
	w->newest = MAX(w->newest, part);
}

void clock_window_take(struct clock_window **window, uint64_t reasons, int64_t window_ns, int64_t now_ns)
{
	int64_t part_ns = MAX(window_ns / PARTS, (int64_t)1);
	struct clock_window *w = *window;

	if (!w)
		w = *window = calloc(1, sizeof(*w));
	if (!w)
		return;
	if (w->part_ns != part_ns)
		*w = (struct clock_window){ .part_ns = part_ns, .newest = now_ns / part_ns };
	if (now_ns / part_ns > w->newest)
		advance(w, now_ns / part_ns);
	for (unsigned i = 0; i < CLOCK_EVENTS; i++)
		if (reasons & clock_event_rows[i].bit)
			w->counts[w->newest % PARTS][i]++;
}

void clock_window_counts(const struct clock_window *w, int64_t now_ns, uint32_t ret_counts[CLOCK_EVENTS])
{
	memset(ret_counts, 0, CLOCK_EVENTS * sizeof(*ret_counts));
	if (!w)
		return;
	int64_t oldest = now_ns / w->part_ns - PARTS + 1;

	for (int64_t part = MAX(oldest, w->newest - PARTS + 1); part <= w->newest; part++)
		for (unsigned i = 0; part >= 0 && i < CLOCK_EVENTS; i++)
			ret_counts[i] += w->counts[part % PARTS][i];
}
