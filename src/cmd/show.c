// SPDX-License-Identifier: Apache-2.0
/* gpusonde gpus, ps and snapshot: one document, as JSON or as tables. */
#include "cmd/cmd.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/text.h"
#include "cmd/output.h"
#include "cmd/show_fields.h"
#include "cmd/show_select.h"
#include "cmd/snapshot_client.h"
#include "model/snapshot.h"
#include "screen/window.h"
#include "view/json/json.h"
#include "view/snapshot/read.h"
#include "view/table/table.h"
#include "view/view.h"

#define WATCH_MIN_S 0.1
#define WATCH_MAX_S 86400.0

typedef int table_fn(const struct snapshot *snapshot, const struct table_options *options,
		     struct strbuf *out);

static const struct show {
	const char *command;
	const char *rows; /* the document's list that is shown; NULL: several */
	unsigned sections; /* of --json */
	table_fn *tables[3]; /* in this order */
} shows[] = {
	{ "gpus", "gpus", JSON_GPUS, { table_gpus } },
	{ "ps", "processes", JSON_PROCESSES, { table_processes } },
	{ "snapshot",
	  NULL,
	  JSON_GPUS | JSON_PROCESSES | JSON_NODE,
	  { table_node, table_gpus, table_processes } },
};

struct screen {
	const struct show *show;
	bool json;
	struct window *window; /* redraws in place; NULL: prints one after the other */
	char error[REASON_MAX]; /* why the newest document has no current data; "" if it has */
	struct table_options table;
	struct show_select select; /* of ps */
	struct show_fields fields; /* of gpus and ps */
	bool names_noted; /* that they are not known */
	bool claimants_noted; /* that there are some */
};

/* The program at the agent's socket may have another version. */
static bool is_complete(const json_t *document, unsigned sections)
{
	return json_is_object(document) &&
	       (!(sections & JSON_GPUS) || json_is_array(json_object_get(document, "gpus"))) &&
	       (!(sections & JSON_PROCESSES) || json_is_array(json_object_get(document, "processes"))) &&
	       (!(sections & JSON_NODE) || json_is_object(json_object_get(document, "node")));
}

/* A document that is too large is not understood. */
static int decode(const json_t *document, struct snapshot **ret_snapshot)
{
	int r = snapshot_read(document, ret_snapshot);

	return r == -E2BIG ? -EBADMSG : r;
}

static int render_tables(const struct screen *screen, const json_t *document, struct strbuf *out)
{
	_cleanup_(snapshot_read_freep) struct snapshot *snapshot = NULL;
	int r = decode(document, &snapshot);

	if (r == 0 && screen->select.by != GROUP_NONE)
		return table_groups(snapshot, screen->select.by, &screen->table, out);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(screen->show->tables) && screen->show->tables[i]; i++) {
		if (i > 0)
			strbuf_addc(out, '\n');
		r = screen->show->tables[i](snapshot, &screen->table, out);
	}
	return r;
}

/* Where nothing matches a name, names may not be known at all. */
static void note_names(struct screen *screen, const json_t *document)
{
	const struct selection *selection = &screen->select.processes;
	const json_t *agent = json_object_get(json_object_get(document, "node"), "agent");
	const json_t *up = json_object_get(json_object_get(agent, "source_up"), "files");

	if ((!selection->pod && !selection->container) || screen->names_noted ||
	    json_array_size(json_object_get(document, "processes")) > 0 ||
	    (json_is_number(up) && json_number_value(up) == 1))
		return;
	screen->names_noted = true;
	fprintf(stderr,
		"gpusonde ps: names of pods and containers are not known here, or not all: an agent "
		"reads them (gpusonde doctor says more); --pod takes a UID, --container an ID, too\n");
}

/* They are told apart, so that none of them is taken for the job's own, and none is hidden. */
static void note_claimants(struct screen *screen, const json_t *document)
{
	const char *job = screen->select.processes.job;
	uint32_t n = job && !screen->claimants_noted ? document_claimants(document, job) : 0;

	if (n == 0)
		return;
	screen->claimants_noted = true;
	fprintf(stderr,
		"gpusonde ps: %" PRIu32 " left out that only claim%s to be of job %.80s: --job " JOB_CLAIMED
		"%.80s shows them\n",
		n, n == 1 ? "s" : "", job, job);
}

/* --json of what was selected or added up. */
static int render_selected(const struct screen *screen, json_t *document, struct strbuf *out)
{
	_cleanup_(snapshot_read_freep) struct snapshot *snapshot = NULL;
	int r;

	if (screen->select.by == GROUP_NONE) {
		r = json_write(json_incref(document), 0, out);
	} else {
		r = decode(document, &snapshot);
		if (r == 0)
			r = json_groups(snapshot, screen->select.by, document, out);
	}
	strbuf_addc(out, '\n');
	return r;
}

/* Rows field by field: of what was added up, its groups. */
static int render_fields(const struct screen *screen, json_t *document, struct strbuf *out)
{
	json_t *groups = NULL;
	const json_t *rows = json_object_get(document, screen->show->rows);
	struct strbuf text;
	int r = 0;

	strbuf_init(&text, 0);
	if (screen->select.by != GROUP_NONE) {
		r = render_selected(screen, document, &text);
		groups = json_loadb(text.data, text.len, 0, NULL);
		rows = json_object_get(groups, "groups");
	}
	if (r == 0)
		r = show_fields_write(&screen->fields, json_is_true(json_object_get(document, "simulated")),
				      screen->select.by != GROUP_NONE, rows, &screen->table, out);
	json_decref(groups);
	strbuf_done(&text);
	return r;
}

static void remove_sections(json_t *document, unsigned sections)
{
	if (sections & JSON_NODE)
		json_object_del(document, "node");
	if (sections & JSON_GPUS)
		json_object_del(document, "gpus");
}

/* Removes rows from the document that are not wanted, and sorts the others. */
static int choose_rows(struct screen *screen, json_t *document)
{
	int r = 0;

	if (screen->select.any) {
		note_claimants(screen, document);
		document_select(document, &screen->select.processes);
	}
	if (screen->fields.any)
		r = show_fields_apply(&screen->fields, document, screen->show->rows,
				      screen->select.by == GROUP_NONE);
	if (screen->select.any)
		note_names(screen, document);
	return r;
}

/* The document is also parsed for --json, so that table and JSON have the same exit status. */
static int render(struct snapshot_client *client, struct screen *screen, struct strbuf *out)
{
	bool chosen = screen->select.any || screen->fields.any, writes = show_fields_writes(&screen->fields);
	bool decoded = screen->select.by != GROUP_NONE || !(screen->json || writes);
	unsigned shown = screen->show->sections, wanted = shown | (screen->select.any ? JSON_NODE : 0);
	json_t *document = NULL;
	const char *error;
	struct strbuf text;
	int r;

	if (decoded)
		wanted = JSON_GPUS | JSON_PROCESSES | JSON_NODE;
	strbuf_init(&text, 0);
	r = snapshot_client_get(client, wanted, &text);
	if (r == 0 && text.failed)
		r = -ENOMEM;
	if (r == 0)
		document = json_loadb(text.data, text.len, 0, NULL);
	if (r == 0 && !is_complete(document, wanted))
		r = -EBADMSG;
	if (r == 0 && chosen)
		r = choose_rows(screen, document);
	if (r == 0 && chosen && !decoded)
		remove_sections(document, ~shown);
	if (r == 0 && writes)
		r = render_fields(screen, document, out);
	else if (r == 0 && screen->json && chosen)
		r = render_selected(screen, document, out);
	else if (r == 0 && screen->json)
		strbuf_add(out, text.data, text.len);
	else if (r == 0)
		r = render_tables(screen, document, out);
	error = json_string_value(json_object_get(document, "error"));
	snprintf(screen->error, sizeof(screen->error), "%s", error ? error : "");
	json_decref(document);
	strbuf_done(&text);
	return r;
}

/* 1: the reader has closed the pipe, which is no failure. */
static int put(const struct strbuf *text)
{
	ssize_t n = text->failed ? -ENOMEM : write_all(STDOUT_FILENO, text->data, text->len);

	return n == -EPIPE ? 1 : n < 0 ? (int)n : 0;
}

/* The exit status for what --watch has shown last. */
static volatile sig_atomic_t shown_status = EXIT_FAILURE;

static void on_interrupt(_unused_ int signal)
{
	_exit(shown_status);
}

/* @noted: the last note about the source, which is printed once. */
static int show_once(struct snapshot_client *client, struct screen *screen, char *noted, size_t size)
{
	struct strbuf page;
	int r;

	strbuf_init(&page, 0);
	r = render(client, screen, &page);
	if (screen->window && snapshot_client_note(client)[0])
		strbuf_addf(&page, "\n%s\n", snapshot_client_note(client));
	else if (!STRV_EQ(noted, snapshot_client_note(client)) && snapshot_client_note(client)[0])
		fprintf(stderr, "gpusonde %s: %s\n", screen->show->command, snapshot_client_note(client));
	snprintf(noted, size, "%s", snapshot_client_note(client));
	if (r == 0) {
		shown_status = *screen->error ? EXIT_FAILURE : EXIT_SUCCESS;
		r = screen->window ? window_draw(screen->window, &page) : put(&page);
	}
	strbuf_done(&page);
	return r;
}

/*
 * Prints the cause of a failure. Returns EXIT_SUCCESS only if current data are shown; a node without GPU
 * included.
 */
static int report_result(const struct snapshot_client *client, const struct screen *screen, int r)
{
	const char *why = screen->error;
	struct strbuf clean;

	if (r == -EBADMSG)
		why = "the agent's answer is not understood: check that it has this command's version";
	else if (r < 0)
		why = snapshot_client_failure(client) ? snapshot_client_failure(client) : strerror(-r);
	if (!*why)
		return EXIT_SUCCESS;
	strbuf_init(&clean, 0);
	text_clean(&clean, why);
	fprintf(stderr, "gpusonde %s: %s\n", screen->show->command, clean.data);
	strbuf_done(&clean);
	return EXIT_FAILURE;
}

/* 1: no further page is wanted. */
static int wait_for_next(struct snapshot_client *client, struct screen *screen, int64_t ns)
{
	int64_t end_ns = clock_mono_ns() + ns;
	int r = 1;

	if (!screen->window)
		return snapshot_client_wait(client, ns, -1);
	while (r == 1) {
		enum window_event event;

		r = snapshot_client_wait(client, MAX(end_ns - clock_mono_ns(), INT64_C(0)),
					 window_fd(screen->window));
		event = r == 1 ? window_take(screen->window) : WINDOW_NONE;
		if (event == WINDOW_QUIT)
			return 1;
		screen->table.width = window_width(screen->window);
		if (event == WINDOW_RESIZED)
			return 0;
	}
	return r;
}

static int show_loop(struct snapshot_client *client, struct screen *screen, int64_t watch_ns)
{
	char noted[400] = "";
	int r;

	if (watch_ns > 0 && !screen->window)
		signal(SIGINT, on_interrupt);
	do {
		r = show_once(client, screen, noted, sizeof(noted));
		if (r == 0 && watch_ns > 0)
			r = wait_for_next(client, screen, watch_ns);
	} while (r == 0 && watch_ns > 0);
	return r;
}

/* --last; false: it was refused, with an error. */
static bool parse_last(const struct invocation *inv, unsigned *ret_last)
{
	const char *text = inv->flag[FLAG_LAST];
	int64_t ns = 0;

	if (!text)
		return true;
	if (!STRV_EQ(inv->command->name, "ps")) {
		fprintf(stderr, "gpusonde %s: --last is of processes: use gpusonde ps --last %s\n",
			inv->command->name, text);
		return false;
	}
	if (parse_duration_ns(text, &ns) == 0)
		for (unsigned i = 0; i < RECENTS; i++)
			if (ns == recent_seconds[i] * NSEC_PER_SEC)
				*ret_last = i + 1;
	if (*ret_last == 0)
		fprintf(stderr, "gpusonde ps: --last cannot be \"%.80s\": it must be 10s, 1m or 5m\n", text);
	return *ret_last > 0;
}

int show_main(struct invocation *inv)
{
	_cleanup_(snapshot_client_freep) struct snapshot_client *client = NULL;
	const char *watch = inv->flag[FLAG_WATCH];
	bool terminal = isatty(STDOUT_FILENO);
	struct screen screen = { .json = inv->flag[FLAG_JSON], .table = output_options(inv, STDOUT_FILENO) };
	int64_t watch_ns = 0;
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(shows); i++)
		if (STRV_EQ(shows[i].command, inv->command->name))
			screen.show = &shows[i];
	if (watch && parse_seconds_ns(watch, WATCH_MIN_S, WATCH_MAX_S, &watch_ns) < 0) {
		fprintf(stderr,
			"gpusonde %s: --watch cannot be \"%s\": it must be a number of seconds, %g to %g, "
			"or a duration such as 500ms or 1m\n",
			inv->command->name, watch, WATCH_MIN_S, WATCH_MAX_S);
		return EXIT_USAGE;
	}
	if (!parse_last(inv, &screen.table.last) || !show_select_parse(inv, &screen.select) ||
	    !show_fields_parse(inv, &screen.fields))
		return EXIT_USAGE;
	screen.table.selected = screen.select.some || screen.fields.filter.names.n > 0;
	r = snapshot_client_new(&inv->options, &client);
	if (r < 0) {
		fprintf(stderr, "gpusonde %s: cannot start: %s\n", inv->command->name, strerror(-r));
		return EXIT_FAILURE;
	}
	if (terminal && watch && !screen.json && window_open(screen.table.colour, &screen.window) < 0)
		screen.window = NULL; /* then one page after the other */
	if (screen.window) {
		screen.table.colour = true; /* as the terminal has them */
		screen.table.width = window_width(screen.window);
	}
	r = show_loop(client, &screen, watch_ns);
	window_close(screen.window);
	if (r == -EINVAL)
		return EXIT_USAGE; /* a field's name; it is said */
	return report_result(client, &screen, r);
}
