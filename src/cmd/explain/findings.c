// SPDX-License-Identifier: Apache-2.0
/* Findings of the agent's analysis as sentences. */
#include "cmd/explain/explain.h"

#include <stdio.h>
#include <string.h>

#include "cmd/top/columns.h"
#include "view/findings.h"

static bool finding_is_of(const json_t *finding, const char *uuid, uint32_t pid)
{
	if (pid)
		return json_integer_value(json_object_get(finding, "pid")) == (json_int_t)pid;
	return *uuid && !json_is_integer(json_object_get(finding, "pid")) &&
	       STRV_EQ(text_member(finding, "device"), uuid);
}

bool explain_found(const struct explain *explain, enum analysis_rule rule, const char *uuid, uint32_t pid)
{
	const json_t *finding;
	size_t i;

	json_array_foreach(json_object_get(explain->findings, "findings"), i, finding)
		if (json_is_true(json_object_get(finding, "active")) && finding_is_of(finding, uuid, pid) &&
		    STRV_EQ(text_member(finding, "finding"), analysis_rules[rule].name))
			return true;
	return false;
}

/* "time_share 12.5 %, mean_bytes 2.0 KiB" */
static void evidence_text(const json_t *finding, struct strbuf *text)
{
	json_t *evidence = json_object_get(finding, "evidence"), *member;
	const char *name;

	json_object_foreach(evidence, name, member) {
		char value[FINDING_VALUE_TEXT];
		struct finding_value v;

		if (!json_is_number(member))
			continue;
		v = finding_value_of(name, json_number_value(member));
		finding_value_text(&v, value);
		strbuf_addf(text, "%.60s %s, ", name, value);
	}
	strbuf_addf(text, "confidence %.0f %%",
		    100 * json_number_value(json_object_get(finding, "confidence")));
}

static size_t symptoms(const json_t *finding)
{
	return json_array_size(json_object_get(finding, "symptoms"));
}

static void say_finding(struct explain *explain, json_t *subject, const json_t *finding)
{
	const char *about = text_member(finding, "subject");
	struct strbuf text;
	json_t *figures = json_deep_copy(json_object_get(finding, "evidence"));

	strbuf_init(&text, 0);
	evidence_text(finding, &text);
	if (symptoms(finding) > 0)
		strbuf_addf(&text, "; it explains %zu other finding%s", symptoms(finding),
			    symptoms(finding) == 1 ? "" : "s");
	if (figures)
		json_object_set(figures, "confidence", json_object_get(finding, "confidence"));
	explain_say(explain, subject, TOPIC_FINDING, figures, text_member(finding, "remedy"),
		    "%.160s: %.160s%s%s (%s)", text_member(finding, "finding"), text_member(finding, "title"),
		    *about ? ", " : "", about, text.data);
	strbuf_done(&text);
}

void explain_findings(struct explain *explain, json_t *subject, const char *uuid, uint32_t pid)
{
	const json_t *finding;
	size_t i, ended = 0;

	json_array_foreach(json_object_get(explain->findings, "findings"), i, finding) {
		if (!finding_is_of(finding, uuid, pid))
			continue;
		/* A symptom is told of with its cause. */
		if (!json_is_true(json_object_get(finding, "active")))
			ended++;
		else if (!json_is_integer(json_object_get(finding, "caused_by")))
			say_finding(explain, subject, finding);
	}
	if (ended > 0)
		explain_say(explain, subject, TOPIC_FINDING, NULL, NULL, "%zu finding%s of before ha%s ended",
			    ended, ended == 1 ? "" : "s", ended == 1 ? "s" : "ve");
}

void explain_every_finding(struct explain *explain)
{
	const json_t *list = json_object_get(explain->findings, "findings"), *finding;
	size_t i;

	json_array_foreach(list, i, finding) {
		json_int_t pid = json_integer_value(json_object_get(finding, "pid"));
		const char *device = text_member(finding, "device"), *node = text_member(finding, "node");
		char process[40] = "";
		json_t *subject;

		if (pid)
			snprintf(process, sizeof(process), " of process %" JSON_INTEGER_FORMAT, pid);
		subject = explain_begin(explain, ABOUT_ALL, "%s finding%s%s%s%s%s",
					json_is_true(json_object_get(finding, "active")) ? "Active" : "Ended",
					process, *device ? " of " : "", device, *node ? " on " : "", node);
		if (subject)
			say_finding(explain, subject, finding);
	}
	if (json_array_size(list) == 0)
		explain_begin(explain, ABOUT_ALL, "Nothing was found by the rules that could be judged.");
}
