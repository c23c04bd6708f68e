// SPDX-License-Identifier: Apache-2.0
/*
 * Which processes of an agent's document are shown. Works on the document, before it is
 * printed as JSON or decoded for a table, so that both show the same.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* NULL members, and UINT32_MAX, select nothing. All that are set must match. */
struct selection {
	const char *pod; /* NAME, NAMESPACE/NAME, or its UID */
	const char *container; /* its name, or the first 12 or more digits of its ID */
	const char *job; /* its ID; behind JOB_CLAIMED: of processes that claim to be of it */
	const char *gpu; /* its index, or a UUID's beginning */
	uint32_t uid;
};

#define JOB_CLAIMED "claimed:"

/* Whether the row of a process is wanted. */
bool selection_has(const json_t *process, const struct selection *selection);

/*
 * Removes what does not match from `processes`, `traced`, `allocations` and `node.workloads` (all of these,
 * if a user is selected: what ended processes did is not known by user).
 */
void document_select(json_t *document, const struct selection *selection);

/* How many processes of the document only claim to be of the job with this ID. */
uint32_t document_claimants(const json_t *document, const char *job);
