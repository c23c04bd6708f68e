// SPDX-License-Identifier: Apache-2.0
/* "gpusonde replay": a recorded moment, or all that follows it, as the views showed it then. */
#include "cmd/cmd.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/dcgm/style.h"
#include "base/clock.h"
#include "base/text.h"
#include "cmd/output.h"
#include "cmd/recording/arguments.h"
#include "cmd/recording/film.h"
#include "cmd/recording/replay_serve.h"
#include "screen/window.h"
#include "serve/address.h"
#include "view/table/table.h"
#include "view/view.h"

enum { NODE_SECTIONS = JSON_GPUS | JSON_PROCESSES | JSON_NODE | JSON_TRACE | JSON_KERNELS | JSON_EVENTS };

typedef int replay_fn(const struct snapshot *snapshot, const struct table_options *table, struct strbuf *out);

static int all_tables(const struct snapshot *snapshot, const struct table_options *table, struct strbuf *out)
{
	int r = table_node(snapshot, table, out);

	strbuf_addc(out, '\n');
	if (r == 0)
		r = table_gpus(snapshot, table, out);
	strbuf_addc(out, '\n');
	return r == 0 ? table_processes(snapshot, table, out) : r;
}

static int kernels(const struct snapshot *snapshot, const struct table_options *table, struct strbuf *out)
{
	return table_kernels(snapshot, table, false, 0, out);
}

static int metrics(const struct snapshot *snapshot, _unused_ const struct table_options *table,
		   struct strbuf *out)
{
	return view_prometheus(snapshot, EXPOSITION_PROMETHEUS, NULL, out);
}

static int openmetrics(const struct snapshot *snapshot, _unused_ const struct table_options *table,
		       struct strbuf *out)
{
	return view_prometheus(snapshot, EXPOSITION_OPENMETRICS, NULL, out);
}

static int dcgm(const struct snapshot *snapshot, _unused_ const struct table_options *table,
		struct strbuf *out)
{
	static const struct dcgm_style style = { 0 };

	return view_dcgm(snapshot, &style, EXPOSITION_PROMETHEUS, out);
}

static const struct replay_view {
	const char *name;
	replay_fn *render;
	bool table; /* else a page that has no JSON */
	unsigned sections; /* of --json */
} replay_views[] = {
	{ "snapshot", all_tables, true, NODE_SECTIONS },
	{ "gpus", table_gpus, true, JSON_GPUS },
	{ "ps", table_processes, true, JSON_PROCESSES },
	{ "kernels", kernels, true, JSON_KERNELS },
	{ "metrics", metrics, false, 0 },
	{ "openmetrics", openmetrics, false, 0 },
	{ "dcgm", dcgm, false, 0 },
};

struct replay {
	struct store_reader *reader;
	const struct replay_view *view;
	bool json;
	struct table_options table;
	struct window *window; /* NULL: one page after the other */
};

/* ---- what is asked for ---- */

static const struct replay_view *find_view(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(replay_views); i++)
		if (STRV_EQ(replay_views[i].name, name))
			return &replay_views[i];
	fprintf(stderr,
		"gpusonde replay: --view cannot be \"%.80s\": it must be snapshot, gpus, ps, kernels, "
		"metrics, openmetrics or dcgm\n",
		name);
	return NULL;
}

/* ---- pages ---- */

static int render_page(const struct replay *replay, const struct snapshot *snapshot, struct strbuf *out)
{
	char when[32];

	if (replay->json)
		return view_json_text(snapshot, replay->view->sections, out);
	if (replay->view->table) {
		format_rfc3339(snapshot->real_ns, when);
		strbuf_addf(out, "Recorded at %s\n\n", when);
	}
	return replay->view->render(snapshot, &replay->table, out);
}

static int show_page(const struct replay *replay, const struct snapshot *snapshot)
{
	struct strbuf page;
	int r;

	strbuf_init(&page, 0);
	r = render_page(replay, snapshot, &page);
	if (r == 0 && replay->window)
		r = window_draw(replay->window, &page);
	else if (r == 0 && put_stdout(&page) != EXIT_SUCCESS)
		r = -EPIPE;
	strbuf_done(&page);
	return r;
}

static int show_moment(struct replay *replay, int64_t at_ns)
{
	struct snapshot *snapshot;
	int r = store_moment(replay->reader, at_ns, &snapshot);

	if (r < 0)
		return r;
	r = show_page(replay, snapshot);
	restored_free(snapshot);
	return r;
}

/* Between two frames; true: no further one is wanted. */
static bool wait_between(struct replay *replay, int64_t ns)
{
	struct pollfd window = { .fd = replay->window ? window_fd(replay->window) : -1, .events = POLLIN };
	int64_t end_ns = clock_mono_ns() + ns;

	for (;;) {
		int64_t left_ns = MAX(end_ns - clock_mono_ns(), INT64_C(0));
		const struct timespec pause = { left_ns / NSEC_PER_SEC, left_ns % NSEC_PER_SEC };

		if (ppoll(&window, 1, &pause, NULL) <= 0)
			return false;
		if (window_take(replay->window) == WINDOW_QUIT)
			return true;
		replay->table.width = window_width(replay->window);
	}
}

static int show_film(struct replay *replay, int64_t since_ns, double speed)
{
	struct snapshot *snapshot = NULL;
	struct film film;
	int64_t pause_ns;
	int r;

	film_begin(&film, replay->reader, since_ns, speed);
	while ((r = film_next(&film, &snapshot, &pause_ns)) > 0) {
		bool ends = pause_ns > 0 && wait_between(replay, pause_ns);

		r = ends ? 0 : show_page(replay, snapshot);
		restored_free(snapshot);
		if (ends || r < 0)
			break;
	}
	return r;
}

/* ---- the command ---- */

/* False: --serve cannot be so; it is said why. */
static bool parse_serve(const struct invocation *inv, const char **ret_address)
{
	const char *address = inv->flag[FLAG_SERVE];
	struct addresses ignored;

	if (!address)
		return true;
	*ret_address = *address ? address : REPLAY_ADDRESS;
	if (inv->flag[FLAG_JSON] || inv->flag[FLAG_VIEW])
		fprintf(stderr, "gpusonde replay: --serve has every view: leave out --json and --view\n");
	else if (address_parse(*ret_address, &ignored) < 0)
		fprintf(stderr,
			"gpusonde replay: --serve cannot be \"%.80s\": it must be an address and a port, "
			"such as " REPLAY_ADDRESS "\n",
			*ret_address);
	else if (!address_is_loopback(*ret_address))
		fprintf(stderr,
			"gpusonde replay: --serve cannot be \"%.80s\": the pages of a replay are served on "
			"loopback only, such as " REPLAY_ADDRESS "\n",
			*ret_address);
	else
		return true;
	return false;
}

static int run_replay(struct replay *replay, const struct invocation *inv, int64_t at_ns, double speed)
{
	bool terminal = isatty(STDOUT_FILENO);
	int r;

	replay->table = output_options(inv, STDOUT_FILENO);
	if (speed <= 0)
		return show_moment(replay, at_ns);
	if (terminal && !replay->json && replay->view->table &&
	    window_open(replay->table.colour, &replay->window) < 0)
		replay->window = NULL;
	replay->table.colour |= replay->window != NULL;
	r = show_film(replay, inv->flag[FLAG_AT] ? at_ns : INT64_MIN, speed);
	window_close(replay->window);
	return r;
}

int replay_main(struct invocation *inv)
{
	struct replay replay = { .json = inv->flag[FLAG_JSON] };
	const char *path = inv->operands_n > 0 ? inv->operands[0] : NULL, *address = NULL;
	int64_t at_ns = INT64_MAX;
	double speed = 0;
	char why[300];
	int r;

	if (!path) {
		fprintf(stderr, "gpusonde replay: name the file that was recorded\n");
		return EXIT_USAGE;
	}
	replay.view = find_view(inv->flag[FLAG_VIEW] ? inv->flag[FLAG_VIEW] : "snapshot");
	if (!replay.view || !replay_arguments(inv, "replay", &at_ns, &speed) || !parse_serve(inv, &address))
		return EXIT_USAGE;
	if (replay.json && replay.view->sections == 0) {
		fprintf(stderr, "gpusonde replay: --json is of tables: leave out --view %s\n",
			replay.view->name);
		return EXIT_USAGE;
	}
	if (store_reader_open(path, &replay.reader, why, sizeof(why)) < 0) {
		fprintf(stderr, "gpusonde replay: %s: %s\n", path, why);
		return EXIT_FAILURE;
	}
	r = address ? replay_serve(replay.reader, &(struct replay_pages){ path, address, at_ns, speed }) :
		      run_replay(&replay, inv, at_ns, speed);
	r = replay_report("replay", replay.reader, path, r);
	store_reader_free(replay.reader);
	return r;
}
