// SPDX-License-Identifier: Apache-2.0
#include "view/blas.h"

#include "view/json/json.h"

static void add_sum(struct json_maker *j, json_t *object, const struct blas_sum *sum)
{
	json_put(j, object, "calls", json_count(sum->calls));
	json_put(j, object, "flop", json_number(sum->flop));
}

static json_t *json_sums(struct json_maker *j, const struct blas_sum sums[static BLAS_PRECISIONS])
{
	json_t *list = json_array();

	for (unsigned i = 0; i < BLAS_PRECISIONS; i++) {
		json_t *object;

		if (sums[i].calls == 0)
			continue;
		object = json_object();
		json_put(j, object, "precision", json_string(blas_precision_name((enum blas_precision)i)));
		add_sum(j, object, &sums[i]);
		json_push(j, list, object);
	}
	return list;
}

static json_t *json_name(const char *name)
{
	return name ? json_string(name) : json_null();
}

static json_t *json_shape(struct json_maker *j, const struct blas_row *row)
{
	static const char *const operands[] = { "type_a", "type_b", "type_c" };
	const struct blas_shape *shape = &row->shape;
	json_t *object = json_object();

	json_put(j, object, "precision",
		 json_string(blas_precision_name((enum blas_precision)shape->precision)));
	json_put(j, object, "m", json_count(shape->m));
	json_put(j, object, "n", json_count(shape->n));
	json_put(j, object, "k", json_count(shape->k));
	json_put(j, object, "batch", json_count(shape->batch));
	for (unsigned i = 0; i < BLAS_COMPUTE; i++)
		json_put(j, object, operands[i], json_name(blas_type_name(shape->types[i])));
	json_put(j, object, "compute", json_name(blas_compute_name(shape->types[BLAS_COMPUTE])));
	add_sum(j, object, &row->sum);
	return object;
}

static json_t *json_process(struct json_maker *j, const struct blas_view *view,
			    const struct blas_process *process)
{
	json_t *object = json_object(), *list = json_array(), *others = json_object();

	for (uint32_t i = 0; i < process->rows_n; i++)
		json_push(j, list, json_shape(j, &view->rows[process->rows_first + i]));
	add_sum(j, others, &process->others);
	json_put(j, object, "precisions", json_sums(j, process->by_precision));
	json_put(j, object, "shapes", list);
	json_put(j, object, "other_shapes", others);
	json_put(j, object, "unsized_calls", json_count(process->unsized));
	json_put(j, object, "failed_calls", json_count(process->failed));
	json_put(j, object, "peak_share_estimated",
		 process->peak_share >= 0 ? json_number(process->peak_share) : json_null());
	return object;
}

json_t *json_blas_of(struct json_maker *j, const struct blas_view *view, uint32_t pid, bool exited)
{
	for (uint32_t i = 0; view && i < view->processes_n; i++)
		if (view->processes[i].pid == pid && view->processes[i].exited == exited)
			return json_process(j, view, &view->processes[i]);
	return json_null();
}

json_t *json_blas_totals(struct json_maker *j, const struct blas_view *view)
{
	json_t *object;

	if (!view)
		return json_null();
	object = json_object();
	json_put(j, object, "precisions", json_sums(j, view->totals));
	json_put(j, object, "unsized_calls", json_count(view->unsized));
	json_put(j, object, "other_processes_calls", json_count(view->beyond));
	return object;
}

int json_blas(const struct blas_view *view, struct strbuf *out)
{
	struct json_maker j = { 0 };
	json_t *document = json_blas_totals(&j, view), *list = json_array();

	for (uint32_t i = 0; i < view->processes_n; i++) {
		const struct blas_process *process = &view->processes[i];
		json_t *object = json_process(&j, view, process);

		json_add_process(&j, object, process->pid, process->comm, process->exited);
		json_push(&j, list, object);
	}
	json_put(&j, document, "processes", list);
	return json_finish(&j, document, 0, out);
}
