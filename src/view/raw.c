// SPDX-License-Identifier: Apache-2.0
#include "view/raw.h"

#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "view/json/json.h"
#include "view/table/table.h"

static const char *const type_names[RAW_TYPES] = {
	[RAW_LAUNCH] = "launch",   [RAW_CALL] = "call",   [RAW_USER] = "user",
	[RAW_NAME] = "name",       [RAW_FIELDS] = "call", [RAW_VARIABLE] = "variable",
	[RAW_PROCESS] = "process", [RAW_EXEC] = "exec",   [RAW_EXIT] = "exit",
};

static const struct {
	const char *name;
	bool hex; /* in text; JSON has decimal numbers only */
} operands[RAW_OPERANDS] = {
	[RAW_ADDR] = { "addr", true },     [RAW_SIZE] = { "size", false }, [RAW_STREAM] = { "stream", true },
	[RAW_HANDLE] = { "handle", true }, [RAW_KIND] = { "kind", false },
};

static int status(const struct strbuf *out)
{
	if (!out->failed)
		return 0;
	return out->limit > 0 ? -E2BIG : -ENOMEM;
}

/* ---- text ---- */

static void launch_text(const struct raw_event *e, struct strbuf *out)
{
	const uint32_t *grid = e->launch.grid, *block = e->launch.block;

	strbuf_addf(out, " function 0x%llx grid %ux%ux%u block %ux%ux%u shared %u stream 0x%llx",
		    (unsigned long long)e->launch.function, grid[0], grid[1], grid[2], block[0], block[1],
		    block[2], e->launch.shared_bytes, (unsigned long long)e->launch.stream);
}

static void operands_text(const struct raw_event *e, struct strbuf *out)
{
	for (unsigned i = 0; i < RAW_OPERANDS; i++)
		if (e->call.has[i])
			strbuf_addf(out, operands[i].hex ? " %s 0x%llx" : " %s %llu", operands[i].name,
				    (unsigned long long)e->call.value[i]);
}

static void argument_text(const struct raw_argument *argument, struct strbuf *out)
{
	strbuf_addf(out, " arg%u ", argument->position);
	if (argument->is_text && !argument->text) {
		strbuf_adds(out, "(not readable)");
	} else if (argument->is_text) {
		strbuf_addc(out, '"');
		text_clean(out, argument->text);
		strbuf_adds(out, argument->truncated ? "\"..." : "\"");
	} else if (argument->number == RAW_SIGNED) {
		strbuf_addf(out, "%lld", (long long)argument->value);
	} else {
		strbuf_addf(out, argument->number == RAW_HEX ? "0x%llx" : "%llu",
			    (unsigned long long)argument->value);
	}
}

static void user_text(const struct raw_event *e, struct strbuf *out)
{
	for (unsigned i = 0; i < e->user.n; i++)
		argument_text(&e->user.at[i], out);
}

static void fields_text(const struct raw_event *e, struct strbuf *out)
{
	for (unsigned i = 0; i < e->fields.n; i++) {
		const struct raw_field *f = &e->fields.at[i];

		if (f->text)
			strbuf_addf(out, " %s %s", f->name, f->text);
		else if (f->number == RAW_SIGNED)
			strbuf_addf(out, " %s %lld", f->name, (long long)f->value);
		else
			strbuf_addf(out, f->number == RAW_UNSIGNED ? " %s %llu" : " %s 0x%llx", f->name,
				    (unsigned long long)f->value);
	}
}

static void result_text(const struct raw_event *e, struct strbuf *out)
{
	if (e->has_result)
		strbuf_addf(out, " = %d in %llu ns", e->result, (unsigned long long)e->duration_ns);
}

static void name_text(const struct raw_event *e, struct strbuf *out)
{
	strbuf_addf(out, " handle 0x%llx", (unsigned long long)e->name.handle);
	if (e->name.parent)
		strbuf_addf(out, " of 0x%llx", (unsigned long long)e->name.parent);
	strbuf_adds(out, e->name.is_file ? " file " : " name ");
	if (e->name.text)
		text_clean(out, e->name.text);
	else
		strbuf_adds(out, "(not readable)");
	strbuf_adds(out, e->name.truncated ? " (cut)" : "");
}

static void variable_text(const struct raw_event *e, struct strbuf *out)
{
	strbuf_addf(out, " %s ", e->variable.name);
	if (e->variable.value)
		text_clean(out, e->variable.value);
	else
		strbuf_adds(out, e->variable.known ? "(not set)" : "(not readable)");
}

static void event_text(const struct raw_event *e, struct strbuf *out)
{
	strbuf_addf(out, "%llu.%09llu %u/%u [%u] ", (unsigned long long)e->time_ns / NSEC_PER_SEC,
		    (unsigned long long)e->time_ns % NSEC_PER_SEC, e->pid, e->tid, e->cpu);
	text_clean(out, e->comm ? e->comm : "?");
	strbuf_addc(out, ' ');
	switch (e->type) {
	case RAW_LAUNCH:
		text_clean(out, e->api);
		launch_text(e, out);
		result_text(e, out);
		break;
	case RAW_CALL:
		text_clean(out, e->api);
		operands_text(e, out);
		result_text(e, out);
		break;
	case RAW_USER:
		text_clean(out, e->api);
		user_text(e, out);
		result_text(e, out);
		break;
	case RAW_FIELDS:
		text_clean(out, e->api);
		fields_text(e, out);
		result_text(e, out);
		break;
	case RAW_NAME:
		text_clean(out, e->api);
		name_text(e, out);
		break;
	case RAW_VARIABLE:
		text_clean(out, e->api);
		variable_text(e, out);
		break;
	default:
		strbuf_adds(out, type_names[e->type]);
	}
	strbuf_addc(out, '\n');
}

/* ---- JSON ---- */

static json_t *json_size(struct json_maker *j, const uint32_t size[static 3])
{
	json_t *array = json_array();

	for (unsigned i = 0; i < 3; i++)
		json_push(j, array, json_count(size[i]));
	return array;
}

static void launch_json(struct json_maker *j, const struct raw_event *e, json_t *object)
{
	json_put(j, object, "function", json_count(e->launch.function));
	json_put(j, object, "stream", json_count(e->launch.stream));
	json_put(j, object, "grid", json_size(j, e->launch.grid));
	json_put(j, object, "block", json_size(j, e->launch.block));
	json_put(j, object, "shared_bytes", json_count(e->launch.shared_bytes));
}

static void operands_json(struct json_maker *j, const struct raw_event *e, json_t *object)
{
	for (unsigned i = 0; i < RAW_OPERANDS; i++)
		if (e->call.has[i])
			json_put(j, object, operands[i].name, json_count(e->call.value[i]));
}

static void fields_json(struct json_maker *j, const struct raw_event *e, json_t *object)
{
	for (unsigned i = 0; i < e->fields.n; i++) {
		const struct raw_field *f = &e->fields.at[i];
		char id[24];

		snprintf(id, sizeof(id), "0x%llx", (unsigned long long)f->value);
		json_put(j, object, f->name,
			 f->text                 ? json_string(f->text) :
			 f->number == RAW_ID     ? json_string(id) :
			 f->number == RAW_SIGNED ? json_integer((json_int_t)f->value) :
						   json_count(f->value));
	}
}

static void user_json(struct json_maker *j, const struct raw_event *e, json_t *object)
{
	json_t *arguments = json_object();
	char name[16];

	for (unsigned i = 0; i < e->user.n; i++) {
		const struct raw_argument *a = &e->user.at[i];

		snprintf(name, sizeof(name), "arg%u", a->position);
		json_put(j, arguments, name,
			 a->is_text              ? a->text ? json_long_text(a->text) : json_null() :
			 a->number == RAW_SIGNED ? json_integer((json_int_t)a->value) :
						   json_count(a->value));
		if (a->truncated)
			json_put(j, object, "cut", json_true());
	}
	json_put(j, object, "arguments", arguments);
}

static void result_json(struct json_maker *j, const struct raw_event *e, json_t *object)
{
	if (!e->has_result)
		return;
	json_put(j, object, "duration_ns", json_count(e->duration_ns));
	json_put(j, object, "result", json_integer(e->result));
}

static void name_json(struct json_maker *j, const struct raw_event *e, json_t *object)
{
	json_put(j, object, "handle", json_count(e->name.handle));
	if (e->name.parent)
		json_put(j, object, "of", json_count(e->name.parent));
	if (e->name.text)
		json_put(j, object, e->name.is_file ? "file" : "name", json_long_text(e->name.text));
	if (e->name.truncated)
		json_put(j, object, "cut", json_true());
}

static void variable_json(struct json_maker *j, const struct raw_event *e, json_t *object)
{
	json_put(j, object, "name", json_text(e->variable.name));
	json_put(j, object, "set", e->variable.known ? json_boolean(e->variable.value) : json_null());
	if (e->variable.value)
		json_put(j, object, "value", json_long_text(e->variable.value));
}

static int event_json(const struct raw_event *e, struct strbuf *out)
{
	struct json_maker j = { 0 };
	json_t *object = json_object();

	json_put(&j, object, "type", json_string(type_names[e->type]));
	json_put(&j, object, "time_ns", json_count(e->time_ns));
	json_put(&j, object, "pid", json_count(e->pid));
	json_put(&j, object, "tid", json_count(e->tid));
	json_put(&j, object, "cpu", json_count(e->cpu));
	if (e->comm)
		json_put(&j, object, "comm", json_text(e->comm));
	if (e->api)
		json_put(&j, object, "api", json_text(e->api));
	if (e->type == RAW_LAUNCH)
		launch_json(&j, e, object);
	else if (e->type == RAW_CALL)
		operands_json(&j, e, object);
	else if (e->type == RAW_USER)
		user_json(&j, e, object);
	else if (e->type == RAW_FIELDS)
		fields_json(&j, e, object);
	else if (e->type == RAW_NAME)
		name_json(&j, e, object);
	else if (e->type == RAW_VARIABLE)
		variable_json(&j, e, object);
	if (e->type == RAW_LAUNCH || e->type == RAW_CALL || e->type == RAW_USER || e->type == RAW_FIELDS)
		result_json(&j, e, object);
	if (j.failed) {
		json_decref(object);
		return -ENOMEM;
	}
	return json_write(object, 0, out);
}

int view_raw_event(const struct raw_event *event, bool json, struct strbuf *out)
{
	int r = 0;

	if (json) {
		r = event_json(event, out);
		strbuf_addc(out, '\n');
	} else {
		event_text(event, out);
	}
	return r < 0 ? r : status(out);
}

int view_raw_lost(uint64_t events, bool json, struct strbuf *out)
{
	strbuf_addf(out, json ? "{\"type\":\"lost\",\"events\":%llu}\n" : "-- %llu events lost here\n",
		    (unsigned long long)events);
	return status(out);
}
