// SPDX-License-Identifier: Apache-2.0
/*
 * Figures of the arguments of functions that the user names, over all processes, from their events: the range
 * and the sum of numbers, and how often each string occurred. Of strings the first ARGUMENT_VALUES different
 * ones are counted apart, the others together; their ends beyond ARGUMENT_TEXT are cut.
 *
 * An event sink. Lost events are not in the figures, so that `count` may be below that of the calls.
 */
#pragma once

#include "activity/event_sink.h"
#include "trace/probe.h"

enum { ARGUMENT_VALUES = 8, ARGUMENT_TEXT = 64 };

struct argument_value {
	char text[ARGUMENT_TEXT];
	uint64_t count;
};

struct argument_figures {
	uint64_t count; /* of a string: those that could not be read included */
	uint64_t unread; /* whose memory could not be read */
	uint64_t min, max; /* of signed ones, as int64_t */
	double sum;
	struct argument_value values[ARGUMENT_VALUES];
	uint32_t values_n;
	uint64_t others; /* strings that are not among the values */
};

struct arguments {
	struct event_sink sink;
	struct argument_figures **of; /* by call, from probes_n on; USER_ARGS_MAX each; NULL: not seen yet */
};

/* -ENOMEM. */
int arguments_init(struct arguments *arguments);
void arguments_done(struct arguments *arguments);
/* In the order of its probe's arguments; NULL: none seen. */
const struct argument_figures *arguments_of(const struct arguments *arguments, uint16_t call);

/* The value of an argument in an event: a number, extended if it is signed. */
uint64_t argument_number(const struct trace_header *event, const struct user_probe *user, unsigned arg);
/* The string of an event; NULL: it could not be read, or the event has none. *ret_cut: it is longer. */
const char *argument_string(const struct trace_header *event, bool *ret_cut);
bool argument_is_signed(enum user_arg_type type);
