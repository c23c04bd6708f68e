// SPDX-License-Identifier: Apache-2.0
/*
 * Trees of processes: under which container, pod, job or user each is, and what stands there for all of them.
 * Sums are those of json_groups(), as `gpusonde ps --by` shows them; what the host says of processes is in no
 * document, and is added up here alone.
 */
#pragma once

#include "cmd/top/columns.h"
#include "view/groups.h"

enum { HEADING_TEXT = 128, SORT_KEYS = 3 };

/* What this machine says of a group's processes together. Of what one of them lacks there is no sum. */
struct heading_host {
	double cores, resident_bytes, threads;
	bool known, cores_known;
};

struct heading {
	char text[HEADING_TEXT];
	const struct sample *sample; /* of the machine whose group it is */
	const json_t *object; /* of the document; NULL: no group is known of these */
	struct heading_host host;
	uint32_t rows, shown; /* of its processes, one for each GPU; of these, those that match */
	bool closed;
	struct value keys[SORT_KEYS]; /* what it is sorted by */
};

struct tree {
	struct heading *headings;
	uint32_t n;
	uint32_t *of; /* the heading of each process of the machine that was added last */
};

/*
 * Adds the groups of a machine. Their document is added to @documents, which outlives what is drawn of the
 * tree. -ENOMEM.
 */
int tree_add(struct tree *tree, const struct sample *sample, enum group_by by, json_t *documents);
void tree_done(struct tree *tree);
/* Of a process of the machine that was added last, by its index. @process NULL: its GPU is not known. */
uint32_t tree_heading_of(const struct tree *tree, const struct sample *sample, const struct process *process);

/* The document of a machine's groups, which is added to @documents; its list, or NULL: there is no memory. */
const json_t *groups_document(const struct sample *sample, enum group_by by, json_t *documents);

/* ---- which are closed ---- */

/* All but those listed, or those listed alone. By row_id() of headings. */
struct closed {
	bool all;
	uint64_t *except;
	uint32_t n;
};

bool is_closed(const struct closed *closed, uint64_t id);
/* Opens what is closed, and closes what is open. -ENOMEM. */
int toggle_closed(struct closed *closed, uint64_t id);
/* Closes all, or opens all. */
void toggle_all_closed(struct closed *closed);
