// SPDX-License-Identifier: Apache-2.0
/*
 * The one walk over the numbers of a snapshot. Every exposition is a sink: it is handed each family, then
 * each of its series with labels, value, presence and unit, and decides alone how these are written. So no
 * format has a list of its own of what there is, and no two formats can disagree.
 *
 * Invariants
 *  1. Families come in a fixed order, and all series of a family in one go, as Prometheus' text needs it.
 *  2. Only what may be shown is handed over: presence_is() holds for every series (shown.h says what else).
 *  3. No two series of a family have the same labels.
 *  4. Text is raw: labels are as the snapshot has them, not escaped, and need not be valid UTF-8.
 *  5. A sink that does not want a family costs the walk next to nothing.
 *
 * Everything that is handed over lives until walk_snapshot() returns. Any thread may walk.
 */
#pragma once

#include <stdbool.h>

#include "model/snapshot.h"

enum family_type {
	FAMILY_GAUGE,
	FAMILY_COUNTER,
	FAMILY_INFO,
	FAMILY_UNKNOWN,
	FAMILY_HISTOGRAM,
	FAMILY_TYPES
};

/* What numbers are of: bits, for what is asked of a walk. In the order of the walk. */
enum walk_subject {
	WALK_GPUS = 1 << 0, /* and MIG instances */
	WALK_XIDS = 1 << 1,
	WALK_PROCESSES = 1 << 2, /* that the driver lists */
	WALK_WORKLOADS = 1 << 3,
	WALK_TRACED = 1 << 4, /* traced processes on their devices, and devices with all of theirs */
	WALK_KERNELS = 1 << 5,
	WALK_CALLS = 1 << 6,
	WALK_NODE = 1 << 7,
	WALK_AGENT = 1 << 8,
	WALK_ALL = (1 << 9) - 1,
};

struct family {
	const char *prefix; /* of the name, "gpusonde_" or "" */
	const char *name; /* with _total, _info */
	const char *help, *help_more; /* one text in two pieces; the second may be NULL */
	enum family_type type;
	enum metric_unit unit;
	enum walk_subject subject;
	/* the rows of the metric tables that it has; none where it is not in a table */
	const struct metric *rows;
	unsigned rows_n;
};

struct label {
	const char *name, *value;
};

/* Labels that series share, such as those of a GPU. */
struct label_set {
	/* 1, 2, ...: equal numbers are one set, so a sink may keep what it made of it; 0: for one series */
	uint32_t id;
	uint32_t n;
	const struct label *labels;
};

/* Of what was timed. */
struct histogram {
	const double *bounds; /* upper bounds of the buckets, rising; the one behind the last is infinity */
	const uint64_t *below; /* how many were at most the bound: cumulative */
	unsigned n; /* bounds */
	uint64_t count;
	double sum;
};

enum { SERIES_SETS = 6 };

struct series {
	/* The labels, in order: all of the first set, then of the next; NULL where there is none. */
	const struct label_set *sets[SERIES_SETS];
	double value;
	const struct histogram *histogram; /* in place of the value, where the family is one */
	uint8_t presence; /* present; PRESENCE_ESTIMATED may be set */
	/* when a process's counter began at 0; 0: not known, the driver's counters are older */
	int64_t created_real_ns;
	/* What it is of, for sinks with names of their own. */
	const struct metric *row; /* NULL: not in a table */
	unsigned slot; /* within the row */
	uint32_t entity; /* index of the GPU or MIG instance; UINT32_MAX: not of one */
	const struct xid *xid; /* WALK_XIDS */
};

struct walk_sink {
	/* The series that follow are of this family. False: none of them is wanted. */
	bool (*family)(void *userdata, const struct family *family);
	void (*series)(void *userdata, const struct series *series);
	void *userdata;
};

/* @subjects: enum walk_subject bits. 0, or -ENOMEM: the sink has not had everything. */
int walk_snapshot(const struct snapshot *snapshot, unsigned subjects, const struct walk_sink *sink);

/* Raw text of the label with this name; NULL: the series has none. */
const char *series_label(const struct series *series, const char *name);
