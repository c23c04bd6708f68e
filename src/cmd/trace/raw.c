// SPDX-License-Identifier: Apache-2.0
/* Events of "gpusonde trace --raw", one a line. */
#include "cmd/trace/trace.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "view/table.h"

static const char *const type_names[TRACE_EVENTS] = {
	[TRACE_EVENT_LAUNCH] = "launch", [TRACE_EVENT_CALL] = "call", [TRACE_EVENT_PROCESS] = "process",
	[TRACE_EVENT_EXEC] = "exec",     [TRACE_EVENT_EXIT] = "exit", [TRACE_EVENT_NAME] = "name",
};

/* What a call has, by its row: what it has not is left out. */
struct field {
	const char *name;
	enum trace_operand_index operand;
	size_t at; /* in struct trace_call */
	bool narrow; /* 32 bits */
	bool hex;
};

static const struct field fields[] = {
	{ "addr", TRACE_OPERAND_ADDR, offsetof(struct trace_call, addr), false, true },
	{ "size", TRACE_OPERAND_SIZE, offsetof(struct trace_call, size), false, false },
	{ "stream", TRACE_OPERAND_STREAM, offsetof(struct trace_call, stream), false, true },
	{ "handle", TRACE_OPERAND_HANDLE, offsetof(struct trace_call, handle), false, true },
	{ "kind", TRACE_OPERAND_KIND, offsetof(struct trace_call, kind), true, false },
};

static bool is_call(const struct trace_header *e)
{
	return e->type == TRACE_EVENT_LAUNCH || e->type == TRACE_EVENT_CALL;
}

static bool has_field(const struct trace_header *e, const struct field *field)
{
	enum trace_operand_from from = probes[e->call].spec.operands[field->operand].from;
	bool gave = !(e->flags & TRACE_FLAG_NO_RESULT) &&
		    ((const struct trace_call *)(const void *)e)->result == 0;

	return from != TRACE_FROM_NONE && (from != TRACE_FROM_OUT || gave);
}

static uint64_t field_value(const struct trace_header *e, const struct field *field)
{
	const char *at = (const char *)e + field->at;

	return field->narrow ? *(const __u32 *)(const void *)at : *(const __u64 *)(const void *)at;
}

static void launch_json(const struct trace_launch *l, json_t *o)
{
	json_object_update_new(o, json_pack("{s:I, s:I, s:[III], s:[III], s:I}", "function",
					    (json_int_t)l->function, "stream", (json_int_t)l->stream, "grid",
					    (json_int_t)l->grid[0], (json_int_t)l->grid[1],
					    (json_int_t)l->grid[2], "block", (json_int_t)l->block[0],
					    (json_int_t)l->block[1], (json_int_t)l->block[2], "shared_bytes",
					    (json_int_t)l->shared_bytes));
}

static void event_json(const struct trace_header *e, uint64_t duration_ns, int32_t result, json_t *o)
{
	if (e->type == TRACE_EVENT_LAUNCH)
		launch_json((const void *)e, o);
	for (size_t i = 0; e->type == TRACE_EVENT_CALL && i < ARRAY_SIZE(fields); i++)
		if (has_field(e, &fields[i]))
			json_object_set_new(o, fields[i].name,
					    json_integer((json_int_t)MIN(field_value(e, &fields[i]),
									 (uint64_t)INT64_MAX)));
	if (e->flags & TRACE_FLAG_NO_RESULT)
		return;
	json_object_set_new(o, "duration_ns", json_integer((json_int_t)duration_ns));
	json_object_set_new(o, "result", json_integer(result));
}

static void event_text(const struct trace_header *e, uint64_t duration_ns, int32_t result, struct strbuf *out)
{
	const struct trace_launch *l = (const void *)e;

	if (e->type == TRACE_EVENT_LAUNCH)
		strbuf_addf(out, " function 0x%llx grid %ux%ux%u block %ux%ux%u shared %u stream 0x%llx",
			    (unsigned long long)l->function, l->grid[0], l->grid[1], l->grid[2], l->block[0],
			    l->block[1], l->block[2], l->shared_bytes, (unsigned long long)l->stream);
	for (size_t i = 0; e->type == TRACE_EVENT_CALL && i < ARRAY_SIZE(fields); i++)
		if (has_field(e, &fields[i]))
			strbuf_addf(out, fields[i].hex ? " %s 0x%llx" : " %s %llu", fields[i].name,
				    (unsigned long long)field_value(e, &fields[i]));
	if (is_call(e) && !(e->flags & TRACE_FLAG_NO_RESULT))
		strbuf_addf(out, " = %d in %llu ns", result, (unsigned long long)duration_ns);
}

/* ---- names ---- */

static void name_text(const struct trace_name *e, struct strbuf *out)
{
	strbuf_addf(out, " handle 0x%llx", (unsigned long long)e->handle);
	if (e->of)
		strbuf_addf(out, " of 0x%llx", (unsigned long long)e->of);
	strbuf_adds(out, e->header.op == TRACE_OP_MODULE_FILE ? " file " : " name ");
	if (e->header.flags & TRACE_FLAG_UNREAD)
		strbuf_adds(out, "(not readable)");
	text_clean(out, e->name);
	strbuf_adds(out, e->cut ? " (cut)" : "");
}

static void name_json(const struct trace_name *e, json_t *o)
{
	_cleanup_free_ char *name = strdup(e->name);

	json_object_set_new(o, "handle", json_integer((json_int_t)MIN(e->handle, (uint64_t)INT64_MAX)));
	if (e->of)
		json_object_set_new(o, "of", json_integer((json_int_t)MIN(e->of, (uint64_t)INT64_MAX)));
	if (name && !(e->header.flags & TRACE_FLAG_UNREAD)) {
		utf8_sanitize(name);
		json_object_set_new(o, e->header.op == TRACE_OP_MODULE_FILE ? "file" : "name",
				    json_string(name));
	}
	if (e->cut)
		json_object_set_new(o, "cut", json_true());
}

static void print_line(const struct trace_header *e, const char *name, uint64_t duration_ns, int32_t result,
		       struct strbuf *out)
{
	strbuf_addf(out, "%llu.%09llu %u/%u ", (unsigned long long)e->time_ns / NSEC_PER_SEC,
		    (unsigned long long)e->time_ns % NSEC_PER_SEC, e->tgid, e->tid);
	text_clean(out, name);
	if (e->type == TRACE_EVENT_NAME)
		name_text((const void *)e, out);
	else
		event_text(e, duration_ns, result, out);
	strbuf_addc(out, '\n');
}

static void print_object(const struct trace_header *e, const char *name, uint64_t duration_ns, int32_t result,
			 struct strbuf *out)
{
	json_t *o = json_pack("{s:s, s:I, s:I, s:I}", "type", type_names[e->type], "time_ns",
			      (json_int_t)e->time_ns, "pid", (json_int_t)e->tgid, "tid", (json_int_t)e->tid);
	char *text;

	if (e->type == TRACE_EVENT_NAME) {
		json_object_set_new(o, "api", json_string(name));
		name_json((const void *)e, o);
	} else if (is_call(e)) {
		json_object_set_new(o, "api", json_string(name));
		event_json(e, duration_ns, result, o);
	} else {
		json_object_set_new(o, "comm", json_string(name));
	}
	text = json_dumps(o, JSON_COMPACT);
	json_decref(o);
	strbuf_adds(out, text ? text : "");
	strbuf_addc(out, '\n');
	free(text);
}

void trace_print_event(const struct trace_header *e, bool json, struct strbuf *out)
{
	const char *name = e->call < probes_n ? probes[e->call].symbol : "?";
	char comm[TRACE_COMM + 1] = { 0 }, line[64];
	uint64_t duration_ns = 0;
	int32_t result = 0;

	if (e->type >= TRACE_EVENTS || !type_names[e->type] || e->call >= probes_n)
		return;
	if (e->type == TRACE_EVENT_LAUNCH) {
		duration_ns = ((const struct trace_launch *)(const void *)e)->duration_ns;
		result = ((const struct trace_launch *)(const void *)e)->result;
	} else if (e->type == TRACE_EVENT_CALL) {
		duration_ns = ((const struct trace_call *)(const void *)e)->duration_ns;
		result = ((const struct trace_call *)(const void *)e)->result;
	} else if (e->type != TRACE_EVENT_NAME) {
		memcpy(comm, ((const struct trace_process *)(const void *)e)->comm, TRACE_COMM);
		utf8_sanitize(comm);
		snprintf(line, sizeof(line), "%s %s", type_names[e->type], comm);
		name = json ? comm : line;
	}
	(json ? print_object : print_line)(e, name, duration_ns, result, out);
}
