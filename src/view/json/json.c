// SPDX-License-Identifier: Apache-2.0
#include "view/json/json.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/macro.h"
#include "base/text.h"
#include "view/number.h"
#include "view/names.h"
#include "view/shown.h"
#include "view/view.h"

enum {
	TEXT_MAX = 512, /* the longest text of a snapshot has 256 bytes */
	ESTIMATED_LOOK_MAX = 512, /* limit on the names read from a document's "estimated" */
	NAME_MAX_LEN = 192, /* family, two label values, two dots */
	/* No further kernel is written after this size, since a page is limited to 16 MiB. */
	KERNELS_BYTES = 12 << 20,
};

void json_put(struct json_maker *j, json_t *object, const char *key, json_t *value)
{
	/* What would be in a member that is left out has no object. */
	if (j->brief && value && (!object || json_is_null(value) || json_brief_omits(key, strlen(key))))
		json_decref(value);
	else if (json_object_set_new(object, key, value) < 0)
		j->failed = true;
}

void json_push(struct json_maker *j, json_t *array, json_t *value)
{
	if (json_array_append_new(array, value) < 0)
		j->failed = true;
}

json_t *json_text(const char *text)
{
	char clean[TEXT_MAX];
	size_t n = strnlen(text, sizeof(clean) - 1);

	memcpy(clean, text, n);
	clean[n] = '\0';
	utf8_sanitize(clean);
	return json_string(clean);
}

json_t *json_long_text(const char *text)
{
	_cleanup_free_ char *copy = NULL;

	if (utf8_valid(text, strlen(text)))
		return json_string(text);
	copy = strdup(text);
	if (!copy)
		return NULL;
	utf8_sanitize(copy);
	return json_string(copy);
}

json_t *json_text_or_null(const char *text)
{
	return *text ? json_text(text) : json_null();
}

json_t *json_unsigned_or_null(uint32_t value)
{
	return value != UINT32_MAX ? json_integer(value) : json_null();
}

json_t *json_positive_or_null(uint32_t value)
{
	return value ? json_integer(value) : json_null();
}

json_t *json_number(double value)
{
	if (number_is_integer(value))
		return json_integer((json_int_t)value);
	return isfinite(value) ? json_real(number_rounded(value)) : json_null();
}

json_t *json_time(int64_t real_ns)
{
	char text[32];

	if (real_ns == 0)
		return json_null();
	format_rfc3339(real_ns, text);
	return json_string(text);
}

static const char *strip(const char *name, const char *prefix)
{
	size_t n = prefix ? strlen(prefix) : 0;

	return n > 0 && strncmp(name, prefix, n) == 0 ? name + n : name;
}

static const char *member_name(const struct json_rows *rows, const struct metric *m)
{
	const char *name = strip(m->family, rows->strip);

	return name != m->family ? name : strip(name, rows->strip_more);
}

static json_t *slot_value(const struct json_rows *rows, const struct metric *m, unsigned slot)
{
	if (!presence_is(rows->p[slot]) || (rows->counters_only && !metric_is_counter(m)))
		return json_null();
	return json_number(rows->v[slot]);
}

/* A row's number; for a row with an index an array of its numbers, without trailing nulls. */
static json_t *row_value(struct json_maker *j, const struct json_rows *rows, const struct metric *m)
{
	unsigned n = m->count;
	json_t *array;

	if (!m->index)
		return slot_value(rows, m, m->slot);
	if (rows->counters_only && !metric_is_counter(m))
		n = 0;
	while (n > 0 && !presence_is(rows->p[m->slot + n - 1]))
		n--;
	array = json_array();
	for (unsigned k = 0; k < n; k++)
		json_push(j, array, slot_value(rows, m, m->slot + k));
	return array;
}

/* The object @key of @object, created if missing. Borrowed. */
static json_t *member_object(struct json_maker *j, json_t *object, const char *key)
{
	json_t *member = json_object_get(object, key);

	if (!member) {
		json_put(j, object, key, json_object());
		member = json_object_get(object, key);
	}
	return member;
}

static void row_name(const struct json_rows *rows, const struct metric *m, char buf[static NAME_MAX_LEN])
{
	snprintf(buf, NAME_MAX_LEN, "%s%s%s%s%s", member_name(rows, m), m->label ? "." : "",
		 m->label ? m->value : "", m->label2 ? "." : "", m->label2 ? m->value2 : "");
}

/* Adds the reason why a row has no number, or that it is an estimate. */
static void note_row(struct json_maker *j, const struct json_rows *rows, const struct metric *m,
		     json_t *unavailable, json_t *estimated)
{
	uint8_t reason = PRESENCE_ABSENT;
	bool present = false, estimate = false;
	char name[NAME_MAX_LEN];

	if (rows->counters_only && !metric_is_counter(m))
		return;
	for (unsigned k = 0; k < m->count; k++) {
		uint8_t p = rows->p[m->slot + k];

		if (presence_is(p)) {
			present = true;
			estimate |= p & PRESENCE_ESTIMATED;
		} else if (reason == PRESENCE_ABSENT) {
			reason = p & PRESENCE_MASK;
		}
	}
	row_name(rows, m, name);
	if (!present && reason != PRESENCE_ABSENT)
		json_put(j, unavailable, name, json_string(presence_name(reason)));
	if (estimate)
		json_push(j, estimated, json_string(name));
}

void json_add_rows(struct json_maker *j, json_t *object, const struct json_rows *rows)
{
	json_t *unavailable = json_object(), *estimated = json_array();

	for (unsigned i = 0; i < rows->n; i++) {
		const struct metric *m = &rows->rows[i];
		const char *key = member_name(rows, m);
		json_t *into = object;

		if (rows->level && !(m->levels & rows->level))
			continue;
		if (m->label) {
			into = member_object(j, into, key);
			key = m->value;
		}
		if (m->label2) {
			into = member_object(j, into, key);
			key = m->value2;
		}
		json_put(j, into, key, row_value(j, rows, m));
		note_row(j, rows, m, unavailable, estimated);
	}
	json_put(j, object, "unavailable", unavailable);
	json_put(j, object, "estimated", estimated);
}

static bool is_listed(const json_t *names, const char *name)
{
	size_t n = MIN(json_array_size(names), (size_t)ESTIMATED_LOOK_MAX);

	for (size_t i = 0; i < n; i++) {
		const char *text = json_string_value(json_array_get(names, i));

		if (text && STRV_EQ(text, name))
			return true;
	}
	return false;
}

static uint8_t presence_named(const char *name)
{
	for (uint8_t p = PRESENCE_UNSUPPORTED; name && p < PRESENCE_MAX; p++)
		if (STRV_EQ(presence_name(p), name))
			return p;
	return PRESENCE_ABSENT;
}

/* The member with the row's number, or the array of them. */
static const json_t *row_member(const json_t *object, const struct json_rows *rows, const struct metric *m)
{
	const json_t *member = json_object_get(object, member_name(rows, m));

	if (m->label)
		member = json_object_get(member, m->value);
	return m->label2 ? json_object_get(member, m->value2) : member;
}

/* The members that json_add_rows() adds beside the rows; NULL: nothing is in it. */
struct row_notes {
	const json_t *unavailable, *estimated;
};

static void read_row(const json_t *object, const struct json_rows *rows, const struct metric *m,
		     const struct row_notes *notes, double *v, uint8_t *p)
{
	const json_t *member = row_member(object, rows, m);
	char name[NAME_MAX_LEN] = "";
	bool estimated = false;
	uint8_t reason = PRESENCE_ABSENT;

	if ((member && notes->estimated) || notes->unavailable)
		row_name(rows, m, name);
	if (notes->unavailable)
		reason = presence_named(json_string_value(json_object_get(notes->unavailable, name)));
	if (member && notes->estimated)
		estimated = is_listed(notes->estimated, name);
	for (unsigned k = 0; k < m->count; k++) {
		const json_t *value = m->index ? json_array_get(member, k) : member;
		bool known = json_is_number(value);

		v[m->slot + k] = known ? json_number_value(value) : 0;
		p[m->slot + k] = known ? PRESENCE_PRESENT : reason;
		if (known && estimated)
			p[m->slot + k] |= PRESENCE_ESTIMATED;
	}
}

void json_read_rows(const json_t *object, const struct json_rows *rows, double *v, uint8_t *p)
{
	const json_t *unavailable = json_object_get(object, "unavailable");
	const json_t *estimated = json_object_get(object, "estimated");
	const struct row_notes notes = { .unavailable = json_object_size(unavailable) ? unavailable : NULL,
					 .estimated = json_array_size(estimated) ? estimated : NULL };

	for (unsigned i = 0; i < rows->n; i++)
		read_row(object, rows, &rows->rows[i], &notes, v, p);
}

json_t *view_json(const struct snapshot *snapshot, unsigned sections)
{
	struct json_maker j = { .s = snapshot, .brief = sections & JSON_BRIEF };
	json_t *document = json_object();

	json_put(&j, document, "schema", json_string("gpusonde/v1"));
	json_put(&j, document, "time", json_time(snapshot->real_ns));
	json_put(&j, document, "simulated", json_boolean(snapshot->simulated));
	json_put(&j, document, "error", json_text_or_null(outage_reason(snapshot)));
	if (sections & JSON_GPUS)
		json_put(&j, document, "gpus", json_gpus(&j));
	if (sections & JSON_PROCESSES) {
		json_put(&j, document, "processes", json_processes(&j));
		json_add_traced(&j, document);
		json_put(&j, document, "allocations", json_allocations(&j));
	}
	if (sections & JSON_NODE)
		json_put(&j, document, "node", json_node(&j));
	if (sections & JSON_EVENTS)
		json_add_events(&j, document);
	if (j.failed) {
		json_decref(document);
		return NULL;
	}
	return document;
}

void json_workload(struct json_maker *j, json_t *object, enum workload_kind kind, const char *id,
		   const char *pod_uid, const struct owner *owner)
{
	static const enum workload_kind kinds[] = { WORKLOAD_CONTAINER, WORKLOAD_POD, WORKLOAD_JOB,
						    WORKLOAD_UNIT };

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		bool its_pod = kinds[i] == WORKLOAD_POD && kind == WORKLOAD_CONTAINER;
		const char *text = its_pod ? pod_uid : kinds[i] == kind ? id : "";

		json_put(j, object, workload_id_name(kinds[i]), json_text_or_null(text));
	}
	json_put(j, object, "namespace", json_text_or_null(owner ? owner->namespace : ""));
	json_put(j, object, "pod", json_text_or_null(owner ? owner->pod : ""));
	json_put(j, object, "container", json_text_or_null(owner ? owner->container : ""));
}

static size_t ascii_bytes(const char *text, size_t n)
{
	size_t i = 0;

	while (i < n && (unsigned char)text[i] < 0x7f)
		i++;
	return i;
}

/*
 * Jansson escapes what JSON forbids, and leaves other characters that a terminal obeys: these are escaped
 * here. It passes whole characters; others than ASCII are in texts only.
 */
static int dump(const char *text, size_t n, void *userdata)
{
	const char *end = text + n;
	struct strbuf *out = userdata;

	while (text < end) {
		size_t ascii = ascii_bytes(text, (size_t)(end - text));
		const char *start = text + ascii;
		uint32_t c;

		strbuf_add(out, text, ascii);
		text = start;
		if (text == end)
			break;
		c = utf8_next(&text);
		if (character_is_unsafe(c))
			strbuf_addf(out, "\\u%04X", (unsigned)c);
		else
			strbuf_add(out, start, (size_t)(text - start));
	}
	return out->failed ? -1 : 0;
}

int json_write(json_t *value, size_t flags, struct strbuf *out)
{
	int r = 0;

	if (!value)
		return -ENOMEM;
	if (json_dump_callback(value, dump, out, flags | JSON_COMPACT | JSON_REAL_PRECISION(NUMBER_DIGITS)) <
	    0)
		r = out->limit > 0 ? -E2BIG : -ENOMEM;
	json_decref(value);
	return r < 0 || !out->failed ? r : -E2BIG;
}

int json_finish(const struct json_maker *j, json_t *object, size_t flags, struct strbuf *out)
{
	if (!j->failed)
		return json_write(object, flags, out);
	json_decref(object);
	return -ENOMEM;
}

void json_add_process(struct json_maker *j, json_t *object, uint32_t pid, const char *comm, bool ended)
{
	json_put(j, object, "pid", json_integer(pid));
	json_put(j, object, "comm", json_text_or_null(comm));
	json_put(j, object, "ended", json_boolean(ended));
}

int view_json_text(const struct snapshot *snapshot, unsigned sections, struct strbuf *out)
{
	int r;

	strbuf_addc(out, '{');
	r = json_write(view_json(snapshot, sections), JSON_EMBED, out);
	if (r >= 0 && (sections & JSON_TRACE))
		r = json_trace_write(snapshot, out);
	if (r >= 0 && (sections & JSON_KERNELS)) {
		strbuf_adds(out, ",\"kernels\":");
		r = view_kernels(snapshot, KERNELS_BYTES, out);
	}
	strbuf_adds(out, "}\n");
	return r < 0 || !out->failed ? r : -E2BIG;
}
