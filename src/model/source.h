// SPDX-License-Identifier: Apache-2.0
/*
 * A source of the model's data: NVML, the kernel log, tracing. model/sources.def has one row for each. The
 * model stores the state of every source, and each snapshot contains a copy of all of them; everything that
 * decides whether data are current (readiness, views, the metric source_up) uses these.
 *
 * A source is in use from its first message on: a reading, or the statement why there is none.
 */
#pragma once

#include "model/reading.h"

enum source_kind { SOURCE_DEVICES, SOURCE_EVENTS, SOURCE_OWNERS };

enum source_id {
#define SOURCE(id_, name_, kind_, priority_, ...) SOURCE_##id_,
#include "model/sources.def"
	SOURCES,
};

enum { REASON_MAX = 400 }; /* large enough for a driver's error */

/* One row of the table. */
struct source_row {
	const char *name;
	enum source_kind kind;
	unsigned priority;
	/* the agent's metrics about the source; AGENT_METRICS: none */
	enum agent_metric up, collect_seconds, last_success;
};

/* Is source `a` preferred to `b` where both have a value? By the metric's row, else by priority. */
bool source_before(const struct metric *metric, enum source_id a, enum source_id b);

extern const struct source_row source_rows[SOURCES];

/* State of a source. All zero: not in use. */
struct source {
	enum source_id id;
	bool in_use;
	bool fresh; /* its state is READING_OK and its newest good data are recent */
	enum reading_state state; /* as of its newest message */
	char error[256]; /* cause and remedy; empty if the state is READING_OK */
	int64_t heard_ns; /* boot time of its newest message, of any state; 0: none yet */
	int64_t fresh_ns, fresh_real_ns; /* boot and real time of its newest good data; 0: none yet */
	uint64_t dropped; /* entries beyond the model's limits */
	/* for a source of devices: */
	bool simulated; /* the shown data come from gpusonde's simulated driver */
	uint32_t cuda_version; /* 13000 is 13.0; 0 unknown */
	char driver_version[80]; /* of the kernel driver; empty unknown */
	char library_version[80]; /* of the library that the source uses (NVML) */
	char library[256]; /* path of that library */
	char unrecognised
		[512]; /* features of this driver that are not recognised, and so not read; empty: none */
};
