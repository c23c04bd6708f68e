// SPDX-License-Identifier: Apache-2.0
#include "nvml/getters.h"

#include <stddef.h>

#include "nvml/report.h"

enum nvml_return ecc_mode_read(struct reader *reader, struct device *device)
{
	uint32_t current = 0, pending = 0;
	enum nvml_return result = NVML_CALL(reader, nvmlDeviceGetEccMode, device->handle, &current, &pending);

	REPORT_U32(reader, device, ECC_MODE_CURRENT, result, current, 1);
	REPORT_U32(reader, device, ECC_MODE_PENDING, result, pending, 1);
	return result;
}

/* Of each kind of counter: a row for the total, then one for each location in the order of NVML's numbers. */
#define ECC_ORDERED(prefix_)                                                                      \
	(SLOT_##prefix_##_SRAM - SLOT_##prefix_##_ALL == 1 + NVML_MEMORY_LOCATION_SRAM &&         \
	 SLOT_##prefix_##_L1_CACHE - SLOT_##prefix_##_ALL == 1 + NVML_MEMORY_LOCATION_L1_CACHE && \
	 SLOT_##prefix_##_CBU - SLOT_##prefix_##_ALL == 1 + NVML_MEMORY_LOCATION_CBU)
_Static_assert(ECC_ORDERED(ECC_CORRECTED) && ECC_ORDERED(ECC_UNCORRECTED) &&
		       ECC_ORDERED(ECC_AGGREGATE_CORRECTED) && ECC_ORDERED(ECC_AGGREGATE_UNCORRECTED),
	       "rows of ECC errors stand in the order of NVML's locations");

/* The kinds, in the order of their bits in ecc_off: one for each row. */
static const struct kind {
	uint16_t row, slot;
	uint8_t type, counter;
} kinds[] = {
	{ GPU_ECC_CORRECTED_ALL, SLOT_ECC_CORRECTED_ALL, NVML_MEMORY_ERROR_TYPE_CORRECTED,
	  NVML_VOLATILE_ECC },
	{ GPU_ECC_UNCORRECTED_ALL, SLOT_ECC_UNCORRECTED_ALL, NVML_MEMORY_ERROR_TYPE_UNCORRECTED,
	  NVML_VOLATILE_ECC },
	{ GPU_ECC_AGGREGATE_CORRECTED_ALL, SLOT_ECC_AGGREGATE_CORRECTED_ALL, NVML_MEMORY_ERROR_TYPE_CORRECTED,
	  NVML_AGGREGATE_ECC },
	{ GPU_ECC_AGGREGATE_UNCORRECTED_ALL, SLOT_ECC_AGGREGATE_UNCORRECTED_ALL,
	  NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_AGGREGATE_ECC },
};
enum { PER_KIND = 1 + NVML_MEMORY_LOCATION_COUNT };
_Static_assert(ARRAY_SIZE(kinds) * PER_KIND <= 64, "a bit of ecc_off for each");

/* The i-th number of a kind: first the total, then one for each location. */
static enum nvml_return ecc_read_one(struct reader *reader, struct device *device, const struct kind *kind,
				     uint32_t i)
{
	uint64_t count = 0, bit = UINT64_C(1) << ((kind - kinds) * PER_KIND + i);
	enum nvml_return result;

	if (device->ecc_off & bit)
		return NVML_ERROR_NOT_SUPPORTED;
	result = i == 0 ? NVML_CALL(reader, nvmlDeviceGetTotalEccErrors, device->handle, kind->type,
				    kind->counter, &count) :
			  NVML_CALL(reader, nvmlDeviceGetMemoryErrorCounter, device->handle, kind->type,
				    kind->counter, i - 1, &count);
	if (nvml_unsupported(result))
		device->ecc_off |= bit;
	reader_report_u64(reader, device, kind->row + i, kind->slot + i, result, count, 1);
	return result;
}

enum nvml_return ecc_errors_read(struct reader *reader, struct device *device)
{
	enum nvml_return overall = NVML_ERROR_NOT_SUPPORTED;

	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
		for (uint32_t i = 0; i < PER_KIND && !reader->lost; i++) {
			enum nvml_return result = ecc_read_one(reader, device, &kinds[k], i);

			if (!nvml_unsupported(result))
				overall = result;
		}
	}
	return overall;
}

enum nvml_return row_remapper_read(struct reader *reader, struct device *device)
{
	struct nvml_row_remapper_histogram banks = { .max = 0 };
	enum nvml_return result =
		NVML_CALL(reader, nvmlDeviceGetRowRemapperHistogram, device->handle, &banks);

	REPORT_U32(reader, device, ROW_REMAPPER_BANKS_MAX, result, banks.max, 1);
	REPORT_U32(reader, device, ROW_REMAPPER_BANKS_HIGH, result, banks.high, 1);
	REPORT_U32(reader, device, ROW_REMAPPER_BANKS_PARTIAL, result, banks.partial, 1);
	REPORT_U32(reader, device, ROW_REMAPPER_BANKS_LOW, result, banks.low, 1);
	REPORT_U32(reader, device, ROW_REMAPPER_BANKS_NONE, result, banks.none, 1);
	return result;
}

enum nvml_return repair_read(struct reader *reader, struct device *device)
{
	struct nvml_repair_status status = { .version = NVML_VERSION_WORD(struct nvml_repair_status, 1) };
	enum nvml_return result = NVML_CALL(reader, nvmlDeviceGetRepairStatus, device->handle, &status);

	REPORT_U32(reader, device, REPAIR_PENDING_CHANNEL, result, status.channel_pending, 1);
	REPORT_U32(reader, device, REPAIR_PENDING_TPC, result, status.tpc_pending, 1);
	return result;
}

enum nvml_return remapped_rows_read(struct reader *reader, struct device *device)
{
	uint32_t correctable = 0, uncorrectable = 0, pending = 0, failed = 0;
	enum nvml_return result = NVML_CALL(reader, nvmlDeviceGetRemappedRows, device->handle, &correctable,
					    &uncorrectable, &pending, &failed);

	REPORT_U32(reader, device, REMAPPED_ROWS_CORRECTABLE, result, correctable, 1);
	REPORT_U32(reader, device, REMAPPED_ROWS_UNCORRECTABLE, result, uncorrectable, 1);
	REPORT_U32(reader, device, REMAPPED_ROWS_PENDING, result, pending, 1);
	REPORT_U32(reader, device, REMAPPED_ROWS_FAILED, result, failed, 1);
	return result;
}

/* Asked for no page at all, the driver tells their number. */
static enum nvml_return retired_count(struct reader *reader, struct device *device, uint32_t cause,
				      uint32_t *ret_count)
{
	enum nvml_return result;

	*ret_count = 0;
	result = NVML_CALL(reader, nvmlDeviceGetRetiredPages, device->handle, cause, ret_count, NULL);
	return result == NVML_ERROR_INSUFFICIENT_SIZE ? NVML_SUCCESS : result;
}

enum nvml_return retired_pages_read(struct reader *reader, struct device *device)
{
	uint32_t count;
	enum nvml_return result = retired_count(
		reader, device, NVML_PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS, &count);

	REPORT_U32(reader, device, RETIRED_PAGES_SINGLE_BIT, result, count, 1);
	result = retired_count(reader, device, NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR, &count);
	REPORT_U32(reader, device, RETIRED_PAGES_DOUBLE_BIT, result, count, 1);
	return result;
}

enum nvml_return retired_pending_read(struct reader *reader, struct device *device)
{
	uint32_t pending = 0;
	enum nvml_return result =
		NVML_CALL(reader, nvmlDeviceGetRetiredPagesPendingStatus, device->handle, &pending);

	REPORT_U32(reader, device, RETIRED_PAGES_PENDING, result, pending, 1);
	return result;
}
