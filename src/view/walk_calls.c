// SPDX-License-Identifier: Apache-2.0
/*
 * Traced calls by name, summed over all processes: at most as many series as there are probes.
 */
#include "view/walk_private.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/macro.h"

struct call_walk {
	struct walk *walk;
	const struct trace_view *view;
	/* label api; NULL: the name of the previous call again, or of a function that the user named */
	const struct label_set **sets;
};

void walk_call_value(struct walk *walk, const struct label_set *call, const struct label_set *more,
		     double value)
{
	walk_series(walk, &(struct series){ .sets = { call, more },
					    .value = value,
					    .presence = PRESENCE_PRESENT,
					    .entity = UINT32_MAX });
}

static void walk_call(struct call_walk *cw, uint32_t i, const struct label_set *more, double value)
{
	walk_call_value(cw->walk, cw->sets[i], more, value);
}

static void walk_call_errors(struct call_walk *cw, uint32_t i)
{
	const struct traced_call *call = &cw->view->all_calls[i];
	char text[16];

	for (uint32_t k = 0; k < call->errors_n; k++) {
		const struct traced_error *error = &cw->view->errors[call->errors_first + k];

		snprintf(text, sizeof(text), "%" PRId32, error->code);
		walk_call(cw, i,
			  WALK_SET(cw->walk, false,
				   { "code",
				     error->code == INT32_MIN ? WALK_OTHER : walk_text(cw->walk, text, "") }),
			  (double)error->count);
	}
}

/* Of all calls, since the series of a code begins with its first failure, which increase() does not see. */
static void walk_failed_calls(struct walk *walk, const struct trace_view *view)
{
	uint64_t failed = 0;

	if (!view->enabled || !walk_family_named(walk, "cuda_failed_calls_total", FAMILY_COUNTER, UNIT_NONE,
						 "Traced calls that failed; 0 before the first."))
		return;
	for (uint32_t i = 0; i < view->all_calls_n; i++)
		failed += view->all_calls[i].library ? 0 : view->all_calls[i].errors;
	walk_series(walk, &(struct series){ .value = (double)failed,
					    .presence = PRESENCE_PRESENT,
					    .entity = UINT32_MAX });
}

void walk_call_durations(struct walk *walk, const struct label_set *set, const struct traced_call *call)
{
	uint64_t below[TRACED_LE], least = 0;
	const struct histogram histogram = { .bounds = traced_le,
					     .below = below,
					     .n = TRACED_LE,
					     .count = call->timed,
					     .sum = call->seconds };

	for (unsigned k = 0; k < TRACED_LE; k++)
		below[k] = least = MAX(least, MIN(call->le[k], call->timed));
	walk_series(walk, &(struct series){ .sets = { set },
					    .histogram = &histogram,
					    .presence = PRESENCE_PRESENT,
					    .entity = UINT32_MAX });
}

static bool call_walk_init(struct call_walk *cw, struct walk *walk)
{
	const struct trace_view *view = walk->s->trace;

	*cw = (struct call_walk){ .walk = walk, .view = view };
	cw->sets = walk_zeroes(walk, view->all_calls_n, sizeof(*cw->sets));
	for (uint32_t i = 0; cw->sets && i < view->all_calls_n; i++)
		if (!view->all_calls[i].library &&
		    (i == 0 || !STRV_EQ(view->all_calls[i - 1].api, view->all_calls[i].api)))
			cw->sets[i] = WALK_SET(walk, true, { "api", view->all_calls[i].api });
	return cw->sets != NULL;
}

void walk_calls(struct walk *walk)
{
	const struct traced_call *calls;
	struct call_walk cw;

	if (!walk->s->trace || !call_walk_init(&cw, walk))
		return;
	calls = cw.view->all_calls;
	if (walk_family_named(walk, "cuda_calls_total", FAMILY_COUNTER, UNIT_NONE,
			      "Traced calls of all processes, failed ones included; nested calls count once, "
			      "by the outer name."))
		for (uint32_t i = 0; i < cw.view->all_calls_n; i++)
			if (cw.sets[i])
				walk_call(&cw, i, NULL, (double)calls[i].count);
	if (walk_family_named(
		    walk, "cuda_call_errors_total", FAMILY_COUNTER, UNIT_NONE,
		    "Traced calls that failed, by CUresult or, of the runtime's calls, cudaError_t."))
		for (uint32_t i = 0; i < cw.view->all_calls_n; i++)
			if (cw.sets[i])
				walk_call_errors(&cw, i);
	walk_failed_calls(walk, cw.view);
	if (walk_family_named(walk, "cuda_call_bytes_total", FAMILY_COUNTER, UNIT_BYTES,
			      "Bytes that successful traced calls were asked to allocate, copy or set."))
		for (uint32_t i = 0; i < cw.view->all_calls_n; i++)
			if (calls[i].bytes > 0 && cw.sets[i])
				walk_call(&cw, i, NULL, (double)calls[i].bytes);
	if (walk_family_named(walk, "cuda_call_duration_seconds", FAMILY_HISTOGRAM, UNIT_SECONDS,
			      "Time from entry to return of traced calls whose return was traced, not of the "
			      "work that they start."))
		for (uint32_t i = 0; i < cw.view->all_calls_n; i++)
			if (calls[i].timed > 0 && cw.sets[i])
				walk_call_durations(walk, cw.sets[i], &calls[i]);
}
