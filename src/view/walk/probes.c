// SPDX-License-Identifier: Apache-2.0
/*
 * Functions that the user names (trace.probes), summed over all processes. The first that were found have
 * series of their own (trace/probe.c), the others one together: which functions a library has, a user may
 * choose.
 */
#include "view/walk/private.h"

struct probe_walk {
	struct walk *walk;
	const struct trace_view *view;
	const struct traced_call **calls;
	const struct label_set **sets; /* library, function */
	uint32_t n;
	struct traced_call others;
};

static void add_other(struct traced_call *others, const struct traced_call *call)
{
	others->count += call->count;
	others->timed += call->timed;
	others->errors += call->errors;
	others->seconds += call->seconds;
	for (unsigned k = 0; k < TRACED_LE; k++)
		others->within[k] += call->within[k];
}

static void add_call(struct probe_walk *pw, const struct traced_call *call, const char *library,
		     const char *function)
{
	pw->calls[pw->n] = call;
	pw->sets[pw->n++] = WALK_SET(pw->walk, true, { "library", library }, { "function", function });
}

static bool probe_walk_init(struct probe_walk *pw, struct walk *walk)
{
	const struct trace_view *view = walk->s->trace;

	*pw = (struct probe_walk){ .walk = walk, .view = view };
	pw->calls = walk_zeroes(walk, view->all_calls_n + 1, sizeof(*pw->calls));
	pw->sets = walk_zeroes(walk, view->all_calls_n + 1, sizeof(*pw->sets));
	if (!pw->calls || !pw->sets)
		return false;
	for (uint32_t i = 0; i < view->all_calls_n; i++) {
		const struct traced_call *call = &view->all_calls[i];

		if (call->library && call->has_series)
			add_call(pw, call, call->library, call->api);
		else if (call->library)
			add_other(&pw->others, call);
	}
	if (pw->others.count > 0)
		add_call(pw, &pw->others, WALK_OTHER, WALK_OTHER);
	return pw->n > 0;
}

/* Of numbers; a string has no sum. */
static void walk_arguments(struct probe_walk *pw, uint32_t i, bool sums)
{
	const struct traced_call *call = pw->calls[i];

	for (uint32_t k = 0; k < call->arguments_n; k++) {
		const struct traced_argument *argument = &pw->view->arguments[call->arguments_first + k];

		if (!argument->is_text)
			walk_call_value(pw->walk, pw->sets[i],
					WALK_SET(pw->walk, false,
						 { "argument", walk_number(pw->walk, argument->position) }),
					sums ? argument->sum : (double)argument->count);
	}
}

void walk_probes(struct walk *walk)
{
	struct probe_walk pw;

	if (!walk->s->trace || !probe_walk_init(&pw, walk))
		return;
	if (walk_family_named(walk, "probe_calls_total", FAMILY_COUNTER, UNIT_NONE,
			      "Calls of functions that trace.probes names, of all processes."))
		for (uint32_t i = 0; i < pw.n; i++)
			walk_call_value(walk, pw.sets[i], NULL, (double)pw.calls[i]->count);
	if (walk_family_named(walk, "probe_call_errors_total", FAMILY_COUNTER, UNIT_NONE,
			      "Calls of such functions that failed, where returns:status or returns:pointer "
			      "says how that is seen."))
		for (uint32_t i = 0; i < pw.n; i++)
			if (pw.calls[i]->timed > 0)
				walk_call_value(walk, pw.sets[i], NULL, (double)pw.calls[i]->errors);
	if (walk_family_named(walk, "probe_call_duration_seconds", FAMILY_HISTOGRAM, UNIT_SECONDS,
			      "Time from entry to return of such functions with returns."))
		for (uint32_t i = 0; i < pw.n; i++)
			walk_durations(walk, pw.sets[i], pw.calls[i]->within, pw.calls[i]->seconds);
	if (walk_family_named(walk, "probe_argument_values", FAMILY_UNKNOWN, UNIT_NONE,
			      "Arguments of such functions that were seen, of those that are numbers."))
		for (uint32_t i = 0; i < pw.n; i++)
			walk_arguments(&pw, i, false);
	if (walk_family_named(
		    walk, "probe_argument_sum", FAMILY_UNKNOWN, UNIT_NONE,
		    "Sum of these arguments: by rate, divided by that of probe_argument_values, their "
		    "mean."))
		for (uint32_t i = 0; i < pw.n; i++)
			walk_arguments(&pw, i, true);
}
