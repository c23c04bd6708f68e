// SPDX-License-Identifier: Apache-2.0
#include "view/findings.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "view/json/json.h"

/* A hash of 64 bits, which JSON's numbers cannot hold; null for 0. */
static json_t *json_id(uint64_t id)
{
	char text[24];

	if (id == 0)
		return json_null();
	snprintf(text, sizeof(text), "0x%016" PRIx64, id);
	return json_string(text);
}

static json_t *json_words(struct json_maker *j, const struct findings *findings, uint32_t bits)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < FINDING_EVIDENCE; i++)
		if (bits >> i & 1 && findings->evidence[i])
			json_push(j, list, json_string(findings->evidence[i]));
	return list;
}

/* "mean_bytes" says its unit itself. */
static bool ends_in(const char *name, const char *suffix)
{
	size_t n = strlen(name), end = strlen(suffix);

	return n >= end && strcmp(name + n - end, suffix) == 0;
}

static const char *const suffixes[UNIT_MAX] = {
	[UNIT_BYTES] = "_bytes",     [UNIT_BYTES_PER_SECOND] = "_bytes_per_second",
	[UNIT_SECONDS] = "_seconds", [UNIT_WATTS] = "_watts",
	[UNIT_HERTZ] = "_hertz",
};

struct finding_value finding_value_of(const char *member, double value)
{
	struct finding_value v = { .name = member, .unit = UNIT_NONE, .value = value };

	if (ends_in(member, "_share") || ends_in(member, "_ratio"))
		v.unit = UNIT_RATIO;
	for (unsigned unit = 0; unit < UNIT_MAX; unit++)
		if (suffixes[unit] && ends_in(member, suffixes[unit]))
			v.unit = (enum metric_unit)unit;
	return v;
}

void finding_value_name(const struct finding_value *value, char name[static FINDING_VALUE_NAME])
{
	const char *suffix = suffixes[value->unit];

	snprintf(name, FINDING_VALUE_NAME, "%s%s", value->name,
		 suffix && !ends_in(value->name, suffix) ? suffix : "");
}

json_t *json_finding_values(struct json_maker *j, const struct finding *f)
{
	json_t *object = json_object();

	for (uint32_t i = 0; i < f->values_n; i++) {
		char name[FINDING_VALUE_NAME];

		finding_value_name(&f->values[i], name);
		json_put(j, object, name, json_number(f->values[i].value));
	}
	return object;
}

/* Where to look: the times are those of the timeline. */
static json_t *json_place_of(struct json_maker *j, const struct findings *findings, const struct finding *f)
{
	json_t *object = json_object();
	bool known = findings->real_offset_ns != 0;

	json_put(j, object, "begin_ns", json_count(f->begin_ns));
	json_put(j, object, "end_ns", json_count(f->end_ns));
	json_put(j, object, "begin", json_time(known ? (int64_t)f->begin_ns + findings->real_offset_ns : 0));
	json_put(j, object, "end", json_time(known ? (int64_t)f->end_ns + findings->real_offset_ns : 0));
	json_put(j, object, "track",
		 f->pid       ? json_string("process") :
		 f->device[0] ? json_string("gpu") :
				json_null());
	return object;
}

/* Each function once, with whose stacks it is in; what it calls comes after it and is deeper. */
static json_t *json_stacks(struct json_maker *j, const struct findings *findings, const struct finding *f)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < f->frames_n; i++) {
		const struct finding_frame *row = &findings->frames[f->frames_at + i];
		json_t *object = json_object();

		json_put(j, object, "depth", json_count(row->depth));
		json_put(j, object, "frame", json_string(row->frame));
		json_put(j, object, "ranks", json_text_or_null(row->ranks));
		json_push(j, list, object);
	}
	return list;
}

/* Ids of those that it explains. */
static json_t *json_symptoms(struct json_maker *j, const struct findings *findings, const struct finding *f)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < findings->n; i++)
		if (finding_is_symptom(&findings->list[i], f))
			json_push(j, list, json_count(findings->list[i].id));
	return list;
}

static json_t *json_finding(struct json_maker *j, const struct findings *findings, const struct finding *f)
{
	const struct finding_rule *rule = &findings->rules[f->rule];
	const struct finding *cause = finding_cause(findings, f);
	json_t *object = json_object();

	json_put(j, object, "finding", json_string(rule->name));
	json_put(j, object, "id", json_positive_or_null(f->id));
	json_put(j, object, "caused_by", json_positive_or_null(cause ? cause->id : 0));
	json_put(j, object, "symptoms", json_symptoms(j, findings, f));
	json_put(j, object, "title", json_string(rule->title));
	json_put(j, object, "active", json_boolean(f->active));
	json_put(j, object, "node", json_text_or_null(f->node));
	json_put(j, object, "pid", json_positive_or_null(f->pid));
	json_put(j, object, "device", json_text_or_null(f->device));
	json_put(j, object, "subject", json_text_or_null(f->subject));
	json_put(j, object, "communicator", json_id(f->communicator));
	json_put(j, object, "confidence", json_number(f->confidence));
	json_put(j, object, "evidence", json_finding_values(j, f));
	json_put(j, object, "surer_with", json_words(j, findings, f->without));
	json_put(j, object, "remedy", json_string(rule->remedy));
	json_put(j, object, "timeline", json_place_of(j, findings, f));
	json_put(j, object, "stacks", json_stacks(j, findings, f));
	return object;
}

int json_findings(const struct findings *findings, struct strbuf *out)
{
	struct json_maker j = { 0 };
	json_t *document = json_object(), *list = json_array(), *rules = json_array();

	for (uint32_t i = 0; i < findings->n; i++)
		json_push(&j, list, json_finding(&j, findings, &findings->list[i]));
	for (uint32_t i = 0; i < findings->rules_n; i++) {
		const struct finding_rule *rule = &findings->rules[i];
		json_t *object = json_object();

		json_put(&j, object, "finding", json_string(rule->name));
		json_put(&j, object, "judged", json_boolean(rule->missing == 0));
		json_put(&j, object, "active", json_integer(rule->active));
		json_put(&j, object, "missing_evidence", json_words(&j, findings, rule->missing));
		json_push(&j, rules, object);
	}
	json_put(&j, document, "findings", list);
	json_put(&j, document, "rules", rules);
	json_put(&j, document, "events", json_count(findings->events));
	json_put(&j, document, "events_out_of_order", json_count(findings->late));
	json_put(&j, document, "beyond_limits", json_count(findings->beyond));
	return json_finish(&j, document, 0, out);
}
