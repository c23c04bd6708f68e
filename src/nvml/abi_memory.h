// SPDX-License-Identifier: Apache-2.0
#pragma once

/* NVML: device memory, BAR1, ECC errors, retired pages, row remapping. See nvml/abi.h. */

#include "nvml/abi_base.h"

enum nvml_memory_error {
	NVML_MEMORY_ERROR_TYPE_CORRECTED = 0,
	NVML_MEMORY_ERROR_TYPE_UNCORRECTED = 1,
	NVML_MEMORY_ERROR_TYPE_COUNT = 2,
};

/* Volatile counts restart with the driver; aggregate ones are stored in the InfoROM. */
enum nvml_ecc_counter {
	NVML_VOLATILE_ECC = 0,
	NVML_AGGREGATE_ECC = 1,
	NVML_ECC_COUNTER_TYPE_COUNT = 2,
};

enum nvml_memory_location {
	NVML_MEMORY_LOCATION_L1_CACHE = 0,
	NVML_MEMORY_LOCATION_L2_CACHE = 1,
	NVML_MEMORY_LOCATION_DRAM = 2, /* the same number as DEVICE_MEMORY */
	NVML_MEMORY_LOCATION_REGISTER_FILE = 3,
	NVML_MEMORY_LOCATION_TEXTURE_MEMORY = 4,
	NVML_MEMORY_LOCATION_TEXTURE_SHM = 5,
	NVML_MEMORY_LOCATION_CBU = 6,
	NVML_MEMORY_LOCATION_SRAM = 7,
	NVML_MEMORY_LOCATION_COUNT = 8,
};

enum nvml_page_retirement_cause {
	NVML_PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS = 0,
	NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR = 1,
	NVML_PAGE_RETIREMENT_CAUSE_COUNT = 2,
};

struct nvml_memory { // nvmlMemory_t
	uint64_t total;
	uint64_t free;
	uint64_t used; /* includes what the driver reserves */
};
_Static_assert(sizeof(struct nvml_memory) == 24, "nvmlMemory_t");

struct nvml_memory_v2 { // nvmlMemory_v2_t
	uint32_t version;
	uint64_t total;
	uint64_t reserved;
	uint64_t free;
	uint64_t used; /* without reserved */
};
_Static_assert(sizeof(struct nvml_memory_v2) == 40, "nvmlMemory_v2_t");

struct nvml_bar1_memory { // nvmlBAR1Memory_t
	uint64_t total;
	uint64_t free;
	uint64_t used;
};
_Static_assert(sizeof(struct nvml_bar1_memory) == 24, "nvmlBAR1Memory_t");

struct nvml_ecc_error_counts { // nvmlEccErrorCounts_t
	uint64_t l1_cache;
	uint64_t l2_cache;
	uint64_t device_memory;
	uint64_t register_file;
};
_Static_assert(sizeof(struct nvml_ecc_error_counts) == 32, "nvmlEccErrorCounts_t");

struct nvml_sram_ecc_status { // nvmlEccSramErrorStatus_v1_t
	uint32_t version;
	uint64_t aggregate_unc_parity;
	uint64_t aggregate_unc_sec_ded;
	uint64_t aggregate_cor;
	uint64_t volatile_unc_parity;
	uint64_t volatile_unc_sec_ded;
	uint64_t volatile_cor;
	uint64_t aggregate_unc_l2;
	uint64_t aggregate_unc_sm;
	uint64_t aggregate_unc_pcie;
	uint64_t aggregate_unc_mcu;
	uint64_t aggregate_unc_other;
	uint32_t threshold_exceeded;
};
_Static_assert(sizeof(struct nvml_sram_ecc_status) == 104, "nvmlEccSramErrorStatus_v1_t");

/* Number of banks, by how many of their spare rows are left. */
struct nvml_row_remapper_histogram { // nvmlRowRemapperHistogramValues_t
	uint32_t max;
	uint32_t high;
	uint32_t partial;
	uint32_t low;
	uint32_t none;
};
_Static_assert(sizeof(struct nvml_row_remapper_histogram) == 20, "nvmlRowRemapperHistogramValues_t");

struct nvml_remapped_rows_v2 { // nvmlRemappedRowsInfo_v2_t
	uint32_t correctable_active;
	uint32_t correctable_inactive;
	uint32_t uncorrectable_active;
	uint32_t uncorrectable_inactive;
	uint32_t pending;
	uint32_t failed;
};
_Static_assert(sizeof(struct nvml_remapped_rows_v2) == 24, "nvmlRemappedRowsInfo_v2_t");

struct nvml_repair_status { // nvmlRepairStatus_v1_t
	uint32_t version;
	uint32_t channel_pending;
	uint32_t tpc_pending;
};
_Static_assert(sizeof(struct nvml_repair_status) == 12, "nvmlRepairStatus_v1_t");

struct nvml_conf_compute_memory { // nvmlConfComputeMemSizeInfo_t
	uint64_t protected_kib;
	uint64_t unprotected_kib;
};
_Static_assert(sizeof(struct nvml_conf_compute_memory) == 16, "nvmlConfComputeMemSizeInfo_t");

enum nvml_return nvmlDeviceGetMemoryInfo(struct nvml_device *device, struct nvml_memory *memory);
enum nvml_return nvmlDeviceGetMemoryInfo_v2(struct nvml_device *device, struct nvml_memory_v2 *memory);
enum nvml_return nvmlDeviceGetBAR1MemoryInfo(struct nvml_device *device, struct nvml_bar1_memory *memory);
enum nvml_return nvmlDeviceGetMemoryBusWidth(struct nvml_device *device, uint32_t *bits);
enum nvml_return nvmlDeviceGetConfComputeMemSizeInfo(struct nvml_device *device,
						     struct nvml_conf_compute_memory *info);
enum nvml_return nvmlDeviceGetConfComputeProtectedMemoryUsage(struct nvml_device *device,
							      struct nvml_memory *memory);

enum nvml_return nvmlDeviceGetEccMode(struct nvml_device *device, uint32_t *current, uint32_t *pending);
enum nvml_return nvmlDeviceGetDefaultEccMode(struct nvml_device *device, uint32_t *mode);
enum nvml_return nvmlDeviceGetTotalEccErrors(struct nvml_device *device, uint32_t error, uint32_t counter,
					     uint64_t *count);
enum nvml_return nvmlDeviceGetDetailedEccErrors(struct nvml_device *device, uint32_t error, uint32_t counter,
						struct nvml_ecc_error_counts *counts);
enum nvml_return nvmlDeviceGetMemoryErrorCounter(struct nvml_device *device, uint32_t error, uint32_t counter,
						 uint32_t location, uint64_t *count);
enum nvml_return nvmlDeviceGetSramEccErrorStatus(struct nvml_device *device,
						 struct nvml_sram_ecc_status *status);
enum nvml_return nvmlDeviceGetRetiredPages(struct nvml_device *device, uint32_t cause, uint32_t *count,
					   uint64_t *addresses);
enum nvml_return nvmlDeviceGetRetiredPages_v2(struct nvml_device *device, uint32_t cause, uint32_t *count,
					      uint64_t *addresses, uint64_t *timestamps);
enum nvml_return nvmlDeviceGetRetiredPagesPendingStatus(struct nvml_device *device, uint32_t *pending);
enum nvml_return nvmlDeviceGetRemappedRows(struct nvml_device *device, uint32_t *correctable,
					   uint32_t *uncorrectable, uint32_t *pending, uint32_t *failed);
enum nvml_return nvmlDeviceGetRemappedRows_v2(struct nvml_device *device, struct nvml_remapped_rows_v2 *rows);
enum nvml_return nvmlDeviceGetRowRemapperHistogram(struct nvml_device *device,
						   struct nvml_row_remapper_histogram *histogram);
enum nvml_return nvmlDeviceGetRepairStatus(struct nvml_device *device, struct nvml_repair_status *status);
