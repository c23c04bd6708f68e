// SPDX-License-Identifier: Apache-2.0
/*
 * The rows of GET /container/metrics: one for each GPU or GPU instance and each container that has it,
 * sorted.
 *
 *  - Who has a device alone has its figures in his row. A device that nobody has is a row without a pod.
 *  - Of a device that several share each has a row with what its own processes use of it, as far as that is
 *    known of all of them, and a row without a pod has the device's figures, less those: a sum over rows is
 *    the device's.
 *  - A GPU with MIG instances has a row, too, with what is measured of the GPU alone.
 *  - Devices that the driver does not have are those of DCGM exporters' pages, as these say. Of others the
 *    pages tell only who has a device of which we do not know that ourselves.
 */
#pragma once

#include "model/contract.h"
#include "model/snapshot.h"

/* Whose the figures are. */
enum row_scope {
	ROW_DEVICE, /* the device's */
	ROW_OWN, /* of a device that several share: the container's own */
	ROW_REST, /* of such a device: the device's, less what is in the others' rows */
};

/* Texts live as long as the rows and the snapshot; "" where there is none. */
struct container_row {
	const char *node, *model, *device, *gpu, *uuid;
	const char *mig_profile, *mig_instance; /* "" on a GPU */
	const char *pod, *container, *namespace;
	const char *owner_name, *owner_kind;
	enum row_scope scope;
	bool partitioned; /* a GPU whose MIG instances have rows of their own */
	bool stale;
	int64_t real_ns, boot_ns; /* when its figures were read */
	uint32_t present; /* 1 << enum contract_metric */
	double v[CONTRACT_METRICS]; /* in DCGM's units up to 4.8 */
};

struct container_rows;

/* -ENOMEM. */
int container_rows_new(const struct snapshot *snapshot, struct container_rows **ret_rows);
void container_rows_free(struct container_rows *rows);
const struct container_row *container_rows_list(const struct container_rows *rows, uint32_t *ret_n);

static inline bool container_row_has(const struct container_row *row, enum contract_metric metric)
{
	return (row->present >> metric & 1) != 0;
}
