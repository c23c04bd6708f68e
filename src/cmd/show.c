// SPDX-License-Identifier: Apache-2.0
/* gpusonde gpus, ps and snapshot: one document, as JSON or as tables. */
#include "cmd/cmd.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/text.h"
#include "cmd/feed.h"
#include "view/view.h"

#define WATCH_MIN_S 0.1
#define WATCH_MAX_S 86400.0

typedef int table_fn(const json_t *document, const struct table_options *options, struct strbuf *out);

static const struct show {
	const char *command;
	unsigned sections; /* of --json */
	table_fn *tables[3]; /* one after the other */
} shows[] = {
	{ "gpus", JSON_GPUS, { table_gpus } },
	{ "ps", JSON_PROCESSES, { table_processes } },
	{ "snapshot", JSON_GPUS | JSON_PROCESSES | JSON_NODE, { table_node, table_gpus, table_processes } },
};

struct screen {
	const struct show *show;
	bool json;
	bool terminal; /* redraw in place */
	bool failed; /* the newest document says so */
	struct table_options table;
};

static bool wants_colour(bool terminal)
{
	const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");

	return terminal && !(no_color && *no_color) && term && !STRV_EQ(term, "dumb");
}

static unsigned terminal_width(void)
{
	struct winsize size;

	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

/* Nothing to show because something failed, as the agent says; that there is no GPU is no failure. */
static bool failed(const json_t *document)
{
	return json_array_size(json_object_get(document, "gpus")) == 0 &&
	       json_is_false(json_object_get(json_object_get(document, "node"), "fresh"));
}

static int render_tables(struct screen *screen, const struct strbuf *text, struct strbuf *out)
{
	json_error_t error;
	json_t *document = json_loadb(text->data, text->len, 0, &error);
	int r = 0;

	if (!document)
		return -EBADMSG;
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(screen->show->tables) && screen->show->tables[i]; i++) {
		if (i > 0)
			strbuf_addc(out, '\n');
		r = screen->show->tables[i](document, &screen->table, out);
	}
	screen->failed = failed(document);
	json_decref(document);
	return r;
}

static int render(struct feed *feed, struct screen *screen, struct strbuf *out)
{
	struct strbuf text;
	int r;

	if (screen->json)
		return feed_get(feed, screen->show->sections, out);
	strbuf_init(&text, 0);
	r = feed_get(feed, JSON_GPUS | JSON_PROCESSES | JSON_NODE, &text);
	if (r == 0)
		r = render_tables(screen, &text, out);
	strbuf_done(&text);
	return r;
}

/* Redraws over what is there: each line is cut off behind its end, then all below. Clearing first would flicker. */
static void add_redraw(const struct strbuf *page, struct strbuf *out)
{
	strbuf_adds(out, "\033[H");
	for (size_t i = 0; i < page->len; i++) {
		if (page->data[i] == '\n')
			strbuf_adds(out, "\033[K");
		strbuf_addc(out, page->data[i]);
	}
	strbuf_adds(out, "\033[J");
}

/* 1: the reader has gone away, which is no failure. */
static int put(const struct strbuf *text)
{
	ssize_t n = text->failed ? -ENOMEM : write_all(STDOUT_FILENO, text->data, text->len);

	return n == -EPIPE ? 1 : n < 0 ? (int)n : 0;
}

/* @noted: what has been said about the source already, so that it is said once. */
static int show_once(struct feed *feed, struct screen *screen, char *noted, size_t size)
{
	struct strbuf page, out;
	int r;

	strbuf_init(&page, 0);
	strbuf_init(&out, 0);
	r = render(feed, screen, &page);
	if (screen->terminal && feed_note(feed)[0])
		strbuf_addf(&page, "\n%s\n", feed_note(feed));
	else if (!STRV_EQ(noted, feed_note(feed)) && feed_note(feed)[0])
		fprintf(stderr, "gpusonde %s: %s\n", screen->show->command, feed_note(feed));
	snprintf(noted, size, "%s", feed_note(feed));
	if (r == 0) {
		if (screen->terminal)
			add_redraw(&page, &out);
		r = put(screen->terminal ? &out : &page);
	}
	strbuf_done(&page);
	strbuf_done(&out);
	return r;
}

static int show_loop(struct feed *feed, struct screen *screen, double watch_s)
{
	char noted[400] = "";
	int r;

	if (screen->terminal) {
		static const char clear[] = "\033[H\033[2J";

		write_all(STDOUT_FILENO, clear, sizeof(clear) - 1);
	}
	do {
		r = show_once(feed, screen, noted, sizeof(noted));
		if (r == 0 && watch_s > 0)
			r = feed_wait(feed, (int64_t)(watch_s * NSEC_PER_SEC));
	} while (r == 0 && watch_s > 0);
	if (r < 0)
		fprintf(stderr, "gpusonde %s: %s\n", screen->show->command,
			feed_failure(feed) ? feed_failure(feed) : strerror(-r));
	else if (feed_failure(feed))
		fprintf(stderr, "gpusonde %s: %s\n", screen->show->command, feed_failure(feed));
	return r < 0 || feed_failure(feed) || screen->failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

int show_main(struct invocation *inv)
{
	_cleanup_(feed_freep) struct feed *feed = NULL;
	const char *watch = inv->flag[FLAG_WATCH];
	bool terminal = isatty(STDOUT_FILENO);
	struct screen screen = { .json = inv->flag[FLAG_JSON] };
	double watch_s = 0;
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(shows); i++)
		if (STRV_EQ(shows[i].command, inv->command->name))
			screen.show = &shows[i];
	if (watch && (parse_double(watch, &watch_s) < 0 || watch_s < WATCH_MIN_S || watch_s > WATCH_MAX_S)) {
		fprintf(stderr,
			"gpusonde %s: --watch cannot be \"%s\": it must be a number of seconds, %g to %g\n",
			inv->command->name, watch, WATCH_MIN_S, WATCH_MAX_S);
		return EXIT_USAGE;
	}
	screen.table.colour = wants_colour(terminal);
	screen.table.width = terminal ? terminal_width() : 0;
	screen.terminal = terminal && watch && !screen.json;
	r = feed_new(&inv->options, &feed);
	if (r < 0) {
		fprintf(stderr, "gpusonde %s: cannot start: %s\n", inv->command->name, strerror(-r));
		return EXIT_FAILURE;
	}
	return show_loop(feed, &screen, watch_s);
}
