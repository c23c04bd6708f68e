// SPDX-License-Identifier: Apache-2.0
/*
 * Which processes of an agent's document are shown, and in what order. Works on the document, before it is
 * printed as JSON or decoded for a table, so that both show the same.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum process_order {
	ORDER_NONE, /* as in the document: by GPU, then by PID */
	ORDER_PID,
	ORDER_USER,
	ORDER_SM,
	ORDER_MEMORY,
	ORDER_BUSY,
	ORDER_LAUNCHES,
	PROCESS_ORDERS
};

/* NULL members, and UINT32_MAX, select nothing. All that are set must match. */
struct selection {
	const char *pod; /* NAME, NAMESPACE/NAME, or its UID */
	const char *container; /* its name, or the first 12 or more digits of its ID */
	const char *job; /* its ID; behind JOB_CLAIMED: of processes that claim to be of it */
	const char *gpu; /* its index, or a UUID's beginning */
	uint32_t uid;
	enum process_order order;
};

#define JOB_CLAIMED "claimed:"

/* The order's name on the command line; NULL: there is no such order. */
const char *process_order_name(enum process_order order);

/*
 * Removes what does not match from `processes`, `traced`, `allocations` and `node.workloads` (all of these,
 * if a user is selected: what ended processes did is not known by user), and sorts `processes`:
 * users and PIDs upwards, figures from the largest to those that are not known. -ENOMEM: the document is
 * unusable.
 */
int document_select(json_t *document, const struct selection *selection);

/* How many processes of the document only claim to be of the job with this ID. */
uint32_t document_claimants(const json_t *document, const char *job);
