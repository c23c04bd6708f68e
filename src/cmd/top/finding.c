// SPDX-License-Identifier: Apache-2.0
#include "cmd/top/finding.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cmd/top/draw.h"
#include "cmd/top/lines.h"
#include "view/findings.h"
#include "view/number.h"

enum { DATE_LENGTH = 10, CLOCK_LENGTH = 8 };

static const json_t *findings_of(const struct sample *sample)
{
	return json_object_get(sample->pages[PAGE_FINDINGS], "findings");
}

static uint64_t id_of(const struct sample *sample, const json_t *finding)
{
	return row_id(&(struct row){ .sample = sample, .object = finding });
}

static json_int_t pid_of(const json_t *finding)
{
	return json_integer_value(json_object_get(finding, "pid"));
}

/* ---- which one ---- */

void finding_open(struct top *top, const struct sample *sample, const json_t *finding)
{
	struct row row;

	if (top->mode != MODE_FINDING) {
		top->before_finding = top->mode == MODE_PROCESS ? MODE_PROCESS : MODE_TABLE;
		if (top->mode != MODE_PROCESS)
			top->process = (struct chosen_process){ 0 };
	}
	/* A process's own screen stays on the device that was chosen. */
	if (top->process.pid != (uint32_t)pid_of(finding)) {
		top->process = (struct chosen_process){ 0 };
		if (top_process_row(sample, (uint32_t)pid_of(finding), text_member(finding, "device"), &row))
			top_choose_process(top, &row);
	}
	top->finding = id_of(sample, finding);
	top->mode = MODE_FINDING;
	top->process_scroll = 0;
}

/* NULL: there are no findings there, or it is not among them any more. */
static const json_t *shown_finding(const struct top *top, const struct sample **ret_sample)
{
	for (uint32_t i = 0; top->sample && i < sample_parts(top->sample); i++) {
		const struct sample *part = sample_part(top->sample, i);
		json_t *one;
		size_t k;

		if (!part)
			continue;
		json_array_foreach(findings_of(part), k, one)
			if (id_of(part, one) == top->finding) {
				*ret_sample = part;
				return one;
			}
	}
	return NULL;
}

bool finding_open_of_process(struct top *top)
{
	const json_t *found = NULL;
	struct row row;
	json_t *one;
	size_t i;

	if (!top_find_process(top, &row))
		return false;
	json_array_foreach(findings_of(row.sample), i, one)
		if (pid_of(one) == (json_int_t)top->process.pid &&
		    (!found || (json_is_true(json_object_get(one, "active")) &&
				!json_is_true(json_object_get(found, "active")))))
			found = one;
	if (found)
		finding_open(top, row.sample, found);
	return found;
}

void finding_open_next(struct top *top)
{
	const struct sample *sample;
	const json_t *shown = shown_finding(top, &sample), *next = NULL, *list;
	size_t n, at = 0;

	if (!shown)
		return;
	list = findings_of(sample);
	n = json_array_size(list);
	while (at < n && json_array_get(list, at) != shown)
		at++;
	for (size_t i = 1; i < n && !next; i++) {
		const json_t *one = json_array_get(list, (at + i) % n);

		if (top->before_finding != MODE_PROCESS || pid_of(one) == pid_of(shown))
			next = one;
	}
	if (next)
		finding_open(top, sample, next);
	else
		top_say(top, "that is the only one%s",
			top->before_finding == MODE_PROCESS ? " of this process" : "");
}

/* ---- what it says ---- */

/* Joined by commas; "" for an empty list. */
static void words_text(const json_t *list, char *text, size_t size)
{
	json_t *word;
	size_t i, used = 0;

	text[0] = '\0';
	json_array_foreach(list, i, word)
		if (json_is_string(word) && used < size)
			used += (size_t)snprintf(text + used, size - used, "%s%s", i > 0 ? ", " : "",
						 json_string_value(word));
}

/* In UTC, as tables have times. */
static void add_time(const json_t *finding, int width, struct lines *lines)
{
	const json_t *place = json_object_get(finding, "timeline");
	const char *begin = text_member(place, "begin");
	double seconds = (json_number_value(json_object_get(place, "end_ns")) -
			  json_number_value(json_object_get(place, "begin_ns"))) *
			 1e-9;
	char length[DURATION_TEXT], text[120];

	duration_text(seconds, length);
	if (strlen(begin) > DATE_LENGTH + CLOCK_LENGTH)
		snprintf(text, sizeof(text), "%.*s %.*s UTC, for %s", DATE_LENGTH, begin, CLOCK_LENGTH,
			 begin + DATE_LENGTH + 1, length);
	else
		snprintf(text, sizeof(text), "not known; for %s", length);
	say_wrapped(lines, ROLE_TEXT, width, "Since", text);
}

static void add_sureness(const json_t *finding, int width, struct lines *lines)
{
	char words[300], text[400];

	words_text(json_object_get(finding, "surer_with"), words, sizeof(words));
	snprintf(text, sizeof(text), "%.0f %%%s%s",
		 json_number_value(json_object_get(finding, "confidence")) * 100,
		 words[0] ? "; it would be surer with: " : "", words);
	say_wrapped(lines, ROLE_TEXT, width, "Confidence", text);
}

/* A GPU by its number, where the node has it. */
static void gpu_text(const struct sample *sample, const char *device, char *text, size_t size)
{
	const struct snapshot *s = sample->snapshot;

	snprintf(text, size, "%s", device);
	for (uint32_t i = 0; s && i < s->entities_n; i++)
		if (STRV_EQ(s->entities[i].id.uuid, device))
			snprintf(text, size, "GPU %" PRIu32 " (%s)", s->entities[i].id.index,
				 s->entities[i].id.name);
}

/* What it is about: the processes, GPUs, communicators that it names. */
static void add_subjects(const struct top *top, const struct sample *sample, const json_t *finding, int width,
			 struct lines *lines)
{
	char text[256];

	if (pid_of(finding) > 0) {
		snprintf(text, sizeof(text), "%" JSON_INTEGER_FORMAT "%s%s%s%s", pid_of(finding),
			 top->process.comm[0] ? " (" : "", top->process.comm,
			 top->process.comm[0] ? "), Enter: its own screen" : ", on no GPU now",
			 sample->host[0] ? ", there" : "");
		say_wrapped(lines, ROLE_ACCENT, width, "Process", text);
	}
	if (*text_member(finding, "device")) {
		gpu_text(sample, text_member(finding, "device"), text, sizeof(text));
		say_wrapped(lines, ROLE_ACCENT, width, "GPU", text);
	}
	if (*text_member(finding, "subject"))
		say_wrapped(lines, ROLE_ACCENT, width, "Of", text_member(finding, "subject"));
	if (*text_member(finding, "communicator"))
		say_wrapped(lines, ROLE_ACCENT, width, "Communicator", text_member(finding, "communicator"));
	if (*text_member(finding, "node"))
		say_wrapped(lines, ROLE_TEXT, width, "Node", text_member(finding, "node"));
}

static void add_evidence(const json_t *finding, struct lines *lines)
{
	json_t *evidence = json_object_get(finding, "evidence"), *number;
	const char *name;

	if (json_object_size(evidence) > 0)
		say_line(lines, ROLE_HEAD, "Evidence");
	json_object_foreach(evidence, name, number) {
		struct finding_value value = finding_value_of(name, json_number_value(number));
		char text[FINDING_VALUE_TEXT] = "-";

		if (json_is_number(number))
			finding_value_text(&value, text);
		say_line(lines, ROLE_TEXT, "  %-34.80s %14s", name, text);
	}
}

static const char *title_of(const struct sample *sample, json_int_t id)
{
	json_t *one;
	size_t i;

	json_array_foreach(findings_of(sample), i, one)
		if (json_integer_value(json_object_get(one, "id")) == id)
			return text_member(one, "title");
	return "-";
}

/* What explains it, and what it explains. */
static void add_relations(const struct sample *sample, const json_t *finding, int width, struct lines *lines)
{
	json_int_t cause = json_integer_value(json_object_get(finding, "caused_by"));
	json_t *symptom;
	size_t i;

	if (cause > 0)
		say_wrapped(lines, ROLE_WARN, width, "Caused by", title_of(sample, cause));
	json_array_foreach(json_object_get(finding, "symptoms"), i, symptom)
		say_wrapped(lines, ROLE_TEXT, width, i == 0 ? "Explains" : "",
			    title_of(sample, json_integer_value(symptom)));
}

static void add_stacks(const json_t *finding, struct lines *lines)
{
	json_t *frame;
	size_t i;

	json_array_foreach(json_object_get(finding, "stacks"), i, frame) {
		int depth = (int)MIN(json_integer_value(json_object_get(frame, "depth")), (json_int_t)30);
		const char *ranks = text_member(frame, "ranks");

		if (i == 0)
			say_line(lines, ROLE_HEAD, "Stacks, the outermost function first");
		say_line(lines, ROLE_TEXT, "  %*s%.100s%s%.40s", depth, "", text_member(frame, "frame"),
			 *ranks ? "  ranks " : "", ranks);
	}
}

/* Where in a timeline it is, and how to come by one. */
static void add_timeline(const struct top *top, const json_t *finding, int width, struct lines *lines)
{
	const json_t *place = json_object_get(finding, "timeline");
	const char *track = text_member(place, "track");
	char text[300];

	say_line(lines, ROLE_HEAD, "In a timeline");
	if (STRV_EQ(track, "process"))
		snprintf(text, sizeof(text), "process %" JSON_INTEGER_FORMAT, pid_of(finding));
	else
		snprintf(text, sizeof(text), "%s", STRV_EQ(track, "gpu") ? "the GPU's track" : "all tracks");
	snprintf(text + strlen(text), sizeof(text) - strlen(text), ", from %.3f s to %.3f s of its clock",
		 json_number_value(json_object_get(place, "begin_ns")) * 1e-9,
		 json_number_value(json_object_get(place, "end_ns")) * 1e-9);
	say_wrapped(lines, ROLE_TEXT, width, "Where", text);
	say_wrapped(lines, ROLE_TEXT, width, "Kept",
		    "with timeline.last the agent wrote one when it found this: gpusonde record status says "
		    "where");
	if (pid_of(finding) > 0 && top->replay <= 0)
		say_wrapped(lines, ROLE_TEXT, width, "A new one",
			    "t begins one of this process, and t ends it");
	say_wrapped(lines, ROLE_TEXT, width, "Open it", "at https://ui.perfetto.dev");
}

void draw_finding(struct top *top, struct canvas *canvas, int row, int rows)
{
	static struct lines lines; /* of the only screen; too large for the stack */
	const struct sample *sample = NULL;
	const json_t *finding = shown_finding(top, &sample);
	bool active = json_is_true(json_object_get(finding, "active"));
	int width = canvas->columns;

	lines.n = 0;
	if (!finding) {
		canvas_text(canvas, row, 0, width, ROLE_WARN,
			    "This finding is not on the agent's list any more, or not yet read. Esc: back");
		return;
	}
	say_wrapped(&lines, active ? ROLE_WARN : ROLE_DIM, width, active ? "Finding" : "It was so",
		    text_member(finding, "title"));
	say_wrapped(&lines, ROLE_TEXT, width, "Rule", text_member(finding, "finding"));
	add_time(finding, width, &lines);
	add_sureness(finding, width, &lines);
	add_subjects(top, sample, finding, width, &lines);
	add_relations(sample, finding, width, &lines);
	say_wrapped(&lines, ROLE_GOOD, width, "What to do", text_member(finding, "remedy"));
	add_evidence(finding, &lines);
	add_stacks(finding, &lines);
	add_timeline(top, finding, width, &lines);
	draw_lines(top, canvas, row, rows, &lines);
}
