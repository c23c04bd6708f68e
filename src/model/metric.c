// SPDX-License-Identifier: Apache-2.0
#include "model/metric.h"

#include <math.h>
#include <string.h>

#include "base/macro.h"

/* Constants used by the rows of metrics.def. */
#define MIB (1024.0 * 1024.0)
#define DCGM_INT(name_, scale_)                  \
	{                                        \
		(name_), (scale_), true, "gauge" \
	}
#define DCGM_FLOAT(name_, scale_)                 \
	{                                         \
		(name_), (scale_), false, "gauge" \
	}
#define DCGM_COUNTER(name_, scale_)                \
	{                                          \
		(name_), (scale_), true, "counter" \
	}
#define DCGM_COUNTER_FLOAT(name_, scale_)           \
	{                                           \
		(name_), (scale_), false, "counter" \
	}

const struct metric gpu_metrics[GPU_METRICS] = {
#define GPU_METRIC(id_, count_, ...) \
	[GPU_##id_] = { .id = #id_, .slot = SLOT_##id_, .count = (count_), __VA_ARGS__ },
#include "model/metrics.def"
};

const struct metric process_metrics[PROCESS_METRICS] = {
#define PROCESS_METRIC(id_, ...) \
	[PROCESS_##id_] = { .id = #id_, .slot = PROCESS_##id_, .count = 1, __VA_ARGS__ },
#include "model/metrics.def"
};

const struct metric traced_metrics[TRACED_METRICS] = {
#define TRACE_METRIC(id_, ...) \
	[TRACED_##id_] = { .id = #id_, .slot = TRACED_##id_, .count = 1, .levels = LEVEL_BOTH, __VA_ARGS__ },
#include "model/metrics.def"
};

const struct metric kernel_metrics[KERNEL_METRICS] = {
#define KERNEL_METRIC(id_, ...)                                                                        \
	[KERNEL_METRIC_##id_] = {                                                                      \
		.id = #id_, .slot = KERNEL_METRIC_##id_, .count = 1, .levels = LEVEL_BOTH, __VA_ARGS__ \
	},
#include "model/metrics.def"
};

const struct metric operator_metrics[OPERATOR_METRICS] = {
#define OPERATOR_METRIC(id_, ...)                                                                        \
	[OPERATOR_METRIC_##id_] = {                                                                      \
		.id = #id_, .slot = OPERATOR_METRIC_##id_, .count = 1, .levels = LEVEL_BOTH, __VA_ARGS__ \
	},
#include "model/metrics.def"
};

const struct metric host_metrics[HOST_METRICS] = {
#define HOST_METRIC(id_, where_, ...) \
	[HOST_##id_] = { .id = #id_, .slot = HOST_##id_, .count = 1, __VA_ARGS__ },
#include "model/metrics.def"
};

const struct metric disk_metrics[DISK_METRICS] = {
#define DISK_METRIC(id_, field_, ...) \
	[DISK_##id_] = { .id = #id_, .slot = DISK_##id_, .count = 1, __VA_ARGS__ },
#include "model/metrics.def"
};

const struct metric interface_metrics[INTERFACE_METRICS] = {
#define INTERFACE_METRIC(id_, field_, ...) \
	[INTERFACE_##id_] = { .id = #id_, .slot = INTERFACE_##id_, .count = 1, __VA_ARGS__ },
#include "model/metrics.def"
};

const struct metric server_metrics[SERVER_METRICS] = {
#define SERVER_METRIC(id_, ...) \
	[SERVER_##id_] = { .id = #id_, .slot = SERVER_##id_, .count = 1, __VA_ARGS__ },
#include "model/metrics.def"
};

const struct metric agent_metrics[AGENT_METRICS] = {
#define AGENT_METRIC(id_, ...) [AGENT_##id_] = { .id = #id_, .slot = AGENT_##id_, .count = 1, __VA_ARGS__ },
#include "model/metrics.def"
};

static const unsigned short slot_rows[GPU_SLOTS] = {
#define GPU_METRIC(id_, count_, ...) [SLOT_##id_... SLOT_##id_##_LAST] = GPU_##id_,
#include "model/metrics.def"
};

const char *const engine_names[ENGINES] = {
	[ENGINE_GPU] = "gpu",         [ENGINE_MEMORY] = "memory", [ENGINE_ENCODER] = "encoder",
	[ENGINE_DECODER] = "decoder", [ENGINE_JPEG] = "jpeg",     [ENGINE_OFA] = "ofa",
};

static const char *const unit_names[UNIT_MAX] = {
	[UNIT_NONE] = "",           [UNIT_RATIO] = "ratio",
	[UNIT_BYTES] = "bytes",     [UNIT_BYTES_PER_SECOND] = "bytes_per_second",
	[UNIT_SECONDS] = "seconds", [UNIT_WATTS] = "watts",
	[UNIT_JOULES] = "joules",   [UNIT_CELSIUS] = "celsius",
	[UNIT_HERTZ] = "hertz",     [UNIT_BYTE_SECONDS] = "byte_seconds",
};

static const char *const presence_names[PRESENCE_MAX] = {
	[PRESENCE_ABSENT] = "absent",           [PRESENCE_PRESENT] = "present",
	[PRESENCE_UNSUPPORTED] = "unsupported", [PRESENCE_NO_PERMISSION] = "no_permission",
	[PRESENCE_FAILED] = "failed",           [PRESENCE_REJECTED] = "rejected",
};

/*
 * Bounds that no current device reaches: a gauge of 1 PiB of memory, 20 kW for a board, 20 GHz, 100 TB/s.
 * Counters and plain numbers end at 2^63, where invalid 64-bit values of the driver begin; seconds at 50
 * years; joules at 20 kW for 15 years.
 */
static double unit_bound(const struct metric *metric)
{
	static const double signed_64 = 9223372036854775808.0; /* 2^63 */
	bool gauge = metric->kind == METRIC_GAUGE || metric->kind == METRIC_PEAK;

	switch (metric->unit) {
	case UNIT_RATIO:
		return 1;
	case UNIT_BYTES:
		return gauge ? 1125899906842624.0 : signed_64;
	case UNIT_BYTES_PER_SECOND:
		return 1e14;
	case UNIT_SECONDS:
		return 50 * 365.25 * 86400;
	case UNIT_WATTS:
		return 20000;
	case UNIT_JOULES:
		return 1e13;
	case UNIT_CELSIUS:
		return 200;
	case UNIT_HERTZ:
		return 20e9;
	case UNIT_NONE:
	case UNIT_BYTE_SECONDS:
	case UNIT_MAX:
		break;
	}
	return signed_64;
}

static const struct {
	const struct metric *rows;
	uint32_t n;
} lists[METRIC_LISTS] = {
	[METRICS_OF_GPU] = { gpu_metrics, GPU_METRICS },
	[METRICS_OF_HOST] = { host_metrics, HOST_METRICS },
	[METRICS_OF_DISK] = { disk_metrics, DISK_METRICS },
	[METRICS_OF_INTERFACE] = { interface_metrics, INTERFACE_METRICS },
};

uint32_t metrics_in_list(enum metric_list list)
{
	return lists[list].n;
}

const struct metric *metric_of_code(uint32_t code)
{
	uint32_t list = code >> METRIC_ROW_BITS, row = code & ((1u << METRIC_ROW_BITS) - 1);

	return list < METRIC_LISTS && row < lists[list].n ? &lists[list].rows[row] : NULL;
}

const char *unit_name(enum metric_unit unit)
{
	return unit_names[unit];
}

const char *presence_name(uint8_t presence)
{
	presence &= PRESENCE_MASK;
	return presence < PRESENCE_MAX ? presence_names[presence] : "unknown";
}

bool metric_sentinel(double raw)
{
	/* DCGM's blanks are four consecutive numbers: blank, not found, not supported, not permitted. */
	static const struct {
		double first, last;
	} ranges[] = {
		{ 2147483632, 2147483635 }, /* DCGM, 32 bits */
		{ 4294967294, 4294967295 }, /* -2 and -1 as unsigned: NVML's "none" and "unknown" */
		{ 140737488355328, 140737488355331 }, /* DCGM, double */
		/* DCGM, 64 bits, and 2^64 - 1 and - 2: as doubles they equal 2^63 and 2^64. */
		{ 9223372036854775808.0, 9223372036854775808.0 },
		{ 18446744073709551616.0, 18446744073709551616.0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++)
		if (raw >= ranges[i].first && raw <= ranges[i].last)
			return true;
	return false;
}

double metric_wrap(const struct metric *metric)
{
	double scale = metric->scale != 0 ? metric->scale : 1;

	return metric->wrap != 0 ? scale * (double)(UINT64_C(1) << metric->wrap) : INFINITY;
}

/*
 * Not nearbyint(): it would make the driver's child load libm, half a megabyte. From 2^52 on doubles are
 * integers.
 */
static double nearest_integer(double value)
{
	return value >= 0 && value < 4503599627370496.0 ? (double)(uint64_t)(value + 0.5) : value;
}

/*
 * `value` is the product of a multiplication, so the quotient may differ from the driver's integer in the
 * last bit.
 */
static bool scaled_sentinel(const struct metric *metric, double value)
{
	return metric->scale != 0 && metric->scale != 1 &&
	       metric_sentinel(nearest_integer(value / metric->scale));
}

bool metric_plausible(const struct metric *metric, double value)
{
	double bound = metric->max != 0 ? metric->max : unit_bound(metric);

	if (!isfinite(value))
		return false;
	if (value < 0 && (!metric->is_signed || value < (metric->unit == UNIT_CELSIUS ? -273.15 : -bound)))
		return false;
	/* The bound itself may have been rounded up by a multiplication (100 * 1e-2). */
	if (value > bound * (1 + 1e-9))
		return false;
	if (metric->wrap != 0 && value >= metric_wrap(metric))
		return false;
	/* Small numbers are no sentinels at any scale: the scales are 1e-9 or more. */
	if (value < 2)
		return true;
	return !metric_sentinel(value) && !scaled_sentinel(metric, value);
}

const struct metric *gpu_slot_metric(unsigned slot)
{
	return &gpu_metrics[slot_rows[slot]];
}

static bool is_dcgm_name(const struct dcgm_name *dcgm, const char *name, size_t length)
{
	return dcgm->name && strlen(dcgm->name) == length && memcmp(dcgm->name, name, length) == 0;
}

const struct metric *metric_by_dcgm_name(const char *name, size_t length, const struct dcgm_name **ret_dcgm)
{
	for (const struct metric *m = gpu_metrics; m < gpu_metrics + GPU_METRICS; m++) {
		if (!is_dcgm_name(&m->dcgm, name, length) && !is_dcgm_name(&m->dcgm49, name, length))
			continue;
		*ret_dcgm = is_dcgm_name(&m->dcgm, name, length) ? &m->dcgm : &m->dcgm49;
		return m;
	}
	return NULL;
}
