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
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/text.h"
#include "cmd/output.h"
#include "cmd/recording/arguments.h"
#include "cmd/top/draw.h"
#include "cmd/top/keys.h"
#include "cmd/top/replayed.h"
#include "cmd/top/settings.h"
#include "screen/export.h"
#include "screen/terminal.h"

#define INTERVAL_MIN_S 0.1
#define INTERVAL_MAX_S 60.0
/* How often the age of data that do not come is drawn anew; longer than they usually take to come. */
#define CLOCK_NS (3 * NSEC_PER_SEC / 2)

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

	/* A user who has gone back to now meanwhile does not want it any more. */
	if (moment && !screen->top.frozen) {
		sample_free(moment);
	} else if (moment) {
		show(screen, moment);
		screen->top.recorded = screen->top.frozen = true;
		screen->live = false;
	}
	if (!sample)
		return;
	/* A moment that is not there, of a recording: what is shown stays. */
	if (screen->top.replay > 0 && !sample->snapshot) {
		top_say(&screen->top, "%s", sample->answer);
		sample_free(sample);
		return;
	}
	trails_add(screen->top.trails, sample);
	if (sample->snapshot && screen->top.replay <= 0)
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
	if (top->start_timeline && top->replay > 0) {
		top_say(top, "this is a recording");
	} else if (top->start_timeline) {
		sampler_timeline(screen->sampler, top->process.pid);
		top_say(top, "the agent is asked ...");
	}
	if (top->asked_ns) {
		sampler_ask_moment(screen->sampler, top->asked_ns);
		if (top->replay <= 0)
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
	if (top->replay > 0 && top->sample) {
		top->now_real_ns = top->sample->real_ns;
		top->now_mono_ns = top->sample->mono_ns;
	}
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

/* Whose own screen is shown, if it is one of this machine. */
static uint32_t watched_process(const struct top *top)
{
	return top->mode == MODE_PROCESS && top->process.start_ticks ? top->process.pid : 0;
}

static void loop(struct top_screen *screen)
{
	struct pollfd fds[] = { { .fd = terminal_fd(screen->terminal), .events = POLLIN },
				{ .fd = sampler_fd(screen->sampler), .events = POLLIN } };
	bool whole = false;

	do_requests(screen);
	for (;;) {
		sampler_want(screen->sampler, top_pages(&screen->top));
		sampler_hold(screen->sampler, screen->top.frozen);
		sampler_watch(screen->sampler, watched_process(&screen->top));
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

/* --hosts and operands. False: one of them is wrong; it is said. */
static bool parse_hosts(const struct invocation *inv, struct host_list *hosts)
{
	char why[HOST_WHY_TEXT] = "out of memory";
	int r = 0;

	for (int i = 0; r == 0 && i < inv->operands_n; i++)
		r = host_list_add(hosts, inv->operands[i], why);
	if (r == 0 && inv->flag[FLAG_HOSTS])
		r = host_list_read(hosts, inv->flag[FLAG_HOSTS], why);
	if (r == 0 && inv->flag[FLAG_HOSTS] && hosts->n == 0) {
		snprintf(why, sizeof(why), "%.120s names no host", inv->flag[FLAG_HOSTS]);
		r = -EINVAL;
	}
	if (r < 0)
		fprintf(stderr, "gpusonde top: %s\n", why);
	return r == 0;
}

/* ---- a recording ---- */

/* False: --replay cannot be so; it is said why. */
static bool parse_replay(const struct invocation *inv, const struct host_list *hosts, int64_t *ret_at_ns,
			 double *ret_speed)
{
	if (!inv->flag[FLAG_TOP_REPLAY] && (inv->flag[FLAG_AT] || inv->flag[FLAG_SPEED]))
		fputs("gpusonde top: --at and --speed are of a recording: name it with --replay\n", stderr);
	else if (inv->flag[FLAG_TOP_REPLAY] && hosts->n > 0)
		fputs("gpusonde top: a recording is of one machine: leave out --replay, or the hosts\n",
		      stderr);
	else
		return replay_arguments(inv, "top", ret_at_ns, ret_speed);
	return false;
}

/* Of several machines, their tab comes first; of one, what it does. */
static void begin_with(struct top *top, const struct host_list *hosts)
{
	top->several = hosts->n > 0;
	if (hosts->n == 1)
		top_choose_host(top, hosts->list[0].name);
	else if (hosts->n > 1)
		top->tab = TAB_HOSTS;
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

/* Takes @replayed over; NULL: what is now. */
static int run_screen(struct top_screen *screen, const struct invocation *inv, const struct host_list *hosts,
		      struct replayed *replayed)
{
	int r = trails_new(&screen->top.trails);

	if (r == 0)
		r = past_new(&screen->top.past);
	if (r == 0)
		r = terminal_open(output_options(inv, STDOUT_FILENO).colour, &screen->terminal);
	/* Its thread must receive none of the signals that the terminal takes. */
	if (r == 0 && replayed)
		r = sampler_new_replayed(TAKE_PTR(replayed), screen->top.period_ns, &screen->sampler);
	else if (r == 0)
		r = sampler_new(&inv->options, hosts, screen->top.period_ns, &screen->sampler);
	if (r == 0)
		loop(screen);
	terminal_close(screen->terminal);
	if (r == 0)
		settings_save(&screen->top);
	sampler_free(screen->sampler);
	replayed_free(replayed);
	sample_free(screen->newest);
	top_done(&screen->top);
	return r < 0 ? explain(r) : EXIT_SUCCESS;
}

int top_main(struct invocation *inv)
{
	_cleanup_(host_list_done) struct host_list hosts = { 0 };
	struct top_screen screen = { 0 };
	struct replayed *replayed = NULL;
	int64_t at_ns = INT64_MAX;
	double speed = 0;

	if (!parse_interval(inv, &screen.top.period_ns) || !parse_hosts(inv, &hosts) ||
	    !parse_replay(inv, &hosts, &at_ns, &speed))
		return EXIT_USAGE;
	keep_memory();
	top_init(&screen.top);
	settings_load(&screen.top);
	begin_with(&screen.top, &hosts);
	if (inv->flag[FLAG_TOP_REPLAY]) {
		int status = replayed_open(inv->flag[FLAG_TOP_REPLAY], at_ns, speed, &replayed);

		if (status != EXIT_SUCCESS)
			return status;
		screen.top.replay = speed > 0 ? speed : 1;
		screen.top.frozen = speed <= 0;
		screen.top.asked_ns = speed <= 0 ? at_ns : 0;
	}
	return run_screen(&screen, inv, &hosts, replayed);
}
