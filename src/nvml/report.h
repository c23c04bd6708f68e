// SPDX-License-Identifier: Apache-2.0
/*
 * Converts an answer of the driver to a number, or to one of the reasons for its absence. Answers are never
 * trusted; see reader.h.
 */
#pragma once

#include "nvml/reader.h"

/* Whether this result is permanent for this device and driver. */
bool nvml_unsupported(enum nvml_return result);
/* The presence for an answer other than NVML_SUCCESS. */
uint8_t nvml_presence(enum nvml_return result);
/* A number that means "no value": all ones, and DCGM's blanks. */
bool nvml_garbage_u32(uint32_t raw);
bool nvml_garbage_u64(uint64_t raw);

/* Puts a number, or the reason for its absence, into a slot of the device's entity. */
void reader_report(struct reader *reader, struct device *device, unsigned row, unsigned slot,
		   enum nvml_return result, double value);
void reader_report_u32(struct reader *reader, struct device *device, unsigned row, unsigned slot,
		       enum nvml_return result, uint32_t raw, double scale);
void reader_report_u64(struct reader *reader, struct device *device, unsigned row, unsigned slot,
		       enum nvml_return result, uint64_t raw, double scale);
/*
 * Signed numbers: sentinels are detected in the unsigned value, before they look like small negative numbers.
 */
void reader_report_s32(struct reader *reader, struct device *device, unsigned row, unsigned slot,
		       enum nvml_return result, int32_t value);
void reader_reject(struct reader *reader, struct device *device, unsigned row, unsigned slot);

#define REPORT(reader_, device_, row_, result_, value_) \
	reader_report(reader_, device_, GPU_##row_, SLOT_##row_, result_, value_)
#define REPORT_U32(reader_, device_, row_, result_, raw_, scale_) \
	reader_report_u32(reader_, device_, GPU_##row_, SLOT_##row_, result_, raw_, scale_)
#define REPORT_U64(reader_, device_, row_, result_, raw_, scale_) \
	reader_report_u64(reader_, device_, GPU_##row_, SLOT_##row_, result_, raw_, scale_)
#define REPORT_S32(reader_, device_, row_, result_, value_) \
	reader_report_s32(reader_, device_, GPU_##row_, SLOT_##row_, result_, value_)

static inline bool device_has(const struct device *device, unsigned slot)
{
	return presence_is(device->entity->p[slot]);
}
