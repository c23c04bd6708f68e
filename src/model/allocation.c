// SPDX-License-Identifier: Apache-2.0
/* What each source says about who was given which device. A source's table is replaced as a whole. */
#include "model/private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"

#define COPY(member_) copy_text(to->member_, sizeof(to->member_), from->member_)

/* False: a row that tells nothing. Zeroes what lies between members, so that equal rows have equal bytes. */
static bool copy_row(struct allocation *to, const struct allocation *from, enum source_id source)
{
	memset(to, 0, sizeof(*to));
	to->workload = from->workload;
	to->source = source;
	to->slots = from->slots;
	to->estimated = from->estimated;
	to->claimed = from->claimed;
	COPY(id);
	COPY(pod_uid);
	COPY(namespace);
	COPY(pod);
	COPY(container);
	COPY(resource);
	to->device.kind = from->device.kind;
	to->device.index = from->device.index;
	to->device.gi = from->device.gi;
	to->device.ci = from->device.ci;
	to->device.mig = from->device.mig;
	COPY(device.uuid);
	if ((unsigned)to->workload >= WORKLOAD_KINDS || !to->id[0])
		to->workload = WORKLOAD_NONE;
	return to->device.kind > DEVICE_NOT && to->device.kind <= DEVICE_BY_MINOR &&
	       (to->workload != WORKLOAD_NONE || (to->namespace[0] && to->pod[0]));
}

static bool is_same(const struct allocation_table *a, const struct allocation_table *b)
{
	return a->n == b->n && (a->n == 0 || memcmp(a->rows, b->rows, a->n * sizeof(a->rows[0])) == 0);
}

int model_set_allocations(struct model *model, enum source_id source, const struct allocation *rows,
			  uint32_t n)
{
	uint32_t taken = MIN(n, (uint32_t)ALLOCATIONS_MAX);
	struct allocation_table *table = &model->allocations.tables[source], fresh = { 0 };
	uint64_t dropped = n - taken;

	if (taken > 0 && !(fresh.rows = calloc(taken, sizeof(fresh.rows[0]))))
		return -ENOMEM;
	for (uint32_t i = 0; i < taken; i++) {
		if (copy_row(&fresh.rows[fresh.n], &rows[i], source))
			fresh.n++;
		else
			dropped++;
	}
	model_set_source(model, source, READING_OK, "");
	if (is_same(&fresh, table)) {
		free(fresh.rows);
		return 0;
	}
	model->sources[source].s.dropped += dropped;
	free(table->rows);
	*table = fresh;
	model->allocations.changed = true;
	return 0;
}

void allocations_done(struct model *model)
{
	for (unsigned i = 0; i < SOURCES; i++)
		free(model->allocations.tables[i].rows);
	free(model->allocations.list);
}
