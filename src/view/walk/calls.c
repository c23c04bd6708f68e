// SPDX-License-Identifier: Apache-2.0
/*
 * Traced calls by name, summed over all processes: at most as many series as there are probes.
 */
#include "view/walk/private.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/macro.h"

struct call_walk {
	struct walk *walk;
	const struct trace_view *view;
	const char *layer; /* struct traced_call's */
	/* label api; NULL: the name of the previous call again, or a call of another layer */
	const struct label_set **sets;
};

static bool call_is_of(const struct traced_call *call, const char *layer)
{
	return call->layer && STRV_EQ(call->layer, layer);
}

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
static void walk_failed_calls(const struct call_walk *cw, const char *family)
{
	uint64_t failed = 0;

	if (!cw->view->enabled || !walk_family_named(cw->walk, family, FAMILY_COUNTER, UNIT_NONE,
						     "Traced calls that failed; 0 before the first."))
		return;
	for (uint32_t i = 0; i < cw->view->all_calls_n; i++)
		if (call_is_of(&cw->view->all_calls[i], cw->layer))
			failed += cw->view->all_calls[i].errors;
	walk_series(cw->walk, &(struct series){ .value = (double)failed,
						.presence = PRESENCE_PRESENT,
						.entity = UINT32_MAX });
}

void walk_durations(struct walk *walk, const struct label_set *set, const uint64_t within[static TRACED_LE],
		    double seconds)
{
	uint64_t cumulative[TRACED_LE], least = 0;
	struct histogram histogram = { .bounds = traced_le,
				       .first = TRACED_LE_FIRST,
				       .within = cumulative,
				       .all = TRACED_LE,
				       .n = TRACED_LE_SHOWN,
				       .sum = seconds };

	for (unsigned k = 0; k < TRACED_LE; k++)
		cumulative[k] = least = MAX(least, MIN(within[k], within[TRACED_LE - 1]));
	histogram.count = least;
	if (least > 0)
		walk_series(walk, &(struct series){ .sets = { set },
						    .histogram = &histogram,
						    .presence = PRESENCE_PRESENT,
						    .entity = UINT32_MAX });
}

static bool call_walk_init(struct call_walk *cw, struct walk *walk, const char *layer)
{
	const struct trace_view *view = walk->s->trace;

	*cw = (struct call_walk){ .walk = walk, .view = view, .layer = layer };
	cw->sets = walk_zeroes(walk, view->all_calls_n, sizeof(*cw->sets));
	for (uint32_t i = 0; cw->sets && i < view->all_calls_n; i++)
		if (call_is_of(&view->all_calls[i], layer) &&
		    (i == 0 || !STRV_EQ(view->all_calls[i - 1].api, view->all_calls[i].api)))
			cw->sets[i] = WALK_SET(walk, true, { "api", view->all_calls[i].api });
	return cw->sets != NULL;
}

/* Families of a layer's calls. Names are written out, so that they can be searched for. */
struct call_families {
	const char *layer, *calls, *errors, *failed, *bytes, *durations;
	const char *codes; /* of errors, for the help text */
};

static void walk_layer(struct walk *walk, const struct call_families *names)
{
	const struct traced_call *calls;
	struct call_walk cw;

	if (!call_walk_init(&cw, walk, names->layer))
		return;
	calls = cw.view->all_calls;
	if (walk_family_named(walk, names->calls, FAMILY_COUNTER, UNIT_NONE,
			      "Traced calls of all processes, failed ones included; nested calls count once, "
			      "by the outer name."))
		for (uint32_t i = 0; i < cw.view->all_calls_n; i++)
			if (cw.sets[i])
				walk_call(&cw, i, NULL, (double)calls[i].count);
	if (walk_family_named(walk, names->errors, FAMILY_COUNTER, UNIT_NONE, names->codes))
		for (uint32_t i = 0; i < cw.view->all_calls_n; i++)
			if (cw.sets[i])
				walk_call_errors(&cw, i);
	walk_failed_calls(&cw, names->failed);
	if (walk_family_named(walk, names->bytes, FAMILY_COUNTER, UNIT_BYTES,
			      "Bytes that successful traced calls were asked to allocate, copy, set or "
			      "send."))
		for (uint32_t i = 0; i < cw.view->all_calls_n; i++)
			if (calls[i].bytes > 0 && cw.sets[i])
				walk_call(&cw, i, NULL, (double)calls[i].bytes);
	if (walk_family_named(walk, names->durations, FAMILY_HISTOGRAM, UNIT_SECONDS,
			      "Time from entry to return of traced calls whose return was traced, not of the "
			      "work that they start."))
		for (uint32_t i = 0; i < cw.view->all_calls_n; i++)
			if (cw.sets[i])
				walk_durations(walk, cw.sets[i], calls[i].within, calls[i].seconds);
}

void walk_calls(struct walk *walk)
{
	static const struct call_families layers[] = {
		{ "cuda", "cuda_calls_total", "cuda_call_errors_total", "cuda_failed_calls_total",
		  "cuda_call_bytes_total", "cuda_call_duration_seconds",
		  "Traced calls that failed, by CUresult or, of the runtime's calls, cudaError_t." },
		{ "nccl", "nccl_calls_total", "nccl_call_errors_total", "nccl_failed_calls_total",
		  "nccl_call_bytes_total", "nccl_call_duration_seconds",
		  "Traced calls that failed, by ncclResult_t." },
	};

	for (size_t i = 0; walk->s->trace && i < ARRAY_SIZE(layers); i++)
		walk_layer(walk, &layers[i]);
}
