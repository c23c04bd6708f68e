// SPDX-License-Identifier: Apache-2.0
#include "model/nccl_measured.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/saturated.h"
#include "model/private.h"

struct nccl_measurements *nccl_measurements_new(const struct nccl_measured *rows, uint32_t n)
{
	struct nccl_measurements *measurements = calloc(1, sizeof(*measurements) + n * sizeof(rows[0]));

	if (!measurements)
		return NULL;
	atomic_init(&measurements->refs, 1);
	measurements->n = n;
	if (n > 0)
		memcpy(measurements->rows, rows, n * sizeof(rows[0]));
	return measurements;
}

struct nccl_measurements *nccl_measurements_ref(struct nccl_measurements *measurements)
{
	if (measurements)
		atomic_fetch_add_explicit(&measurements->refs, 1, memory_order_relaxed);
	return measurements;
}

void nccl_measurements_unref(struct nccl_measurements *measurements)
{
	if (measurements && atomic_fetch_sub_explicit(&measurements->refs, 1, memory_order_acq_rel) == 1)
		free(measurements);
}

double nccl_algorithm_bandwidth(const struct nccl_measured *row)
{
	return row->seconds > 0 && row->ranks != NCCL_RANKS_UNKNOWN ? (double)row->traffic / row->seconds :
								      NAN;
}

double nccl_bus_bandwidth(const struct nccl_measured *row)
{
	return row->seconds > 0 && row->ranks != NCCL_RANKS_UNKNOWN ? row->bus_traffic / row->seconds : NAN;
}

const char *nccl_measured_operation(const struct nccl_measured *row)
{
	return row->operation < NCCL_OPERATIONS ? nccl_operation_name((enum nccl_operation)row->operation) :
						  "other";
}

void nccl_measured_add(struct nccl_measured *to, const struct nccl_measured *row)
{
	to->calls = add_saturated(to->calls, row->calls);
	to->bytes = add_saturated(to->bytes, row->bytes);
	to->proxy_operations = add_saturated(to->proxy_operations, row->proxy_operations);
	to->channels = MAX(to->channels, row->channels);
	if (row->ranks == NCCL_RANKS_UNKNOWN && to->ranks != NCCL_RANKS_UNKNOWN)
		return;
	to->timed = add_saturated(to->timed, row->timed);
	to->traffic = add_saturated(to->traffic, row->traffic);
	to->seconds += row->seconds;
	to->bus_traffic += row->bus_traffic;
	to->host_timed |= row->host_timed;
}

static struct nccl_measured *totals_find(struct nccl_totals *totals, uint8_t operation, uint32_t ranks)
{
	for (uint32_t i = 0; i < totals->n; i++)
		if (totals->rows[i].operation == operation && totals->rows[i].ranks == ranks)
			return &totals->rows[i];
	return NULL;
}

struct nccl_measured *nccl_totals_row(struct nccl_totals *totals, uint8_t operation, uint32_t ranks)
{
	struct nccl_measured *other = totals_find(totals, NCCL_OPERATIONS, NCCL_RANKS_OTHER),
			     *row = totals_find(totals, operation, ranks);

	if (!row && totals->n - (other != NULL) == NCCL_TOTALS_MAX - 1) {
		operation = NCCL_OPERATIONS;
		ranks = NCCL_RANKS_OTHER;
		row = other;
	}
	if (row)
		return row;
	row = &totals->rows[totals->n++];
	*row = (struct nccl_measured){ .operation = operation, .ranks = ranks };
	return row;
}

void nccl_totals_add(struct nccl_totals *to, const struct nccl_totals *totals)
{
	to->lost = add_saturated(to->lost, totals->lost);
	for (uint32_t i = 0; i < totals->n; i++)
		nccl_measured_add(nccl_totals_row(to, totals->rows[i].operation, totals->rows[i].ranks),
				  &totals->rows[i]);
}

void model_set_measured(struct model *model, struct nccl_measurements *measured)
{
	nccl_measurements_unref(model->measured);
	model->measured = nccl_measurements_ref(measured);
}
