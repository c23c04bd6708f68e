// SPDX-License-Identifier: Apache-2.0
/*
 * Operators of PyTorch with series of their own, and the sum of the others. Of those with a series, all rows
 * that are known; what was done outside of operators has operator="".
 */
#include "view/walk/private.h"

#include "base/macro.h"

struct operator_walk {
	struct walk *walk;
	const struct trace_view *view;
	const struct label_set **sets; /* by operator; NULL: it has no series */
	const struct label_set *other_set;
	struct traced_operator other; /* sums of those without */
};

static void add_other(struct traced_operator *other, const struct traced_operator *op)
{
	for (unsigned row = 0; row < OPERATOR_METRICS; row++)
		if (presence_is(op->p[row])) {
			other->v[row] += op->v[row];
			other->p[row] = PRESENCE_PRESENT | (op->p[row] & PRESENCE_ESTIMATED);
		}
}

static bool operator_walk_init(struct operator_walk *ow, struct walk *walk)
{
	const struct trace_view *view = walk->s->trace;

	*ow = (struct operator_walk){ .walk = walk, .view = view };
	ow->sets = walk_zeroes(walk, view->operators_n, sizeof(*ow->sets));
	ow->other_set = WALK_SET(walk, true, { "operator", WALK_OTHER });
	for (uint32_t i = 0; ow->sets && i < view->operators_n; i++)
		if (view->operators[i].has_series)
			ow->sets[i] = WALK_SET(walk, true, { "operator", view->operators[i].name });
		else
			add_other(&ow->other, &view->operators[i]);
	return ow->sets && !walk->failed;
}

static void walk_operator(struct operator_walk *ow, const struct traced_operator *op,
			  const struct label_set *set, unsigned row)
{
	if (presence_is(op->p[row]))
		walk_series(ow->walk, &(struct series){ .sets = { set },
							.value = op->v[row],
							.presence = op->p[row],
							.row = &operator_metrics[row],
							.entity = UINT32_MAX });
}

static void walk_estimated_operator(struct operator_walk *ow, const struct traced_operator *op,
				    const struct label_set *set, unsigned row)
{
	if (presence_estimated(op->p[row]))
		walk_series(ow->walk,
			    &(struct series){ .sets = { set, walk_metric_set(ow->walk, WALK_PREFIX,
									     operator_metrics[row].family) },
					      .value = 1,
					      .presence = PRESENCE_PRESENT,
					      .entity = UINT32_MAX });
}

/* Calls @fn for each series of a row. */
static void each_operator(struct operator_walk *ow, unsigned row,
			  void (*fn)(struct operator_walk *ow, const struct traced_operator *op,
				     const struct label_set *set, unsigned row))
{
	for (uint32_t i = 0; i < ow->view->operators_n; i++)
		if (ow->sets[i])
			fn(ow, &ow->view->operators[i], ow->sets[i], row);
	fn(ow, &ow->other, ow->other_set, row);
}

void walk_operators(struct walk *walk)
{
	struct operator_walk ow;

	if (!walk->s->trace || !walk->s->trace->operators || !operator_walk_init(&ow, walk))
		return;
	for (unsigned row = 0, end; row < OPERATOR_METRICS; row = end)
		if (walk_family_rows(walk, WALK_PREFIX, 0, NULL, operator_metrics, OPERATOR_METRICS, row,
				     &end))
			each_operator(&ow, row, walk_operator);
	if (walk_family_named(walk, "operator_estimated", FAMILY_GAUGE, UNIT_NONE,
			      "1 for each metric of the operator whose value is an estimate."))
		for (unsigned row = 0; row < OPERATOR_METRICS; row++)
			each_operator(&ow, row, walk_estimated_operator);
}
