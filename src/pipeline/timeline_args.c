// SPDX-License-Identifier: Apache-2.0
/* Arguments of events in a timeline. */
#include "pipeline/timeline_private.h"

void timeline_put_arg(struct trace_timeline *t, struct timeline_event *event, const char *literal,
		      enum timeline_arg_type type, uint64_t value)
{
	struct timeline_arg *arg = &event->args[event->args_n];

	if (event->args_n < TIMELINE_ARGS && trace_timeline_key(t, literal, &arg->key)) {
		arg->type = (uint8_t)type;
		arg->value = value;
		event->args_n++;
	} else {
		t->missing.cut++;
	}
}

void timeline_put_text_arg(struct trace_timeline *t, struct timeline_event *event, const char *literal,
			   const char *text)
{
	uint32_t number;

	if (trace_timeline_text(t, text, &number))
		timeline_put_arg(t, event, literal, TIMELINE_TEXT, number);
	else
		t->missing.cut++;
}

static enum timeline_arg_type type_of(enum raw_number number)
{
	return number == RAW_SIGNED   ? TIMELINE_SIGNED :
	       number == RAW_UNSIGNED ? TIMELINE_UNSIGNED :
					TIMELINE_POINTER;
}

static void put_operands(struct trace_timeline *t, struct timeline_event *event, const struct raw_event *raw)
{
	static const struct {
		const char *name;
		enum timeline_arg_type type;
	} operands[RAW_OPERANDS] = {
		[RAW_ADDR] = { "addr", TIMELINE_POINTER },     [RAW_SIZE] = { "bytes", TIMELINE_UNSIGNED },
		[RAW_STREAM] = { "stream", TIMELINE_POINTER }, [RAW_HANDLE] = { "handle", TIMELINE_POINTER },
		[RAW_KIND] = { "kind", TIMELINE_UNSIGNED },
	};

	for (unsigned i = 0; i < RAW_OPERANDS; i++)
		if (raw->call.has[i])
			timeline_put_arg(t, event, operands[i].name, operands[i].type, raw->call.value[i]);
}

static void put_fields(struct trace_timeline *t, struct timeline_event *event, const struct raw_event *raw)
{
	for (unsigned i = 0; i < raw->fields.n; i++) {
		const struct raw_field *field = &raw->fields.at[i];

		if (field->text)
			timeline_put_text_arg(t, event, field->name, field->text);
		else
			timeline_put_arg(t, event, field->name, type_of(field->number), field->value);
	}
}

static void put_user(struct trace_timeline *t, struct timeline_event *event, const struct raw_event *raw)
{
	static const char *const names[RAW_ARGUMENTS_MAX] = { "arg0", "arg1", "arg2", "arg3" };

	for (unsigned i = 0; i < raw->user.n; i++) {
		const struct raw_argument *arg = &raw->user.at[i];
		const char *name = names[MIN(arg->position, RAW_ARGUMENTS_MAX - 1U)];

		if (!arg->is_text)
			timeline_put_arg(t, event, name, type_of(arg->number), arg->value);
		else if (arg->text)
			timeline_put_text_arg(t, event, name, arg->text);
	}
}

static void put_launch(struct trace_timeline *t, struct timeline_event *event, const struct raw_event *raw)
{
	timeline_put_arg(t, event, "grid", TIMELINE_DIMENSIONS, timeline_dimensions(raw->launch.grid));
	timeline_put_arg(t, event, "block", TIMELINE_DIMENSIONS, timeline_dimensions(raw->launch.block));
	timeline_put_arg(t, event, "shared_bytes", TIMELINE_UNSIGNED, raw->launch.shared_bytes);
	timeline_put_arg(t, event, "stream", TIMELINE_POINTER, raw->launch.stream);
}

void timeline_put_operands(struct trace_timeline *t, struct timeline_event *event,
			   const struct raw_event *raw)
{
	switch (raw->type) {
	case RAW_CALL:
		put_operands(t, event, raw);
		break;
	case RAW_FIELDS:
		put_fields(t, event, raw);
		break;
	case RAW_USER:
		put_user(t, event, raw);
		break;
	case RAW_LAUNCH:
		put_launch(t, event, raw);
		break;
	default:
		break;
	}
}
