// SPDX-License-Identifier: Apache-2.0
#include "cuda/private.h"

static bool is_wait(uint8_t op)
{
	return op == TRACE_OP_SYNC_STREAM || op == TRACE_OP_SYNC_EVENT || op == TRACE_OP_SYNC_CONTEXT ||
	       op == TRACE_OP_SYNC_DEVICE;
}

/* ---- sums ---- */

/* What a process has of an operator. NULL: it has too many of them. */
static struct cuda_operator *own_sums(const struct cuda *cuda, struct process *p, uint16_t operator)
{
	uint64_t key = salted(cuda, operator);
	struct operator_sums *sums;
	uint32_t index;

	if (hashmap_get(&p->operator_sum_map, key, &index)) {
		sums = pool_at(&p->operator_sums, index);
		return &sums->sums;
	}
	index = pool_take(&p->operator_sums, sizeof(*sums), OPERATOR_SUMS_MAX);
	if (index != NONE && hashmap_put(&p->operator_sum_map, key, index) < 0) {
		pool_give(&p->operator_sums, index);
		index = NONE;
	}
	if (index == NONE) {
		p->operators_beyond = true;
		return NULL;
	}
	sums = pool_at(&p->operator_sums, index);
	sums->operator= operator;
	return &sums->sums;
}

/* What was done counts for the process and for all together. */
static void sums_add(struct cuda *cuda, struct process *p, uint16_t operator,
		     const struct cuda_operator *done)
{
	struct cuda_operator *const to[] = { &cuda->operators[operator% TRACE_CALLS_MAX],
					     own_sums(cuda, p, operator% TRACE_CALLS_MAX) };

	for (unsigned i = 0; i < ARRAY_SIZE(to) && to[i]; i++) {
		to[i]->launches = add_saturated(to[i]->launches, done->launches);
		to[i]->copied_bytes = add_saturated(to[i]->copied_bytes, done->copied_bytes);
		to[i]->allocated_bytes = add_saturated(to[i]->allocated_bytes, done->allocated_bytes);
		to[i]->wait_ns = add_saturated(to[i]->wait_ns, done->wait_ns);
		to[i]->ns += done->ns;
		to[i]->backward_launches = add_saturated(to[i]->backward_launches, done->backward_launches);
		to[i]->backward_ns += done->backward_ns;
	}
}

void operator_call(struct cuda *cuda, struct process *p, const struct trace_call *call)
{
	struct cuda_operator done = { 0 };

	if (!cuda->operators)
		return;
	if (call->header.op == TRACE_OP_COPY || call->header.op == TRACE_OP_SET)
		done.copied_bytes = call->size;
	else if (call->header.op == TRACE_OP_ALLOC && memory_on_device((uint8_t)call->kind))
		done.allocated_bytes = call->size;
	else if (is_wait(call->header.op))
		done.wait_ns = call->duration_ns;
	else
		return;
	sums_add(cuda, p, call->header.operator, &done);
}

/* ---- launches ---- */

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
	const struct cuda_operator done = { .launches = launches },
				   backward = { .backward_launches = launches };
	struct operator_row *row;

	if (!cuda->operators)
		return;
	sums_add(cuda, p, header->operator, &done);
	if (header->forward)
		sums_add(cuda, p, header->forward, &backward);
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
			const struct cuda_operator done = { .ns = ns }, backward = { .backward_ns = ns };

			sums_add(cuda, p, row->operator, &done);
			if (row->forward)
				sums_add(cuda, p, row->forward, &backward);
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
	pool_done(&p->operator_sums);
	hashmap_done(&p->operator_sum_map);
}

/* ---- figures ---- */

const struct cuda_operator *cuda_operators(const struct cuda *cuda, bool *ret_doubtful)
{
	*ret_doubtful = false;
	for (uint32_t i = 0; i < cuda->uuids_n; i++)
		*ret_doubtful |= cuda->totals[i].doubtful;
	return cuda->operators;
}

bool cuda_process_operators(const struct cuda *cuda, uint32_t tgid, uint64_t incarnation,
			    cuda_operator_fn *each, void *userdata, bool *ret_doubtful)
{
	uint32_t i = LOWER_BOUND(cuda->shown_n, middle, cuda->shown[middle]->tgid < tgid);

	for (; i < cuda->shown_n && cuda->shown[i]->tgid == tgid; i++) {
		const struct process *p = cuda->shown[i];

		if (p->incarnation != incarnation)
			continue;
		for (uint32_t k = 0; k < p->operator_sums.n; k++) {
			const struct operator_sums *sums = pool_at(&p->operator_sums, k);

			each(sums->operator, &sums->sums, userdata);
		}
		*ret_doubtful = p->operators_beyond ||
				(counter_presence(p, TRACED_LAUNCHES) & PRESENCE_ESTIMATED) != 0;
		return true;
	}
	return false;
}
