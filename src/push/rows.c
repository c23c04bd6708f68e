// SPDX-License-Identifier: Apache-2.0
#include "push/rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "push/gzip.h"
#include "push/metrics.pb-c.h"

static const struct {
	const char *name;
	size_t offset;
} label_table[] = {
#define PUSH_LABEL(member_, bytes_, name_) { name_, offsetof(struct push_row, member_) },
#include "push/labels.def"
};

/* The labels of a row, which its measurements share. */
struct row_labels {
	Push__Label labels[ARRAY_SIZE(label_table)];
	Push__Label *list[ARRAY_SIZE(label_table)];
	size_t n;
};

struct tree {
	struct row_labels *labels;
	Push__Measurement *measurements;
	Push__Measurement **list;
	Push__Metric metrics[CONTRACT_METRICS];
	Push__Metric *metric_list[CONTRACT_METRICS];
	size_t metrics_n;
};

static void tree_done(struct tree *tree)
{
	free(tree->labels);
	free(tree->measurements);
	free(tree->list);
}

/* ---- what is in it ---- */

static void set_labels(const struct push_row *row, struct row_labels *labels)
{
	for (size_t i = 0; i < ARRAY_SIZE(label_table); i++) {
		const char *text = (const char *)row + label_table[i].offset;
		Push__Label *label = &labels->labels[labels->n];

		if (!*text)
			continue;
		push__label__init(label);
		label->name = (char *)label_table[i].name;
		label->value = (char *)text;
		labels->list[labels->n++] = label;
	}
}

/* Adds the metric with what rows have of it, at @at of both lists. Returns how many these are. */
static size_t add_metric(struct tree *tree, const struct push_row *rows, uint32_t n, unsigned which,
			 size_t at)
{
	Push__Metric *metric = &tree->metrics[tree->metrics_n];
	size_t used = 0;

	for (uint32_t i = 0; i < n; i++) {
		Push__Measurement *measurement = &tree->measurements[at + used];

		if (!(rows[i].present >> which & 1))
			continue;
		push__measurement__init(measurement);
		measurement->value = rows[i].v[which];
		measurement->labels = tree->labels[i].list;
		measurement->n_labels = tree->labels[i].n;
		tree->list[at + used++] = measurement;
	}
	if (used == 0)
		return 0;
	push__metric__init(metric);
	metric->name = (char *)contract_rows[which].name;
	metric->measurements = &tree->list[at];
	metric->n_measurements = used;
	tree->metric_list[tree->metrics_n++] = metric;
	return used;
}

static int make_tree(const struct push_row *rows, uint32_t n, struct tree *tree)
{
	size_t values = 0, at = 0;

	for (uint32_t i = 0; i < n; i++)
		values += (size_t)__builtin_popcount(rows[i].present);
	tree->labels = calloc(n + 1u, sizeof(*tree->labels));
	tree->measurements = calloc(values + 1, sizeof(*tree->measurements));
	tree->list = calloc(values + 1, sizeof(*tree->list));
	if (!tree->labels || !tree->measurements || !tree->list)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		set_labels(&rows[i], &tree->labels[i]);
	for (unsigned which = 0; which < CONTRACT_METRICS; which++)
		at += add_metric(tree, rows, n, which, at);
	return 0;
}

static int pack_tree(struct tree *tree, struct batch *ret_batch)
{
	Push__MetricsBatch message = PUSH__METRICS_BATCH__INIT;
	int r;

	message.metrics = tree->metric_list;
	message.n_metrics = tree->metrics_n;
	r = gzip_message(&message.base, ret_batch);
	for (size_t i = 0; r == 0 && i < tree->metrics_n; i++)
		ret_batch->samples += (uint32_t)tree->metrics[i].n_measurements;
	return r;
}

int rows_make(const struct push_row *rows, uint32_t n, struct batch *ret_batch)
{
	struct tree tree = { 0 };
	struct batch batch = { 0 };
	int r = make_tree(rows, n, &tree);

	if (r == 0 && tree.metrics_n > 0)
		r = pack_tree(&tree, &batch);
	tree_done(&tree);
	if (r == 0)
		*ret_batch = batch;
	return r;
}

/* ---- the kind ---- */

static void terminate_row(struct push_row *row)
{
#define PUSH_LABEL(member_, bytes_, name_) row->member_[sizeof(row->member_) - 1] = '\0';
#include "push/labels.def"
}

static int make_rows(_unused_ void *state, const void *data, size_t n, struct batches *batches)
{
	size_t rows_n = n / sizeof(struct push_row);
	_cleanup_free_ struct push_row *rows = NULL;
	struct batch batch = { 0 };
	int r;

	if (rows_n > PUSH_ROWS_MAX || rows_n * sizeof(*rows) != n)
		return -EBADMSG;
	rows = malloc(n + 1);
	if (!rows)
		return -ENOMEM;
	memcpy(rows, data, n);
	for (size_t i = 0; i < rows_n; i++)
		terminate_row(&rows[i]);
	r = rows_make(rows, (uint32_t)rows_n, &batch);
	return r == 0 && batch.n > 0 ? batches_add(batches, &batch) : r;
}

static const char *const *row_headers(_unused_ uint32_t format)
{
	static const char *const headers[] = { "Content-Type: application/protobuf", "Content-Encoding: gzip",
					       NULL };

	return headers;
}

static void add_row_path(struct strbuf *url, const char *cluster)
{
	strbuf_addf(url, "/v1/kubernetes/clusters/%s/gpu-metrics", cluster);
}

const struct push_kind rows_kind = {
	.name = "push",
	.section = "push",
	.url = "url",
	.add_path = add_row_path,
	.key_header = "X-API-Key",
	.headers = row_headers,
	.make = make_rows,
};
