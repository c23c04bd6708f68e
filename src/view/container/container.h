// SPDX-License-Identifier: Apache-2.0
/*
 * GET /container/metrics and the pages of its kind, for collectors that read GPUs by container: a contract
 * to the byte (docs/container-metrics.md). The rows are in rows.h, their numbers in
 * model/contract.def.
 *
 * Unlike other views these say how old their data are by the client's clock, since their readers
 * expect a status, and look at no metric beside.
 */
#pragma once

#include "base/strbuf.h"
#include "model/snapshot.h"

enum container_state {
	CONTAINER_READY,
	CONTAINER_STALE, /* what was read is old */
	CONTAINER_NOT_READY, /* nothing was ever read */
	CONTAINER_DISABLED, /* of a section: nobody reads it */
};

struct container_status {
	enum container_state state;
	int64_t real_ns; /* when the newest data were read; 0: never */
	double age_seconds; /* since then */
};

/* "ready", "stale", "not_ready", "disabled" */
const char *container_state_name(enum container_state state);

/* @now_boot_ns: clock_boot_ns() of the question, which is later than the snapshot. */
struct container_status container_status(const struct snapshot *snapshot, int64_t now_boot_ns);

enum container_flags {
	CONTAINER_ABSENT_NULL = 1 << 0, /* what is not known is null, not 0 */
	/*
	 * As zxporter: what is older than 20 seconds, and than two readings, is left out, and nothing read is
	 * an empty list.
	 */
	CONTAINER_ZXPORTER = 1 << 1,
};

/* All append to @out; -ENOMEM: the text is incomplete, and must not be shown. */
int view_container_metrics(const struct snapshot *snapshot, unsigned flags, int64_t now_boot_ns,
			   struct strbuf *out);
/* The GPUs of the node, added up. */
int view_node_metrics(const struct snapshot *snapshot, int64_t now_boot_ns, struct strbuf *out);
/* Both with the state of each section; what a section is not ready for is left out. */
int view_container_snapshot(const struct snapshot *snapshot, int64_t now_boot_ns, struct strbuf *out);
int view_node_snapshot(const struct snapshot *snapshot, int64_t now_boot_ns, struct strbuf *out);
