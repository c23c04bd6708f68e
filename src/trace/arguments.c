// SPDX-License-Identifier: Apache-2.0
#include "trace/arguments.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

bool argument_is_signed(enum user_arg_type type)
{
	return type == USER_ARG_S32 || type == USER_ARG_S64;
}

uint64_t argument_number(const struct trace_header *event, const struct user_probe *user, unsigned arg)
{
	const struct trace_call *call = (const void *)event;
	const struct trace_name *name = (const void *)event;
	bool named = event->type == TRACE_EVENT_NAME;
	enum user_arg_type type = user->args[arg].type;
	uint64_t value = 0;

	switch (probe_user_operand(user, arg)) {
	case TRACE_OPERAND_HANDLE:
		value = named ? name->handle : call->handle;
		break;
	case TRACE_OPERAND_STREAM:
		value = named ? name->of : call->stream;
		break;
	case TRACE_OPERAND_ADDR:
		value = named ? 0 : call->addr;
		break;
	default:
		value = named ? 0 : call->size;
	}
	return type == USER_ARG_S32 ? (uint64_t)(int64_t)(int32_t)value : value;
}

const char *argument_string(const struct trace_header *event, bool *ret_cut)
{
	const struct trace_name *name = (const void *)event;

	*ret_cut = event->type == TRACE_EVENT_NAME && name->cut;
	return event->type == TRACE_EVENT_NAME && !(event->flags & TRACE_FLAG_UNREAD) ? name->name : NULL;
}

static void add_string(struct argument_figures *figures, const char *string)
{
	char text[ARGUMENT_TEXT];
	uint32_t i = 0;

	figures->count++;
	if (!string) {
		figures->unread++;
		return;
	}
	snprintf(text, sizeof(text), "%s", string);
	utf8_sanitize(text);
	while (i < figures->values_n && !STRV_EQ(figures->values[i].text, text))
		i++;
	if (i == ARGUMENT_VALUES) {
		figures->others++;
		return;
	}
	if (i == figures->values_n)
		memcpy(figures->values[figures->values_n++].text, text, sizeof(text));
	figures->values[i].count++;
}

static void add_number(struct argument_figures *figures, uint64_t value, bool is_signed)
{
	/* With the sign bit turned, signed numbers have the order of unsigned ones. */
	uint64_t turn = is_signed ? UINT64_C(1) << 63 : 0;

	figures->count++;
	if (figures->count == 1 || (value ^ turn) < (figures->min ^ turn))
		figures->min = value;
	if (figures->count == 1 || (value ^ turn) > (figures->max ^ turn))
		figures->max = value;
	figures->sum += is_signed ? (double)(int64_t)value : (double)value;
}

static int on_event(const struct trace_header *event, _unused_ uint32_t size, void *userdata)
{
	struct arguments *arguments = userdata;
	const struct user_probe *user;
	struct argument_figures **of;
	bool cut;

	if (event->call < probes_n || (event->type != TRACE_EVENT_CALL && event->type != TRACE_EVENT_NAME))
		return 0;
	user = &library_user()->at[probe_at(event->call)->user - 1];
	of = &arguments->of[event->call - probes_n];
	if (!*of && user->args_n > 0)
		*of = calloc(USER_ARGS_MAX, sizeof(**of));
	if (!*of)
		return user->args_n > 0 ? -ENOMEM : 0;
	for (unsigned i = 0; i < user->args_n; i++) {
		if (user->args[i].type == USER_ARG_STRING)
			add_string(&(*of)[i], argument_string(event, &cut));
		else if (event->type == TRACE_EVENT_CALL && event->flags & TRACE_FLAG_UNREAD)
			(*of)[i].unread++; /* one of them, on the stack: which is not known */
		else
			add_number(&(*of)[i], argument_number(event, user, i),
				   argument_is_signed(user->args[i].type));
	}
	return 0;
}

int arguments_init(struct arguments *arguments)
{
	*arguments = (struct arguments){
		.sink = { .sink = { .name = "arguments", .userdata = arguments }, .event = on_event },
		.of = calloc((size_t)(probe_calls_max() - probes_n) + 1, sizeof(struct argument_figures *)),
	};
	return arguments->of ? 0 : -ENOMEM;
}

void arguments_done(struct arguments *arguments)
{
	for (unsigned i = 0; arguments->of && i < (unsigned)(probe_calls() - probes_n); i++)
		free(arguments->of[i]);
	free(arguments->of);
	arguments->of = NULL;
}

const struct argument_figures *arguments_of(const struct arguments *arguments, uint16_t call)
{
	return call < probes_n || !arguments->of ? NULL : arguments->of[call - probes_n];
}
