// SPDX-License-Identifier: Apache-2.0
#include "cuda/private.h"

static bool is_wait(uint8_t op)
{
	return op == TRACE_OP_SYNC_STREAM || op == TRACE_OP_SYNC_EVENT || op == TRACE_OP_SYNC_CONTEXT ||
	       op == TRACE_OP_SYNC_DEVICE;
}

static struct cuda_operator *sums_of(const struct cuda *cuda, const struct trace_header *header)
{
	return cuda->operators ? &cuda->operators[header->operator% TRACE_CALLS_MAX] : NULL;
}

void operator_call(struct cuda *cuda, const struct trace_call *call)
{
	struct cuda_operator *sums = sums_of(cuda, &call->header);

	if (!sums)
		return;
	if (call->header.op == TRACE_OP_COPY || call->header.op == TRACE_OP_SET)
		sums->copied_bytes = add_saturated(sums->copied_bytes, call->size);
	else if (call->header.op == TRACE_OP_ALLOC && memory_on_device((uint8_t)call->kind))
		sums->allocated_bytes = add_saturated(sums->allocated_bytes, call->size);
	else if (is_wait(call->header.op))
		sums->wait_ns = add_saturated(sums->wait_ns, call->duration_ns);
}

static struct operator_row *operator_row_get(struct cuda *cuda, struct process *p, uint32_t usage,
					     const struct trace_header *header)
{
	uint64_t key =
		salted(cuda, (uint64_t)usage << 32 | (uint64_t)header->forward << 16 | header->operator);
	uint32_t index;

	if (hashmap_get(&p->operator_map, key, &index))
		return pool_at(&p->operators, index);
	index = pool_take(&p->operators, sizeof(struct operator_row), OPERATOR_ROWS_MAX);
	if (index == NONE)
		return NULL;
	if (hashmap_put(&p->operator_map, key, index) < 0) {
		pool_give(&p->operators, index);
		return NULL;
	}
	struct operator_row *row = pool_at(&p->operators, index);

	row->usage = usage;
	row->operator= header->operator;
	row->forward = header->forward % TRACE_CALLS_MAX;
	return row;
}

void operator_launch(struct cuda *cuda, struct process *p, uint32_t usage, const struct trace_header *header,
		     uint64_t launches, double weight)
{
	struct cuda_operator *sums = sums_of(cuda, header);
	struct operator_row *row;

	if (!sums)
		return;
	sums->launches = add_saturated(sums->launches, launches);
	if (header->forward)
		cuda->operators[header->forward % TRACE_CALLS_MAX].backward_launches += launches;
	row = operator_row_get(cuda, p, usage, header);
	if (row)
		row->fresh += weight;
}

static double row_weight(const struct operator_row *row, const bool *launched)
{
	return launched[row->usage] ? row->fresh : row->old;
}

void operator_rows_share(struct cuda *cuda, struct process *p)
{
	double weights[USAGES_MAX] = { 0 };
	bool launched[USAGES_MAX] = { false };

	for (uint32_t i = 0; i < p->operators.n; i++) {
		const struct operator_row *row = pool_at(&p->operators, i);

		launched[row->usage] |= row->fresh > 0;
	}
	for (uint32_t i = 0; i < p->operators.n; i++) {
		const struct operator_row *row = pool_at(&p->operators, i);

		weights[row->usage] += row_weight(row, launched);
	}
	for (uint32_t i = 0; i < p->operators.n; i++) {
		struct operator_row *row = pool_at(&p->operators, i);
		double weight = row_weight(row, launched);

		if (weight > 0) {
			double ns = (double)p->usages[row->usage].busy_ns * weight / weights[row->usage];

			cuda->operators[row->operator].ns += ns;
			if (row->forward)
				cuda->operators[row->forward].backward_ns += ns;
		}
		if (launched[row->usage])
			row->old = row->fresh;
		row->fresh = 0;
	}
}

void operator_rows_done(struct process *p)
{
	pool_done(&p->operators);
	hashmap_done(&p->operator_map);
}

const struct cuda_operator *cuda_operators(const struct cuda *cuda, bool *ret_doubtful)
{
	*ret_doubtful = false;
	for (uint32_t i = 0; i < cuda->uuids_n; i++)
		*ret_doubtful |= cuda->totals[i].doubtful;
	return cuda->operators;
}
