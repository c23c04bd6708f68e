// SPDX-License-Identifier: Apache-2.0
/*
 * The single traversal of a snapshot's numbers. Every exposition format is a sink: it receives each family,
 * then each of its series with labels, value, presence and unit, and only decides how to write them. So no
 * format has its own list of metrics, and no two formats can disagree.
 *
 * Invariants
 *  1. Families come in a fixed order, and all series of a family in sequence, as Prometheus' text format
 *     requires.
 *  2. Only numbers that may be shown are passed: presence_is() holds for every series (see also shown.h).
 *  3. No two series of a family have the same labels.
 *  4. Text is raw: labels are as in the snapshot, not escaped, and need not be valid UTF-8.
 *  5. A family that the sink does not want costs the walk almost nothing.
 *
 * Everything passed to the sink is valid until walk_snapshot() returns. Any thread may walk.
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

/* Subjects of numbers, as bits, in the order of the walk. */
enum walk_subject {
	WALK_GPUS = 1 << 0, /* and MIG instances */
	WALK_XIDS = 1 << 1,
	WALK_PROCESSES = 1 << 2, /* that the driver lists */
	WALK_WORKLOADS = 1 << 3, /* and what they were given */
	WALK_TRACED = 1 << 4, /* traced processes on their devices, and totals of devices */
	WALK_KERNELS = 1 << 5,
	WALK_CALLS = 1 << 6,
	WALK_NODE = 1 << 7,
	WALK_HOST = 1 << 8, /* the machine's own figures */
	WALK_SERVERS = 1 << 9, /* inference servers */
	WALK_AGENT = 1 << 10,
	WALK_ALL = (1 << 11) - 1,
};

struct family {
	const char *prefix; /* prefix of the name, "gpusonde_" or "" */
	const char *name; /* name including _total, _info */
	const char *help, *help_more; /* one text in two parts; the second may be NULL */
	enum family_type type;
	enum metric_unit unit;
	enum walk_subject subject;
	/* its rows in the metric tables; none if it is not in a table */
	const struct metric *rows;
	unsigned rows_n;
};

struct label {
	const char *name, *value;
};

/* Labels that series share, such as those of a GPU. */
struct label_set {
	/* 1, 2, ...: equal ids are the same set, so a sink may cache by id; 0: used for one series only */
	uint32_t id;
	uint32_t n;
	const struct label *labels;
};

/* A histogram of durations: bounds are powers of four of a second, and no value is beyond the last. */
struct histogram {
	const double *bounds; /* upper bounds of the buckets, ascending */
	int first; /* the first bound is 4 to this power, the next ones to the next */
	const uint64_t *within; /* number of values up to the bound: cumulative */
	unsigned all; /* number of bounds */
	unsigned n; /* the first of them, which are buckets of pages; after the last comes infinity */
	uint64_t count; /* the last of @within */
	double sum;
};

enum { SERIES_SETS = 6 };

struct series {
	/* The labels, in order: all of the first set, then of the next; unused sets are NULL. */
	const struct label_set *sets[SERIES_SETS];
	double value;
	const struct histogram *histogram; /* replaces the value in families of histograms */
	uint8_t presence; /* present; PRESENCE_ESTIMATED may be set */
	/* when a process's counter started at 0; 0: unknown, the driver's counters are older */
	int64_t created_real_ns;
	/* What the number belongs to, for sinks with their own names. */
	const struct metric *row; /* NULL: not in a table */
	unsigned slot; /* within the row */
	uint32_t entity; /* index of the GPU or MIG instance; UINT32_MAX: none */
	const struct xid *xid; /* WALK_XIDS */
};

struct walk_sink {
	/* Begins the family of the series that follow. False: the sink does not want it. */
	bool (*family)(void *userdata, const struct family *family);
	void (*series)(void *userdata, const struct series *series);
	void *userdata;
};

/* @subjects: enum walk_subject bits. 0, or -ENOMEM: the sink has not received everything. */
int walk_snapshot(const struct snapshot *snapshot, unsigned subjects, const struct walk_sink *sink);

/* Raw text of the label with this name; NULL: the series has none. */
const char *series_label(const struct series *series, const char *name);
