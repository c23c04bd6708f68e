// SPDX-License-Identifier: Apache-2.0
/* What the document alone tells of a process, or of the processes of a job. */
#include "cmd/explain/explain.h"

#include <inttypes.h>
#include <stdio.h>

#include "cmd/top/columns.h"

static const double quiet_seconds = 60;

/* One process has a row for each GPU or instance that it is on. */
static bool is_first_row(const json_t *list, size_t at)
{
	json_int_t pid = json_integer_value(json_object_get(json_array_get(list, at), "pid"));

	for (size_t i = 0; i < at; i++)
		if (json_integer_value(json_object_get(json_array_get(list, i), "pid")) == pid)
			return false;
	return true;
}

static void where_text(const json_t *row, char *text, size_t size)
{
	const json_t *gpu = json_object_get(row, "gpu"), *gi = json_object_get(row, "gi");

	if (!json_is_integer(gpu))
		snprintf(text, size, "On a device that is not known");
	else if (json_is_integer(gi))
		snprintf(text, size,
			 "On MIG instance %" JSON_INTEGER_FORMAT "/%" JSON_INTEGER_FORMAT
			 " of GPU %" JSON_INTEGER_FORMAT,
			 json_integer_value(gi), json_integer_value(json_object_get(row, "ci")),
			 json_integer_value(gpu));
	else
		snprintf(text, size, "On GPU %" JSON_INTEGER_FORMAT, json_integer_value(gpu));
}

/* Over the longest window that was observed, of which there are several. */
static void say_recent(struct explain *explain, json_t *subject, const json_t *row)
{
	const json_t *recent = json_object_get(row, "recent");
	const json_t *last = json_array_get(recent, json_array_size(recent) - 1);
	double share, seconds, bytes = 0;
	bool quiet;
	char memory[FIGURE_TEXT];
	json_t *figures;

	if (!figure_at(last, "utilization_ratio", &share) || !figure_at(last, "seconds", &seconds))
		return;
	figure_at(row, "memory_bytes", &bytes);
	figure_bytes(row, "memory_bytes", memory);
	quiet = share == 0 && seconds >= quiet_seconds && bytes > 0;
	figures = json_object();
	figure_copy(figures, last, "utilization_ratio");
	figure_copy(figures, last, "seconds");
	if (quiet)
		explain_say(explain, subject, TOPIC_WASTE, figures,
			    analysis_rules[FINDING_MEMORY_HELD].remedy,
			    "It has used none of that GPU's time in %.0f s, and holds %s", seconds, memory);
	else
		explain_say(explain, subject, TOPIC_USE, figures, NULL,
			    "Over the last %.0f s it had %.0f %% of its SMs' time", seconds, 100 * share);
}

/* Of whom else the GPU is. */
static void say_neighbours(struct explain *explain, json_t *subject, const json_t *row)
{
	const json_t *other, *pid = json_object_get(row, "pid");
	json_t *figures;
	double v, share = 0;
	bool known = false;
	size_t i, n = 0;

	json_array_foreach(json_object_get(explain->document, "processes"), i, other) {
		if (json_equal(json_object_get(other, "pid"), pid) || !subject_is_on(other, row))
			continue;
		n++;
		if (figure_at(other, "utilization_ratio", &v)) {
			share += v;
			known = true;
		}
	}
	if (n == 0)
		return;
	figures = json_pack("{s:I}", "processes", (json_int_t)n);
	if (known)
		json_object_set_new(figures, "utilization_ratio", json_real(share));
	if (known)
		explain_say(explain, subject, TOPIC_USERS, figures, NULL,
			    "It shares it with %zu other process%s, which have %.0f %% of its SMs", n,
			    n == 1 ? "" : "es", 100 * share);
	else
		explain_say(explain, subject, TOPIC_USERS, figures, NULL,
			    "It shares it with %zu other process%s", n, n == 1 ? "" : "es");
}

static void say_rows(struct explain *explain, json_t *subject, const json_t *pid)
{
	static const char *const lists[] = { "processes", "traced" };
	const json_t *row;
	char where[80];
	size_t k;

	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		json_array_foreach(json_object_get(explain->document, lists[i]), k, row) {
			if (!json_equal(json_object_get(row, "pid"), pid))
				continue;
			where_text(row, where, sizeof(where));
			explain_figures(explain, subject, ABOUT_PROCESS, row, where);
			if (i > 0)
				continue;
			say_recent(explain, subject, row);
			say_neighbours(explain, subject, row);
		}
}

static void say_whose(struct explain *explain, json_t *subject, const json_t *row)
{
	static const struct {
		const char *words, *path;
	} owners[] = { { "namespace", "namespace" }, { "pod", "pod" },
		       { "container", "container" }, { "job", "job" },
		       { "unit", "unit" },           { "run", "run" } };
	struct strbuf text;

	strbuf_init(&text, 0);
	for (size_t i = 0; i < ARRAY_SIZE(owners); i++)
		if (*text_member(row, owners[i].path))
			strbuf_addf(&text, "%s%s %.80s", text.len > 0 ? ", " : "", owners[i].words,
				    text_member(row, owners[i].path));
	if (text.len > 0)
		explain_say(explain, subject, TOPIC_USERS, NULL, NULL, "It is of %s", text.data);
	strbuf_done(&text);
}

void explain_process(struct explain *explain, const json_t *row)
{
	const json_t *pid = json_object_get(row, "pid");
	json_t *subject = explain_begin(explain, ABOUT_PROCESS, "Process %" JSON_INTEGER_FORMAT " (%.60s)",
					json_integer_value(pid), text_member(row, "comm"));

	if (!subject)
		return;
	json_object_set_new(subject, "pid", json_integer(json_integer_value(pid)));
	say_whose(explain, subject, row);
	say_rows(explain, subject, pid);
	explain_findings(explain, subject, "", (uint32_t)json_integer_value(pid));
}

/* What its processes use, added up; a sum that lacks one of them is none. */
void explain_job(struct explain *explain)
{
	static const char *const members[] = { "utilization_ratio", "memory_bytes" };
	const json_t *list = json_object_get(explain->document, "processes"), *row;
	double sums[ARRAY_SIZE(members)] = { 0 }, v;
	bool known[ARRAY_SIZE(members)] = { true, true };
	json_t *subject = explain_begin(explain, ABOUT_JOB, "Job %.80s", explain->name), *sum = json_object();
	size_t i, processes = 0;
	char words[80];

	json_array_foreach(list, i, row) {
		if (!subject_has_process(explain, row))
			continue;
		processes += is_first_row(list, i);
		for (size_t k = 0; k < ARRAY_SIZE(members); k++) {
			known[k] &= figure_at(row, members[k], &v);
			sums[k] += known[k] ? v : 0;
		}
	}
	for (size_t k = 0; k < ARRAY_SIZE(members); k++)
		if (known[k] && processes > 0)
			json_object_set_new(sum, members[k], json_real(sums[k]));
	snprintf(words, sizeof(words), "Its %zu process%s (100 %% of SMs is one GPU)", processes,
		 processes == 1 ? "" : "es");
	if (subject) {
		json_object_set_new(subject, "job", json_string(explain->name));
		explain_figures(explain, subject, ABOUT_JOB, sum, words);
	}
	json_decref(sum);
}
