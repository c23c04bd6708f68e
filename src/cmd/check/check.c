// SPDX-License-Identifier: Apache-2.0
#include "cmd/check/check.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cmd/cmd.h"
#include "cmd/snapshot_client.h"
#include "view/json/json.h"
#include "view/snapshot/read.h"
#include "view/table/table.h"
#include "view/view.h"

enum { GPUS_EXPECTED_MAX = 1024, PROBLEM_TEXT = 79 };

/* Who asks: how is it told? */
enum asker { ASKER_NAGIOS, ASKER_PROBLEM_DETECTOR };

struct check_run {
	struct invocation *inv;
	enum asker asker;
	bool wanted[CHECK_CONDITIONS];
	struct check_subject subject;
	struct verdict verdicts[CHECK_CONDITIONS]; /* of those that are wanted */
	enum check_state state; /* the worst */
	const struct verdict *worst; /* the first one of that state; NULL: all is well */
};

/* In no case a state of the node. */
static int refuse_check(const struct check_run *run, const char *why)
{
	struct strbuf line;

	strbuf_init(&line, 0);
	text_clean(&line, why);
	put_errors(run->inv, &line);
	strbuf_done(&line);
	return CHECK_UNKNOWN;
}

static int choose_conditions(struct check_run *run)
{
	char why[400];

	for (int i = 0; i < run->inv->operands_n; i++) {
		unsigned c = 0;
		int n;

		while (c < CHECK_CONDITIONS && !STRV_EQ(check_name(c), run->inv->operands[i]))
			c++;
		if (c < CHECK_CONDITIONS) {
			run->wanted[c] = true;
			continue;
		}
		n = snprintf(why, sizeof(why), "no condition %.40s; there are:", run->inv->operands[i]);
		for (c = 0; c < CHECK_CONDITIONS; c++)
			n += snprintf(why + n, sizeof(why) - (size_t)n, " %s", check_name(c));
		return refuse_check(run, why);
	}
	for (unsigned c = 0; run->inv->operands_n == 0 && c < CHECK_CONDITIONS; c++)
		run->wanted[c] = true;
	return 0;
}

static int parse(struct check_run *run)
{
	const char *gpus = run->inv->flag[FLAG_EXPECTED], *asker = run->inv->flag[FLAG_ASKER];
	uint64_t n;

	if (asker && STRV_EQ(asker, "node-problem-detector"))
		run->asker = ASKER_PROBLEM_DETECTOR;
	else if (asker && !STRV_EQ(asker, "nagios"))
		return refuse_check(run, "--for is nagios (Icinga, too) or node-problem-detector");
	if (gpus) {
		if (parse_u64(gpus, &n) < 0 || n == 0 || n > GPUS_EXPECTED_MAX)
			return refuse_check(run, "--gpus is a number of GPUs, from 1 to 1024");
		run->subject.gpus_expected = (unsigned)n;
	}
	return choose_conditions(run);
}

static void judge_all(struct check_run *run)
{
	for (unsigned c = 0; c < CHECK_CONDITIONS; c++) {
		if (!run->wanted[c])
			continue;
		check_judge(&run->subject, c, &run->verdicts[c]);
		run->state = check_worse(run->state, run->verdicts[c].state);
	}
	for (unsigned c = 0; c < CHECK_CONDITIONS && !run->worst; c++) {
		if (run->wanted[c] && run->state != CHECK_OK && run->verdicts[c].state == run->state)
			run->worst = &run->verdicts[c];
	}
}

/* What Nagios separates figures by has no place in a text. */
static void add_clean(struct strbuf *out, const char *text)
{
	struct strbuf clean;

	strbuf_init(&clean, 0);
	text_clean(&clean, text);
	for (const char *c = clean.data; c && *c; c++)
		strbuf_addc(out, *c == '|' ? '/' : *c);
	strbuf_done(&clean);
}

static void add_summary(const struct check_run *run, struct strbuf *out)
{
	unsigned gpus = 0, n = 0;

	for (uint32_t i = 0; run->subject.s && i < run->subject.s->entities_n; i++)
		gpus += run->subject.s->entities[i].id.parent == READING_NONE;
	for (unsigned c = 0; c < CHECK_CONDITIONS; c++)
		n += run->wanted[c];
	if (run->subject.s && run->subject.s->simulated)
		strbuf_adds(out, "SIMULATED, ");
	if (run->worst)
		add_clean(out, run->worst->text.data);
	else
		strbuf_addf(out, "%u GPU%s, %u condition%s hold%s", gpus, gpus == 1 ? "" : "s", n,
			    n == 1 ? "" : "s", n == 1 ? "s" : "");
}

static void write_nagios(const struct check_run *run, struct strbuf *out)
{
	struct strbuf figures;

	strbuf_init(&figures, 0);
	strbuf_addf(out, "GPU %s - ", check_state_name(run->state));
	add_summary(run, out);
	if (run->subject.s)
		check_figures(run->subject.s, &figures);
	if (figures.len > 0)
		strbuf_addf(out, " | %s", figures.data);
	strbuf_addc(out, '\n');
	for (unsigned c = 0; c < CHECK_CONDITIONS; c++) {
		if (!run->wanted[c])
			continue;
		strbuf_addf(out, "%s %s: ", check_state_name(run->verdicts[c].state), check_name(c));
		add_clean(out, run->verdicts[c].text.data);
		strbuf_addc(out, '\n');
	}
	strbuf_done(&figures);
}

/* One line, of as many bytes as the detector keeps. */
static void write_problem(const struct check_run *run, struct strbuf *out)
{
	struct strbuf line;
	size_t n = 0, next;

	strbuf_init(&line, 0);
	add_summary(run, &line);
	while (n < line.len && (next = utf8_length(line.data + n)) > 0 && n + next <= PROBLEM_TEXT)
		n += next;
	strbuf_add(out, line.data, n);
	strbuf_addc(out, '\n');
	strbuf_done(&line);
}

static int write_json(const struct check_run *run, struct strbuf *out)
{
	json_t *answer = json_object(), *list = json_array();
	int r;

	json_object_set_new(answer, "schema", json_integer(1));
	json_object_set_new(answer, "state", json_string(check_state_name(run->state)));
	json_object_set_new(answer, "simulated",
			    run->subject.s ? json_boolean(run->subject.s->simulated) : json_null());
	for (unsigned c = 0; c < CHECK_CONDITIONS; c++) {
		json_t *one = json_object();

		if (!run->wanted[c]) {
			json_decref(one);
			continue;
		}
		json_object_set_new(one, "condition", json_string(check_name(c)));
		json_object_set_new(one, "state", json_string(check_state_name(run->verdicts[c].state)));
		json_object_set_new(one, "text", json_text(run->verdicts[c].text.data));
		json_array_append_new(list, one);
	}
	json_object_set_new(answer, "conditions", list);
	r = json_write(answer, 0, out);
	strbuf_addc(out, '\n');
	return r;
}

/* The problem detector knows problems (1) and what is unknown (2). A warning is no problem of a node. */
static int status_of(const struct check_run *run)
{
	static const int of_problem[] = {
		[CHECK_OK] = 0, [CHECK_WARNING] = 0, [CHECK_CRITICAL] = 1, [CHECK_UNKNOWN] = 2
	};

	return run->asker == ASKER_PROBLEM_DETECTOR ? of_problem[run->state] : (int)run->state;
}

static int check(struct check_run *run)
{
	struct strbuf out;
	int r = 0;

	judge_all(run);
	strbuf_init(&out, 0);
	if (run->inv->flag[FLAG_JSON])
		r = write_json(run, &out);
	else if (run->asker == ASKER_PROBLEM_DETECTOR)
		write_problem(run, &out);
	else
		write_nagios(run, &out);
	if (r < 0 || out.failed)
		r = refuse_check(run, strerror(ENOMEM));
	else
		r = put_stdout(&out) == EXIT_SUCCESS ? status_of(run) : CHECK_UNKNOWN;
	strbuf_done(&out);
	for (unsigned c = 0; c < CHECK_CONDITIONS; c++)
		strbuf_done(&run->verdicts[c].text);
	return r;
}

int check_main(struct invocation *inv)
{
	_cleanup_(snapshot_client_freep) struct snapshot_client *client = NULL;
	_cleanup_(snapshot_read_freep) struct snapshot *snapshot = NULL;
	struct check_run run = { .inv = inv, .subject = { .no_agent = "", .no_snapshot = "" } };
	char why[400];
	int r = parse(&run);

	if (r != 0)
		return r;
	r = snapshot_client_new(&inv->options, &client);
	if (r == 0)
		r = snapshot_client_read(client, JSON_GPUS | JSON_NODE, NULL, &snapshot, why, sizeof(why));
	else
		snprintf(why, sizeof(why), "%s", strerror(-r));
	run.subject.s = snapshot;
	run.subject.no_snapshot = r < 0 ? why : "";
	if (client && !snapshot_client_from_agent(client))
		run.subject.no_agent = snapshot_client_note(client);
	return check(&run);
}
