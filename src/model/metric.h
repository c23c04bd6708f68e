// SPDX-License-Identifier: Apache-2.0
/*
 * What gpusonde can say about a GPU, a process and itself: the tables in metrics.def, made into enums, slots
 * and descriptions.
 *
 * A *metric* is one row of the table. A *slot* is one number: a row with count 1 owns one slot, a row with an
 * index (NVLink links, fans) owns `count` neighbouring slots. Every entity (GPU, MIG instance, process)
 * carries two parallel arrays indexed by slot: the number and its presence. Rows of one Prometheus family
 * stand next to each other in the table.
 *
 * All numbers are doubles in base units (bytes, seconds, joules, hertz, ratio 0..1): integers are exact up to
 * 2^53.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/push_kinds.h"

/*
 * Why a number is present or missing. Zero-initialised memory means "absent". Views show only PRESENT
 * numbers.
 */
enum presence {
	PRESENCE_ABSENT = 0, /* not requested, or meaningless for this entity */
	PRESENCE_PRESENT,
	PRESENCE_UNSUPPORTED, /* the device or driver does not offer it */
	PRESENCE_NO_PERMISSION, /* offered, but not to this user */
	PRESENCE_FAILED, /* requested, and the driver returned another error */
	PRESENCE_REJECTED, /* the driver returned an impossible value; counted */
	PRESENCE_MAX,
	PRESENCE_MASK = 0x0f,
	PRESENCE_ESTIMATED = 0x80, /* flag in addition to PRESENT: derived, not measured directly */
};

static inline bool presence_is(uint8_t p)
{
	return (p & PRESENCE_MASK) == PRESENCE_PRESENT;
}

/* How readings of a metric become the value that views show. */
enum metric_kind {
	METRIC_GAUGE, /* the reading is the value */
	/* the reading is a counter of the driver's: differences are added, wraps and restarts handled */
	METRIC_COUNTER,
	METRIC_INCREMENT, /* the reading is the increase since the previous reading; the model adds them up */
	METRIC_PEAK, /* the highest reading since the entity was first seen; computed by the model */
};

enum metric_unit {
	UNIT_NONE, /* a plain number, code or count */
	UNIT_RATIO,
	UNIT_BYTES,
	UNIT_BYTES_PER_SECOND,
	UNIT_SECONDS,
	UNIT_WATTS,
	UNIT_JOULES,
	UNIT_CELSIUS,
	UNIT_HERTZ,
	UNIT_BYTE_SECONDS,
	UNIT_MAX,
};

/* Levels that a metric is measured at; it is shown only there. */
enum metric_level {
	LEVEL_GPU = 1 << 0,
	LEVEL_MIG = 1 << 1,
	LEVEL_BOTH = LEVEL_GPU | LEVEL_MIG,
};

/* How often the driver is queried. */
enum metric_cadence {
	CADENCE_TICK = 0, /* every period */
	CADENCE_SLOW, /* every 10 seconds: changes rarely or costs much */
	CADENCE_STATIC, /* when the driver is attached, and every minute */
};

/* A name of the DCGM exporter; its number is ours times `scale`. */
struct dcgm_name {
	const char *name; /* whole name, or NULL when DCGM has none */
	double scale;
	bool integer; /* printed as an integer (truncated), else with six decimals */
	const char *type; /* "gauge" or "counter", as the exporter types it */
};

struct metric {
	const char *id; /* the row's name in the table */
	const char *family; /* Prometheus family, without the "gpusonde_" prefix */
	const char *label; /* label that tells the family's rows apart, or NULL */
	const char *value; /* its value */
	const char *label2, *value2;
	const char *index; /* label of the slot number within the row ("link", "fan"), or NULL */
	unsigned short slot; /* first slot */
	unsigned short count; /* slots */
	enum metric_kind kind;
	enum metric_unit unit;
	unsigned levels; /* enum metric_level bits */
	enum metric_cadence cadence;
	double scale; /* number = raw * scale; 0 means 1 */
	/* bits of the driver's counter; 0: so many that it never wraps */
	unsigned char wrap;
	/* highest plausible value, 0: no bound; negative values are rejected unless `is_signed` */
	double max;
	bool is_signed;
	bool when_used; /* a counter of the agent's that is absent until something counts, be it 0 */
	/* 1 + the source (enum source_id) preferred for this metric; 0: by the sources' priorities */
	unsigned char preferred_source;
	const char *source; /* documentation: the NVML call that it comes from */
	unsigned short driver; /* documentation: the oldest driver known to have it; 0: 470 has it, too */
	const char *arch; /* documentation: architectures that have it */
	const char *help;
	struct dcgm_name dcgm, dcgm49; /* names up to 4.8 and from 4.9 on */
	const char *otel; /* OpenTelemetry name and attributes, or NULL */
};

enum {
	NVLINKS_MAX = 36, /* NVML_NVLINK_MAX_LINKS of nvml.h 13.5 */
	FANS_MAX = 8,
	C2C_LINKS_MAX = 16,
};

/* Rows. */
enum gpu_metric {
#define GPU_METRIC(id_, count_, ...) GPU_##id_,
#include "model/metrics.def"
	GPU_METRICS,
};

/* Slots: SLOT_X is the first (or only) slot of row X. */
enum gpu_slot {
#define GPU_METRIC(id_, count_, ...) SLOT_##id_, SLOT_##id_##_LAST = SLOT_##id_ + (count_)-1,
#include "model/metrics.def"
	GPU_SLOTS,
};

/* Metrics of one process on one GPU or MIG instance; each row is one slot. */
enum process_metric {
#define PROCESS_METRIC(id_, ...) PROCESS_##id_,
#include "model/metrics.def"
	PROCESS_METRICS,
};

/* Metrics of a traced process on a device; each row is one slot. */
enum traced_metric {
#define TRACE_METRIC(id_, ...) TRACED_##id_,
#include "model/metrics.def"
	TRACED_METRICS,
};

/* Metrics of a kernel that a traced process launches on a device; each row is one slot. */
enum kernel_metric {
#define KERNEL_METRIC(id_, ...) KERNEL_METRIC_##id_,
#include "model/metrics.def"
	KERNEL_METRICS,
};

/* Metrics of an operator of PyTorch; each row is one slot. */
enum operator_metric {
#define OPERATOR_METRIC(id_, ...) OPERATOR_METRIC_##id_,
#include "model/metrics.def"
	OPERATOR_METRICS,
};

/* Metrics of the machine, of one of its disks and of one of its network interfaces; each row is one slot. */
enum host_metric {
#define HOST_METRIC(id_, where_, ...) HOST_##id_,
#include "model/metrics.def"
	HOST_METRICS,
};
enum disk_metric {
#define DISK_METRIC(id_, field_, ...) DISK_##id_,
#include "model/metrics.def"
	DISK_METRICS,
};
enum interface_metric {
#define INTERFACE_METRIC(id_, field_, ...) INTERFACE_##id_,
#include "model/metrics.def"
	INTERFACE_METRICS,
};

/* Metrics of an inference server; each row is one slot. */
enum server_metric {
#define SERVER_METRIC(id_, ...) SERVER_##id_,
#include "model/metrics.def"
	SERVER_METRICS,
};

/* The agent's metrics about itself; each row is one slot. */
enum agent_metric {
#define AGENT_METRIC(id_, ...) AGENT_##id_,
#include "model/metrics.def"
	AGENT_METRICS,
};

/* Engines, in the order of the rows of gpu_busy_seconds_total and gpu_utilization_ratio. */
enum engine { ENGINE_GPU, ENGINE_MEMORY, ENGINE_ENCODER, ENGINE_DECODER, ENGINE_JPEG, ENGINE_OFA, ENGINES };

extern const struct metric gpu_metrics[GPU_METRICS];
extern const struct metric process_metrics[PROCESS_METRICS];
extern const struct metric traced_metrics[TRACED_METRICS];
extern const struct metric kernel_metrics[KERNEL_METRICS];
extern const struct metric operator_metrics[OPERATOR_METRICS];
extern const struct metric host_metrics[HOST_METRICS];
extern const struct metric disk_metrics[DISK_METRICS];
extern const struct metric interface_metrics[INTERFACE_METRICS];
extern const struct metric server_metrics[SERVER_METRICS];
extern const struct metric agent_metrics[AGENT_METRICS];
extern const char *const engine_names[ENGINES];

/* What is told over a time (docs/recordings.md): a metric of one of these lists, as one number. */
enum metric_list { METRICS_OF_GPU, METRICS_OF_HOST, METRICS_OF_DISK, METRICS_OF_INTERFACE, METRIC_LISTS };
enum { METRIC_ROW_BITS = 16 };
static inline uint32_t metric_code(enum metric_list list, uint32_t row)
{
	return (uint32_t)list << METRIC_ROW_BITS | row;
}
static inline enum metric_list metric_list_of(uint32_t code)
{
	return (enum metric_list)(code >> METRIC_ROW_BITS);
}
/* NULL: it is none. */
const struct metric *metric_of_code(uint32_t code);
uint32_t metrics_in_list(enum metric_list list);

/* Name of a unit for people and schemas ("bytes"), of a presence for JSON ("unsupported"). */
const char *unit_name(enum metric_unit unit);
const char *presence_name(uint8_t presence);

/*
 * Is `value` plausible for this metric? Rejects NaN, infinities, values outside the bounds of the row and its
 * unit, and the sentinels of NVML and DCGM (metric_sentinel), also divided by the row's scale.
 */
bool metric_plausible(const struct metric *metric, double value);

/* Is `raw` one of the drivers' sentinels for "no value": the top of 32 and 64 bits, and DCGM's blanks? */
bool metric_sentinel(double raw);

/* The value at which the driver's counter wraps; infinity if it does not. */
double metric_wrap(const struct metric *metric);

/* Row that owns a GPU slot. */
const struct metric *gpu_slot_metric(unsigned slot);

/*
 * The GPU row that a DCGM exporter of either generation prints as @name (@length bytes, which need no end),
 * and the name's columns; NULL: none.
 */
const struct metric *metric_by_dcgm_name(const char *name, size_t length, const struct dcgm_name **ret_dcgm);
