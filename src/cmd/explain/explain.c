// SPDX-License-Identifier: Apache-2.0
#include "cmd/explain/explain.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/output.h"
#include "cmd/snapshot_client.h"
#include "cmd/top/columns.h"
#include "view/json/json.h"
#include "view/snapshot/read.h"
#include "view/table/table.h"

enum { WHY_TEXT = 400, PROCESSES_MAX = 16 };

/* What is explained, and what it was made from. */
struct run {
	struct invocation *inv;
	struct explain explain;
	json_t *findings;
	struct snapshot *snapshot;
	bool from_agent;
	char note[WHY_TEXT]; /* on where the data come from; "" */
	char no_findings[WHY_TEXT]; /* why nothing is analysed; "" */
};

static int say_failure(const struct run *run, const char *why)
{
	struct strbuf lines;

	strbuf_init(&lines, 0);
	text_clean(&lines, why);
	put_errors(run->inv, &lines);
	strbuf_done(&lines);
	return EXIT_FAILURE;
}

/* ---- what is known ---- */

/* NULL, and why: there is no agent, or it analyses nothing. */
static void get_findings(struct run *run)
{
	unsigned status = 0;
	char why[300];
	struct strbuf text;
	int r;

	strbuf_init(&text, 0);
	r = agent_request(&run->inv->options, "GET", "/api/v1/findings", &status, &text);
	if (r == 0 && status == 200)
		run->findings = json_loadb(text.data, text.len, 0, NULL);
	if (r < 0) {
		agent_explain(&run->inv->options, r, why, sizeof(why));
		snprintf(run->no_findings, sizeof(run->no_findings), "%s", why);
	} else if (status == 404) {
		snprintf(run->no_findings, sizeof(run->no_findings),
			 "the agent does not analyse what programs do: set trace.enabled and trace.analysis "
			 "(docs/analysis.md)");
	} else if (!json_is_array(json_object_get(run->findings, "findings"))) {
		snprintf(run->no_findings, sizeof(run->no_findings),
			 "the agent's answer is not understood: check that it has this command's version");
	}
	if (run->no_findings[0]) {
		json_decref(run->findings);
		run->findings = NULL;
	}
	strbuf_done(&text);
}

/* -EBADMSG: it is not understood. */
static int get_document(struct run *run, char *ret_why, size_t size)
{
	_cleanup_(snapshot_client_freep) struct snapshot_client *client = NULL;
	int r = snapshot_client_new(&run->inv->options, &client);

	if (r < 0) {
		snprintf(ret_why, size, "%s", strerror(-r));
		return r;
	}
	r = snapshot_client_read(client, JSON_GPUS | JSON_PROCESSES | JSON_NODE, &run->explain.document,
				 &run->snapshot, ret_why, size);
	run->from_agent = snapshot_client_from_agent(client);
	snprintf(run->note, sizeof(run->note), "%s", snapshot_client_note(client));
	return r;
}

/* ---- what is said ---- */

static bool is_told(const json_t *subjects, const json_t *pid)
{
	const json_t *subject;
	size_t i;

	json_array_foreach(subjects, i, subject)
		if (json_equal(json_object_get(subject, "pid"), pid))
			return true;
	return false;
}

/* Returns how many processes there was no room for. */
static size_t explain_processes(struct explain *explain)
{
	static const char *const lists[] = { "processes", "traced" };
	const json_t *row;
	size_t told = 0, left_out = 0, k;

	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		json_array_foreach(json_object_get(explain->document, lists[i]), k, row) {
			if (!subject_has_process(explain, row) ||
			    is_told(explain->subjects, json_object_get(row, "pid")))
				continue;
			if (told == PROCESSES_MAX) {
				left_out++;
				continue;
			}
			explain_process(explain, row);
			told++;
		}
	return left_out;
}

static size_t explain_all(struct explain *explain)
{
	const json_t *gpu;
	size_t i, left_out;

	if (explain->about == ABOUT_JOB)
		explain_job(explain);
	left_out = explain_processes(explain);
	json_array_foreach(json_object_get(explain->document, "gpus"), i, gpu)
		if (subject_has_gpu(explain, gpu))
			explain_gpu(explain, gpu);
	return left_out;
}

/* Rules that could not be judged: that these found nothing says nothing. */
static json_t *not_judged(const struct run *run)
{
	json_t *list = json_array(), *rule;
	size_t i;

	json_array_foreach(json_object_get(run->findings, "rules"), i, rule)
		if (json_is_false(json_object_get(rule, "judged")))
			json_array_append(list, json_object_get(rule, "finding"));
	return list;
}

static int write_json(const struct run *run, size_t left_out, struct strbuf *out)
{
	const json_t *document = run->explain.document;
	json_t *answer = json_object();
	int r;

	json_object_set_new(answer, "schema", json_integer(1));
	json_object_set(answer, "time", json_object_get(document, "time"));
	json_object_set(answer, "simulated", json_object_get(document, "simulated"));
	json_object_set(answer, "error", json_object_get(document, "error"));
	json_object_set_new(answer, "from_agent", json_boolean(run->from_agent));
	json_object_set_new(answer, "analysed", json_boolean(run->findings != NULL));
	json_object_set_new(answer, "why_not_analysed",
			    run->no_findings[0] ? json_text(run->no_findings) : json_null());
	json_object_set_new(answer, "rules_not_judged", not_judged(run));
	json_object_set(answer, "subjects", run->explain.subjects);
	json_object_set_new(answer, "left_out", json_integer((json_int_t)left_out));
	r = json_write(answer, 0, out);
	strbuf_addc(out, '\n');
	return r;
}

static void write_limits(const struct run *run, size_t left_out, const struct table_options *options,
			 struct strbuf *out)
{
	json_t *rules = not_judged(run);
	struct strbuf line;

	strbuf_init(&line, 0);
	if (!run->findings)
		strbuf_addf(&line,
			    "What slows programs down in their own calls is not known, only what the driver "
			    "says: %s",
			    run->no_findings);
	else if (json_array_size(rules) > 0)
		strbuf_addf(&line,
			    "%zu of %zu rules of the analysis could not be judged for want of evidence "
			    "(--findings --json says which, and of what)",
			    json_array_size(rules), json_array_size(json_object_get(run->findings, "rules")));
	if (line.len > 0) {
		strbuf_addc(out, '\n');
		table_line(options, out, COLOUR_DIM, line.data);
	}
	if (left_out > 0) {
		strbuf_reset(&line);
		strbuf_addf(&line, "%zu more processes are not told of: name one of them", left_out);
		table_line(options, out, COLOUR_WARN, line.data);
	}
	strbuf_done(&line);
	json_decref(rules);
}

static int write_text(const struct run *run, size_t left_out, struct strbuf *out)
{
	struct table_options options = output_options(run->inv, STDOUT_FILENO);
	const char *error = text_member(run->explain.document, "error");
	int r;

	if (json_is_true(json_object_get(run->explain.document, "simulated")))
		table_line(&options, out, COLOUR_BAD, TABLE_SIMULATED);
	if (*error)
		table_line(&options, out, COLOUR_BAD, error);
	r = explain_text(run->explain.subjects, &options, out);
	write_limits(run, left_out, &options, out);
	return r;
}

/* "gpu", "3" is "gpu 3"; NULL: there is none. -ENOMEM. */
static int join_operands(const struct invocation *inv, char **ret_operand)
{
	struct strbuf text;

	*ret_operand = NULL;
	if (inv->operands_n == 0)
		return 0;
	strbuf_init(&text, 0);
	for (int i = 0; i < inv->operands_n; i++)
		strbuf_addf(&text, "%s%s", i > 0 ? " " : "", inv->operands[i]);
	*ret_operand = strbuf_take(&text);
	return *ret_operand ? 0 : -ENOMEM;
}

static int explain_and_write(struct run *run)
{
	_cleanup_free_ char *operand = NULL;
	bool json = run->inv->flag[FLAG_JSON];
	char why[WHY_TEXT];
	struct strbuf out;
	size_t left_out;
	int r = join_operands(run->inv, &operand);

	if (r == 0)
		r = get_document(run, why, sizeof(why));
	else
		snprintf(why, sizeof(why), "%s", strerror(-r));
	if (run->note[0] && !json)
		say_failure(run, run->note);
	if (r < 0)
		return say_failure(run, why);
	run->explain.s = run->snapshot;
	run->explain.findings = run->findings;
	r = subject_find(&run->explain, operand, why, sizeof(why));
	if (r < 0) {
		const char *error = text_member(run->explain.document, "error");

		/* It cannot be found where nothing is known. */
		say_failure(run, r == -ESRCH && *error ? error : why);
		return r == -ENOTUNIQ ? EXIT_USAGE : EXIT_FAILURE;
	}
	strbuf_init(&out, 0);
	left_out = explain_all(&run->explain);
	r = json ? write_json(run, left_out, &out) : write_text(run, left_out, &out);
	if (r < 0 || run->explain.failed)
		r = say_failure(run, strerror(ENOMEM));
	else
		r = put_stdout(&out);
	strbuf_done(&out);
	return json_is_string(json_object_get(run->explain.document, "error")) ? EXIT_FAILURE : r;
}

/* --findings: the page as it is, or all of them as sentences. */
static int show_findings(struct run *run)
{
	struct table_options options = output_options(run->inv, STDOUT_FILENO);
	struct strbuf out;
	int r;

	if (!run->findings)
		return say_failure(run, run->no_findings);
	run->explain.findings = run->findings;
	strbuf_init(&out, 0);
	if (run->inv->flag[FLAG_JSON]) {
		r = json_write(json_incref(run->findings), 0, &out);
		strbuf_addc(&out, '\n');
	} else {
		explain_every_finding(&run->explain);
		r = explain_text(run->explain.subjects, &options, &out);
		write_limits(run, 0, &options, &out);
	}
	r = r < 0 || run->explain.failed ? say_failure(run, strerror(ENOMEM)) : put_stdout(&out);
	strbuf_done(&out);
	return r;
}

int explain_main(struct invocation *inv)
{
	struct run run = { .inv = inv, .explain.subjects = json_array() };
	int r;

	if (inv->flag[FLAG_FINDINGS] && inv->operands_n > 0) {
		say_failure(&run,
			    "--findings is of the whole machine: leave out what it is about, or the flag");
		json_decref(run.explain.subjects);
		return EXIT_USAGE;
	}
	if (inv->operands_n > 1 && !subject_is_kind(inv->operands[0])) {
		say_failure(&run,
			    "one GPU, process or job is explained at a time: gpu 3, pid 4711, job 4711");
		json_decref(run.explain.subjects);
		return EXIT_USAGE;
	}
	get_findings(&run);
	r = inv->flag[FLAG_FINDINGS] ? show_findings(&run) : explain_and_write(&run);
	snapshot_read_free(run.snapshot);
	json_decref(run.findings);
	json_decref(run.explain.document);
	json_decref(run.explain.subjects);
	return r;
}
