// SPDX-License-Identifier: Apache-2.0
/* "gpusonde top", and "gpusonde" alone on a terminal: waits for keys and samples, and draws. */
#include "cmd/cmd.h"

#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/text.h"
#include "cmd/top/draw.h"
#include "cmd/top/keys.h"
#include "cmd/top/settings.h"
#include "screen/export.h"
#include "screen/terminal.h"

#define INTERVAL_MIN_S 0.1
#define INTERVAL_MAX_S 60.0
#define CLOCK_NS NSEC_PER_SEC /* how often the age of data that do not come is drawn anew */

enum { KEPT_BYTES = 16 << 20 };

struct top_screen {
	struct top top;
	struct terminal *terminal;
	struct sampler *sampler;
	struct sample *newest; /* while an earlier one is shown, or nothing new */
	uint32_t back; /* which earlier one is in top.sample */
	bool live; /* top.sample is the newest */
};

/* ---- which sample is shown ---- */

static void show(struct top_screen *screen, struct sample *sample)
{
	tab_rows_done(&screen->top.rows); /* they point into the one before */
	sample_free(screen->top.sample);
	screen->top.sample = sample;
}

static void receive_sample(struct top_screen *screen)
{
	struct sample *sample = sampler_take(screen->sampler);
	struct sample *moment = sampler_take_moment(screen->sampler);

	/* Whoever has gone back to now meanwhile does not want it any more. */
	if (moment && !screen->top.frozen) {
		sample_free(moment);
	} else if (moment) {
		show(screen, moment);
		screen->top.recorded = screen->top.frozen = true;
		screen->live = false;
	}
	if (!sample)
		return;
	trails_add(screen->top.trails, sample);
	if (sample->snapshot)
		past_add(screen->top.past, sample);
	if (sample->answer[0])
		top_say(&screen->top, "%s", sample->answer);
	if (screen->top.back > 0 && screen->top.back + 1 < past_count(screen->top.past)) {
		screen->top.back++; /* the same moment is one further back now */
		screen->back++;
	}
	sample_free(screen->newest);
	screen->newest = sample;
}

/* Follows the state: what it says is shown may be now, what was frozen, or a moment before. */
static void choose_sample(struct top_screen *screen)
{
	struct top *top = &screen->top;
	struct sample *earlier = NULL;

	if (top->recorded) {
		screen->live = false;
	} else if (top->back > 0) {
		if (screen->live || top->back != screen->back) {
			if (past_get(top->past, top->back, &earlier) == 0)
				show(screen, earlier);
			screen->back = top->back;
		}
		screen->live = false;
	} else if (screen->newest && (!top->frozen || !top->sample || !screen->live)) {
		show(screen, TAKE_PTR(screen->newest));
		screen->live = true;
		screen->back = 0;
	}
}

/* ---- files ---- */

static void save(struct top_screen *screen, bool svg)
{
	struct canvas *canvas = terminal_canvas(screen->terminal);
	time_t now = (time_t)(clock_real_ns() / NSEC_PER_SEC);
	char name[64], stamp[32];
	struct strbuf out;
	struct tm tm;
	int r;

	strbuf_init(&out, 0);
	strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", localtime_r(&now, &tm));
	snprintf(name, sizeof(name), "gpusonde-%s.%s", stamp, svg ? "svg" : "txt");
	r = svg ? canvas_as_svg(canvas, "gpusonde top", &out) : canvas_as_text(canvas, &out);
	if (r == 0)
		r = write_file_atomic(name, out.data, out.len, 0644);
	if (r < 0)
		top_say(&screen->top, "%s cannot be written here: %s", name, strerror(-r));
	else
		top_say(&screen->top, "written: %s", name);
	strbuf_done(&out);
}

static void do_requests(struct top_screen *screen)
{
	struct top *top = &screen->top;

	if (top->save_text || top->save_svg)
		save(screen, top->save_svg);
	if (top->start_timeline) {
		sampler_timeline(screen->sampler, top->process.pid);
		top_say(top, "the agent is asked ...");
	}
	if (top->asked_ns) {
		sampler_ask_moment(screen->sampler, top->asked_ns);
		top_say(top, "the agent is asked ...");
	}
	top->asked_ns = 0;
	top->save_text = top->save_svg = top->start_timeline = false;
}

/* ---- the loop ---- */

static void draw(struct top_screen *screen, bool whole)
{
	struct top *top = &screen->top;

	choose_sample(screen);
	top->now_real_ns = clock_real_ns();
	top->now_mono_ns = clock_mono_ns();
	top_make_rows(top);
	draw_screen(top, terminal_canvas(screen->terminal));
	terminal_show(screen->terminal, whole);
}

/* False: it ends. */
static bool take_events(struct top_screen *screen, bool *ret_whole)
{
	struct event event;

	while ((event = terminal_take(screen->terminal)).type != EVENT_NONE) {
		if (event.type == EVENT_END)
			return false;
		if (event.type == EVENT_RESIZED) {
			*ret_whole = true;
			continue;
		}
		keys_take(&screen->top, &event, terminal_canvas(screen->terminal)->columns);
		if (screen->top.ends)
			return false;
		/* The next key may be about the rows that this one has made. */
		choose_sample(screen);
		top_make_rows(&screen->top);
		do_requests(screen);
	}
	return true;
}

static void loop(struct top_screen *screen)
{
	struct pollfd fds[] = { { .fd = terminal_fd(screen->terminal), .events = POLLIN },
				{ .fd = sampler_fd(screen->sampler), .events = POLLIN } };
	bool whole = false;

	for (;;) {
		sampler_want(screen->sampler, top_pages(&screen->top));
		draw(screen, whole);
		whole = false;
		if (poll(fds, ARRAY_SIZE(fds), CLOCK_NS / NSEC_PER_MSEC) < 0 && errno != EINTR)
			return;
		receive_sample(screen);
		if (!take_events(screen, &whole))
			return;
	}
}

static bool parse_interval(const struct invocation *inv, int64_t *ret_ns)
{
	const char *text = inv->flag[FLAG_TOP_INTERVAL];

	*ret_ns = NSEC_PER_SEC;
	if (!text || parse_seconds_ns(text, INTERVAL_MIN_S, INTERVAL_MAX_S, ret_ns) == 0)
		return true;
	fprintf(stderr, "gpusonde top: --interval cannot be \"%.80s\": it must be a time from 100ms to 1m\n",
		text);
	return false;
}

static int explain(int r)
{
	const char *term = getenv("TERM");

	if (r == -ENOTTY)
		fputs("gpusonde top: this is no terminal: gpusonde gpus and gpusonde ps print tables\n",
		      stderr);
	else if (r == -ENOENT)
		fprintf(stderr,
			"gpusonde top: the terminal's kind, TERM=%.80s, is not known here: install its "
			"description (ncurses-term), or try TERM=xterm\n",
			term ? term : "");
	else
		fprintf(stderr, "gpusonde top: cannot start: %s\n", strerror(-r));
	return EXIT_FAILURE;
}

/* A document a second is made and forgotten: its memory is kept for the next one. */
static void keep_memory(void)
{
	mallopt(M_MMAP_THRESHOLD, KEPT_BYTES);
	mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
}

int top_main(struct invocation *inv)
{
	struct top_screen screen = { 0 };
	int r;

	if (!parse_interval(inv, &screen.top.period_ns))
		return EXIT_USAGE;
	keep_memory();
	top_init(&screen.top);
	settings_load(&screen.top);
	r = trails_new(&screen.top.trails);
	if (r == 0)
		r = past_new(&screen.top.past);
	if (r == 0)
		r = terminal_open(&screen.terminal);
	/* Its thread must receive none of the signals that the terminal takes. */
	if (r == 0)
		r = sampler_new(&inv->options, screen.top.period_ns, &screen.sampler);
	if (r == 0)
		loop(&screen);
	terminal_close(screen.terminal);
	if (r == 0)
		settings_save(&screen.top);
	sampler_free(screen.sampler);
	sample_free(screen.newest);
	top_done(&screen.top);
	return r < 0 ? explain(r) : EXIT_SUCCESS;
}
