// SPDX-License-Identifier: Apache-2.0
#include "agent/outputs/push_rows.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/macro.h"
#include "base/row_list.h"
#include "push/protocol.h"
#include "view/container/rows.h"

#define PUT(member_, text_) PUT_TEXT(row->member_, text_)

static void fill_row(const struct container_row *from, struct push_row *row)
{
	PUT(gpu, from->gpu);
	PUT(uuid, from->uuid);
	PUT(device, from->device);
	PUT(model, from->model);
	PUT(mig_profile, from->mig_profile);
	PUT(mig_instance, from->mig_instance);
	PUT(node, from->node);
	PUT(container, from->container);
	PUT(namespace, from->namespace);
	PUT(pod, from->pod);
	for (unsigned m = 0; m < CONTRACT_METRICS; m++) {
		if (!container_row_has(from, m) || !isfinite(from->v[m]))
			continue;
		row->v[m] = from->v[m];
		row->present |= 1u << m;
	}
}

/* What is old is no measurement of now, which is how the server takes it. */
static struct push_row *fill_rows(const struct container_rows *rows, uint32_t *ret_n, uint32_t *ret_dropped)
{
	uint32_t n, used = 0, dropped = 0;
	const struct container_row *list = container_rows_list(rows, &n);
	struct push_row *made = calloc(MIN(n, (uint32_t)PUSH_ROWS_MAX) + 1u, sizeof(*made));

	for (uint32_t i = 0; made && i < n; i++) {
		if (list[i].stale || list[i].present == 0)
			continue;
		if (used == PUSH_ROWS_MAX)
			dropped++;
		else
			fill_row(&list[i], &made[used++]);
	}
	*ret_n = used;
	*ret_dropped = dropped;
	return made;
}

static int write_rows(const struct push_row *rows, uint32_t n)
{
	_cleanup_close_ int fd = memfd_create("gpusonde-push", MFD_CLOEXEC);
	ssize_t r;

	if (fd < 0)
		return -errno;
	r = write_all(fd, rows, n * sizeof(*rows));
	return r < 0 ? (int)r : TAKE_FD(fd);
}

int push_rows(struct model *model, const struct snapshot *snapshot, uint32_t *ret_bytes)
{
	_cleanup_free_ struct push_row *made = NULL;
	struct container_rows *rows;
	uint32_t n, dropped;
	int r = container_rows_new(snapshot, &rows);

	if (r < 0)
		return r;
	made = fill_rows(rows, &n, &dropped);
	container_rows_free(rows);
	if (!made)
		return -ENOMEM;
	model_agent_add(model, AGENT_DROPPED_PUSH_ROWS, dropped);
	*ret_bytes = n * (uint32_t)sizeof(*made);
	return n == 0 ? -ENODATA : write_rows(made, n);
}
