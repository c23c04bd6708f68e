// SPDX-License-Identifier: Apache-2.0
#include "analysis/offsets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/row_list.h"

struct arrival {
	uint64_t communicator, sequence, ns;
	uint32_t node;
};

struct offsets {
	uint32_t nodes;
	struct row_list arrivals; /* struct arrival */
	uint32_t common[OFFSET_NODES_MAX][OFFSET_NODES_MAX];
};

struct offsets *offsets_new(uint32_t nodes)
{
	struct offsets *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	o->nodes = MIN(nodes, (uint32_t)OFFSET_NODES_MAX);
	o->arrivals = (struct row_list){ .size = sizeof(struct arrival), .max = OFFSET_ARRIVALS_MAX };
	return o;
}

void offsets_free(struct offsets *o)
{
	if (o)
		row_list_done(&o->arrivals);
	free(o);
}

void offsets_add(struct offsets *o, uint32_t node, uint64_t communicator, uint64_t sequence, uint64_t ns)
{
	struct arrival *arrival = node < o->nodes ? row_list_add(&o->arrivals) : NULL;

	if (arrival)
		*arrival = (struct arrival){ communicator, sequence, ns, node };
}

static int by_collective(const void *a, const void *b)
{
	const struct arrival *x = a, *y = b;

	if (x->communicator != y->communicator)
		return x->communicator < y->communicator ? -1 : 1;
	if (x->sequence != y->sequence)
		return x->sequence < y->sequence ? -1 : 1;
	return x->node != y->node ? (int)x->node - (int)y->node : (x->ns > y->ns) - (x->ns < y->ns);
}

/* Those from @i on that are of one collective; of each node's ranks the first, which comes first. */
static uint32_t collective_end(const struct offsets *o, uint32_t i)
{
	const struct arrival *list = o->arrivals.list;
	uint32_t end = i + 1;

	while (end < o->arrivals.n && list[end].communicator == list[i].communicator &&
	       list[end].sequence == list[i].sequence)
		end++;
	return end;
}

static const struct arrival *of_node(const struct arrival *from, const struct arrival *end, uint32_t node)
{
	while (from < end && from->node != node)
		from++;
	return from < end ? from : NULL;
}

static void count_common(struct offsets *o)
{
	const struct arrival *list = o->arrivals.list;

	for (uint32_t i = 0, end; i < o->arrivals.n; i = end) {
		uint64_t here = 0;

		end = collective_end(o, i);
		for (uint32_t k = i; k < end; k++)
			here |= UINT64_C(1) << list[k].node;
		for (uint32_t a = 0; a < o->nodes; a++)
			for (uint32_t b = 0; here >> a & 1 && b < o->nodes; b++)
				o->common[a][b] += here >> b & 1;
	}
}

static int compare_ns(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* Of what @known arrives later than @node. */
static int64_t median_between(const struct offsets *o, uint32_t known, uint32_t node, int64_t *differences)
{
	const struct arrival *list = o->arrivals.list;
	uint32_t n = 0;

	for (uint32_t i = 0, end; i < o->arrivals.n; i = end) {
		const struct arrival *a, *b;

		end = collective_end(o, i);
		a = of_node(list + i, list + end, known);
		b = of_node(list + i, list + end, node);
		if (a && b)
			differences[n++] = (int64_t)(a->ns - b->ns);
	}
	qsort(differences, n, sizeof(*differences), compare_ns);
	return n % 2 ? differences[n / 2] :
		       differences[n / 2 - 1] + (differences[n / 2] - differences[n / 2 - 1]) / 2;
}

/* The pair of a node that is known and one that is not, with the most in common. */
static uint32_t best_pair(const struct offsets *o, const bool *known, uint32_t *ret_known, uint32_t *ret_node)
{
	uint32_t best = 0;

	for (uint32_t a = 0; a < o->nodes; a++)
		for (uint32_t b = 0; known[a] && b < o->nodes; b++)
			if (!known[b] && o->common[a][b] > best) {
				best = o->common[a][b];
				*ret_known = a;
				*ret_node = b;
			}
	return best;
}

int offsets_solve(struct offsets *o, struct node_offset *ret_offsets)
{
	bool known[OFFSET_NODES_MAX] = { true };
	_cleanup_free_ int64_t *differences = calloc(o->arrivals.n + 1, sizeof(*differences));
	uint32_t a = 0, b = 0, common;

	if (!differences)
		return -ENOMEM;
	memset(ret_offsets, 0, o->nodes * sizeof(*ret_offsets));
	memset(o->common, 0, sizeof(o->common));
	if (o->arrivals.n > 0)
		qsort(o->arrivals.list, o->arrivals.n, sizeof(struct arrival), by_collective);
	count_common(o);
	while ((common = best_pair(o, known, &a, &b)) >= OFFSET_COMMON_MIN) {
		ret_offsets[b].offset_ns = ret_offsets[a].offset_ns + median_between(o, a, b, differences);
		ret_offsets[b].common = common;
		known[b] = true;
	}
	return 0;
}
