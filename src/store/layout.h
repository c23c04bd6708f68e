// SPDX-License-Identifier: Apache-2.0
/*
 * src/store keeps snapshots on the disk and gives them back: what a view shows of a recorded moment is what
 * it showed then. Who uses it: the agent (agent/record/recording.c), `gpusonde record`, `replay`, `report`,
 * `diff`.
 *
 *   layout     the tables and columns that a snapshot consists of; metrics by the rows of metrics.def
 *   frame      a snapshot as rows of these tables, in one piece of memory, for another process
 *   decimal    numbers as they are shown, without loss and small
 *   block_write, block_read
 *              frames of some minutes or an hour: what changed, column by column, compressed
 *   restore    a snapshot of rows
 *   database   blocks in an SQLite file; all else here knows no SQLite
 *   walk       snapshots one after the other; history: one metric over a time
 *   tiers      which frames are kept for how long
 *   serve      gpusonde-store, the process that has the database; protocol: what it is asked
 *   reader     the asker's side, for commands that read a store
 *
 * Invariants
 *  1. A number of a store is the number that pages show: 15 significant digits (decimal.h).
 *  2. Columns are found by their names, so a store outlives the version that wrote it; what it lacks is
 *     absent.
 *  3. A block is hostile: indexes, lengths, enumerations are checked before a snapshot is made of it.
 *  4. Only gpusonde-store touches the disk: one that hangs stops nobody else.
 */
#pragma once

#include <stddef.h>

#include "base/strbuf.h"
#include "model/finding.h"
#include "model/snapshot.h"

enum store_table {
	STORE_NODE, /* one row: the snapshot itself */
	STORE_SOURCES,
	STORE_GPUS,
	STORE_PROCESSES, /* what their series have of a number: SERIES_HAVE_ALL, or as much */
	STORE_EXITED, /* those alone that have ended since the frame before */
	STORE_WORKLOADS,
	STORE_WORKLOAD_OWNERS, /* struct owner, by workload; of kind WORKLOAD_NONE: it has none */
	STORE_ALLOCATED,
	STORE_JOBS,
	STORE_XIDS,
	STORE_XID_EVENTS,
	STORE_SLOT_SOURCES,
	/* From here on at a slower pace: */
	STORE_SLOW,
	STORE_OWNERS = STORE_SLOW,
	STORE_TRACE, /* one row: the trace view itself; none: not traced */
	STORE_TRACED_PROCESSES,
	STORE_TRACED_DEVICES,
	STORE_TRACED_CALLS, /* of processes */
	STORE_ALL_CALLS,
	STORE_TRACED_ERRORS,
	STORE_TRACED_TOTALS,
	STORE_KERNELS, /* struct stored_kernel */
	STORE_OPERATORS, /* over all processes */
	STORE_PROCESS_OPERATORS,
	STORE_TRACED_WORKLOADS, /* by traced process */
	STORE_WORKLOAD_NAMES,
	STORE_NAME_OWNERS, /* as STORE_WORKLOAD_OWNERS, by workload name */
	STORE_TRACED_USES,
	STORE_ANALYSIS, /* one row: the findings themselves; none: nothing is analysed */
	STORE_FINDING_RULES,
	STORE_FINDINGS,
	STORE_TABLES
};

/* In the place of a process's series: the same number as its own, which most are. */
#define SERIES_HAVE_ALL (-1.0)

/* A kernel's launches with what is known of the kernel, which a trace view refers to. */
struct stored_kernel {
	struct traced_kernel launches; /* its `kernel` is NULL */
	const char *symbol, *name, *brief, *file; /* NULL: those of all kernels beyond the limit */
	uint64_t offset;
	uint32_t source;
	uint16_t sm;
	char variant;
	bool jit;
	int64_t figures[KERNEL_FIGURES];
};

enum column_kind {
	COLUMN_UINT, /* 1, 2, 4 or 8 bytes, bool among them */
	COLUMN_INT, /* signed, the same */
	COLUMN_TIME, /* int64_t that grows by about the same each time */
	COLUMN_REAL, /* double */
	COLUMN_TEXT, /* char[] with a NUL */
	COLUMN_STRING, /* const char * */
	COLUMN_PRESENCE, /* uint8_t, enum presence */
};

/* One or more neighbouring members of a row's struct. */
struct column {
	const char *name;
	uint32_t offset, stride; /* from one to the next */
	uint16_t size, count;
	uint8_t kind; /* enum column_kind */
	bool is_bool;
	bool key; /* one of those that say which row it is */
	/* If not NULL `count` slots of these rows, each under its own name. */
	const struct metric *metrics;
	uint16_t metrics_n;
	/* A value must be below this, if not 0 ... */
	uint32_t limit;
	uint8_t rows; /* ... or be an index of this table plus 1, if not 0, ... */
	uint32_t none; /* ... or be this, if not 0 */
};

struct record_table {
	const char *name;
	const struct column *columns;
	uint32_t columns_n, row_bytes;
	uint32_t rows_max; /* of a snapshot */
};

extern const struct record_table store_tables[STORE_TABLES];

/* Of a snapshot, in nanoseconds: two of these can be subtracted. */
static inline bool store_time_is_sane(int64_t ns)
{
	return ns >= 0 && ns < INT64_C(1) << 62;
}

/* ---- fields: columns of one value ---- */

enum { FIELD_NAME = 128, FIELDS_MAX = 8192 };

struct field {
	uint32_t offset;
	uint16_t size;
	uint8_t kind;
	bool key;
	const struct column *column;
	uint16_t index; /* within the column */
	uint64_t hash; /* of its name */
};

/* All fields of a table, in the order of its columns. */
struct fields {
	struct field *list;
	uint32_t n;
};

/* Of all tables. -ENOMEM. */
int fields_new(struct fields ret_fields[STORE_TABLES]);
void fields_done(struct fields fields[STORE_TABLES]);
void field_name(const struct field *field, char buf[static FIELD_NAME]);

/*
 * The layout as text, a line for a table or field: "gpus", " uuid text", " v.gpu_power_watts real". Blocks
 * refer to it.
 */
int layout_write(const struct fields fields[STORE_TABLES], struct strbuf *out);

/* For each field of a stored layout that of ours. */
struct stored_table {
	int table; /* enum store_table; -1: not one of ours */
	uint32_t n;
	int32_t *field; /* index in ours; -1: none */
	uint8_t *kind; /* as it was stored */
};
struct stored_layout {
	struct stored_table *tables;
	uint32_t n;
};
/* -EBADMSG: not a layout; -ENOMEM. */
int layout_read(const struct fields fields[STORE_TABLES], const char *text, size_t n,
		struct stored_layout *ret_layout);
void layout_done(struct stored_layout *layout);
