// SPDX-License-Identifier: Apache-2.0
#include "view/json/json.h"

#include <errno.h>

#include "view/view.h"

static json_t *json_operator(struct json_maker *j, const struct traced_operator *op)
{
	json_t *object = json_object();
	const struct json_rows rows = {
		.rows = operator_metrics,
		.n = OPERATOR_METRICS,
		.v = op->v,
		.p = op->p,
		.strip = "operator_",
	};

	/* null: what was done outside of operators. */
	json_put(j, object, "name", json_text_or_null(op->name));
	json_add_rows(j, object, &rows);
	return object;
}

json_t *json_operator_list(struct json_maker *j, const struct traced_operator *operators, uint32_t n)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < n; i++)
		json_push(j, list, json_operator(j, &operators[i]));
	return list;
}

json_t *json_operators(struct json_maker *j, const struct trace_view *view)
{
	return view->operators ? json_operator_list(j, view->operators, view->operators_n) : json_null();
}

int view_operators(const struct trace_view *view, struct strbuf *out)
{
	struct json_maker j = { 0 };
	json_t *list = json_operators(&j, view);
	int r = j.failed || !list ? -ENOMEM : json_write(list, 0, out);

	json_decref(list);
	return r;
}
