// SPDX-License-Identifier: Apache-2.0
#include "push/batch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "base/macro.h"
#include "push/metrics.pb-c.h"

enum {
	PACKED_PIECE = 64 << 10,
	GZIP_WINDOW = 15 + 16, /* zlib's: the largest window, and gzip's frame */
	GZIP_MEMORY = 8,
};

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

void batch_done(struct batch *batch)
{
	free(batch->data);
	*batch = (struct batch){ 0 };
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

/* ---- how it is packed ---- */

struct packer {
	ProtobufCBuffer base; /* first */
	z_stream zip;
	struct batch batch;
	size_t room;
	int error; /* 0; -errno, and nothing more is taken */
};

static int grow_batch(struct packer *packer)
{
	size_t room = packer->room + PACKED_PIECE;
	uint8_t *more;

	if (packer->batch.n < packer->room)
		return 0;
	if (room > BATCH_BYTES_MAX)
		return -EFBIG;
	more = realloc(packer->batch.data, room);
	if (!more)
		return -ENOMEM;
	packer->batch.data = more;
	packer->room = room;
	return 0;
}

static void pack(struct packer *packer, const uint8_t *data, size_t n, int flush)
{
	int r = Z_OK;

	packer->zip.next_in = (uint8_t *)data;
	packer->zip.avail_in = (uInt)n;
	while (packer->error == 0 && r != Z_STREAM_END && (flush == Z_FINISH || packer->zip.avail_in > 0)) {
		size_t room;

		packer->error = grow_batch(packer);
		if (packer->error < 0)
			return;
		room = packer->room - packer->batch.n;
		packer->zip.next_out = packer->batch.data + packer->batch.n;
		packer->zip.avail_out = (uInt)room;
		r = deflate(&packer->zip, flush);
		packer->batch.n += room - packer->zip.avail_out;
		if (r != Z_OK && r != Z_STREAM_END && r != Z_BUF_ERROR)
			packer->error = -EIO;
	}
}

static void append_packed(ProtobufCBuffer *buffer, size_t n, const uint8_t *data)
{
	pack((struct packer *)buffer, data, n, Z_NO_FLUSH);
}

static int pack_tree(struct tree *tree, struct batch *ret_batch)
{
	Push__MetricsBatch message = PUSH__METRICS_BATCH__INIT;
	struct packer packer = { .base.append = append_packed };

	message.metrics = tree->metric_list;
	message.n_metrics = tree->metrics_n;
	if (deflateInit2(&packer.zip, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, GZIP_MEMORY,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	protobuf_c_message_pack_to_buffer(&message.base, &packer.base);
	pack(&packer, NULL, 0, Z_FINISH);
	deflateEnd(&packer.zip);
	if (packer.error < 0) {
		batch_done(&packer.batch);
		return packer.error;
	}
	*ret_batch = packer.batch;
	return 0;
}

int batch_make(const struct push_row *rows, uint32_t n, struct batch *ret_batch)
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
