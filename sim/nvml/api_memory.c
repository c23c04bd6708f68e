// SPDX-License-Identifier: Apache-2.0
#include "sim/nvml/getter.h"

#include <string.h>

#include "sim/node/guest.h"

/* Bytes of the whole GPU or of a MIG instance, to which the driver's reserve does not count. */
static struct nvml_memory_v2 memory_of(const struct call *call)
{
	const struct model *model = &call->gpu->what->model;
	uint64_t total = model->memory_mib, reserved = model->reserved_mib,
		 used = gpu_now(call->gpu)->memory_mib;
	struct nvml_memory_v2 memory;

	if (call->mig) {
		total = call->mig->memory_mib;
		reserved = 0;
		used = call->gpu->instance_memory_mib[call->instance];
	}
	memory.total = total * BYTES_PER_MIB;
	memory.reserved = reserved * BYTES_PER_MIB;
	memory.used = used * BYTES_PER_MIB + guests_bytes(call->gpu->index, call->instance, call->now_ms);
	memory.used = MIN(memory.used, memory.total - memory.reserved);
	memory.free = memory.total - memory.reserved - memory.used;
	return memory;
}

enum nvml_return nvmlDeviceGetMemoryInfo(struct nvml_device *device, struct nvml_memory *memory)
{
	CALL(nvmlDeviceGetMemoryInfo, device);
	struct nvml_memory_v2 now = memory_of(call);

	NEED(memory);
	put_u64(call, &memory->total, now.total);
	put_u64(call, &memory->free, now.free);
	put_u64(call, &memory->used, now.used + now.reserved);
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceGetMemoryInfo_v2(struct nvml_device *device, struct nvml_memory_v2 *memory)
{
	CALL(nvmlDeviceGetMemoryInfo_v2, device);
	struct nvml_memory_v2 now = memory_of(call);

	NEED(memory);
	NEED_VERSION(memory, 2);
	put_u64(call, &memory->total, now.total);
	put_u64(call, &memory->reserved, now.reserved);
	put_u64(call, &memory->free, now.free);
	put_u64(call, &memory->used, now.used);
	return NVML_SUCCESS;
}

/* Each process maps a few MiB. */
enum nvml_return nvmlDeviceGetBAR1MemoryInfo(struct nvml_device *device, struct nvml_bar1_memory *memory)
{
	CALL(nvmlDeviceGetBAR1MemoryInfo, device);
	uint64_t total = call->gpu->what->model.bar1_mib, used = 1;

	NEED(memory);
	for (uint32_t i = 0; i < call->gpu->slot_count; i++)
		used += call->gpu->slots_now[i].running ? 2 : 0;
	used = MIN(used, total);
	put_u64(call, &memory->total, total * BYTES_PER_MIB);
	put_u64(call, &memory->free, (total - used) * BYTES_PER_MIB);
	put_u64(call, &memory->used, used * BYTES_PER_MIB);
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceGetConfComputeMemSizeInfo(struct nvml_device *device,
						     struct nvml_conf_compute_memory *info)
{
	CALL(nvmlDeviceGetConfComputeMemSizeInfo, device);

	NEED(info);
	NEED_SUPPORT(call->gpu->what->model.architecture >= NVML_DEVICE_ARCH_HOPPER);
	put_u64(call, &info->protected_kib, 0);
	put_u64(call, &info->unprotected_kib, call->gpu->what->model.memory_mib * UINT64_C(1024));
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceGetConfComputeProtectedMemoryUsage(struct nvml_device *device,
							      struct nvml_memory *memory)
{
	CALL(nvmlDeviceGetConfComputeProtectedMemoryUsage, device);

	NEED(memory);
	NEED_SUPPORT(call->gpu->what->model.architecture >= NVML_DEVICE_ARCH_HOPPER);
	memset(memory, 0, sizeof(*memory));
	return NVML_SUCCESS;
}

/* Errors. Those of the scenario before boot are in the aggregate counters only. */
static uint64_t ecc_count(const struct call *call, uint32_t error, uint32_t counter, uint32_t location)
{
	enum counter_kind kind =
		error == NVML_MEMORY_ERROR_TYPE_CORRECTED ? COUNTER_ECC_CORRECTED : COUNTER_ECC_UNCORRECTED;

	if (counter == NVML_VOLATILE_ECC)
		return gpu_count_since(call->gpu, kind, location, call->gpu->driver_ms, call->now_ms);
	return gpu_count_at(call->gpu, kind, location, call->now_ms);
}

static uint64_t ecc_total(const struct call *call, uint32_t error, uint32_t counter)
{
	uint64_t sum = 0;

	for (uint32_t location = 0; location < NVML_MEMORY_LOCATION_COUNT; location++)
		sum += ecc_count(call, error, counter, location);
	return sum;
}

enum nvml_return nvmlDeviceGetEccMode(struct nvml_device *device, uint32_t *current, uint32_t *pending)
{
	CALL(nvmlDeviceGetEccMode, device);

	NEED(current && pending);
	NEED_SUPPORT(call->gpu->what->model.ecc);
	put_u32(call, current, NVML_FEATURE_ENABLED);
	put_u32(call, pending, NVML_FEATURE_ENABLED);
	return NVML_SUCCESS;
}

DEVICE_U32(nvmlDeviceGetDefaultEccMode, model->ecc, NVML_FEATURE_ENABLED)

enum nvml_return nvmlDeviceGetTotalEccErrors(struct nvml_device *device, uint32_t error, uint32_t counter,
					     uint64_t *count)
{
	CALL(nvmlDeviceGetTotalEccErrors, device);

	NEED(count && error < NVML_MEMORY_ERROR_TYPE_COUNT && counter < NVML_ECC_COUNTER_TYPE_COUNT);
	NEED_SUPPORT(call->gpu->what->model.ecc);
	put_u64(call, count, ecc_total(call, error, counter));
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceGetDetailedEccErrors(struct nvml_device *device, uint32_t error, uint32_t counter,
						struct nvml_ecc_error_counts *counts)
{
	CALL(nvmlDeviceGetDetailedEccErrors, device);

	NEED(counts && error < NVML_MEMORY_ERROR_TYPE_COUNT && counter < NVML_ECC_COUNTER_TYPE_COUNT);
	NEED_SUPPORT(call->gpu->what->model.ecc);
	put_u64(call, &counts->l1_cache, ecc_count(call, error, counter, NVML_MEMORY_LOCATION_L1_CACHE));
	put_u64(call, &counts->l2_cache, ecc_count(call, error, counter, NVML_MEMORY_LOCATION_L2_CACHE));
	put_u64(call, &counts->device_memory, ecc_count(call, error, counter, NVML_MEMORY_LOCATION_DRAM));
	put_u64(call, &counts->register_file,
		ecc_count(call, error, counter, NVML_MEMORY_LOCATION_REGISTER_FILE));
	return NVML_SUCCESS;
}

/* Boards that remap rows count in DRAM and SRAM, those that retire pages in every part of the chip. */
static bool has_location(const struct model *model, uint32_t location)
{
	if (location == NVML_MEMORY_LOCATION_DRAM)
		return true;
	return model->row_remapping == (location == NVML_MEMORY_LOCATION_SRAM);
}

enum nvml_return nvmlDeviceGetMemoryErrorCounter(struct nvml_device *device, uint32_t error, uint32_t counter,
						 uint32_t location, uint64_t *count)
{
	CALL(nvmlDeviceGetMemoryErrorCounter, device);
	const struct model *model = &call->gpu->what->model;

	NEED(count && error < NVML_MEMORY_ERROR_TYPE_COUNT && counter < NVML_ECC_COUNTER_TYPE_COUNT);
	NEED(location < NVML_MEMORY_LOCATION_COUNT);
	NEED_SUPPORT(model->ecc && has_location(model, location));
	put_u64(call, count, ecc_count(call, error, counter, location));
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceGetSramEccErrorStatus(struct nvml_device *device,
						 struct nvml_sram_ecc_status *status)
{
	CALL(nvmlDeviceGetSramEccErrorStatus, device);
	const uint32_t sram = NVML_MEMORY_LOCATION_SRAM;
	uint64_t unc[2], cor[2];

	NEED(status);
	NEED_SUPPORT(call->gpu->what->model.ecc && call->gpu->what->model.row_remapping);
	NEED_VERSION(status, 1);
	for (uint32_t counter = 0; counter < NVML_ECC_COUNTER_TYPE_COUNT; counter++) {
		unc[counter] = ecc_count(call, NVML_MEMORY_ERROR_TYPE_UNCORRECTED, counter, sram);
		cor[counter] = ecc_count(call, NVML_MEMORY_ERROR_TYPE_CORRECTED, counter, sram);
	}
	*status = (struct nvml_sram_ecc_status){ .version = status->version };
	put_u64(call, &status->aggregate_unc_parity, unc[NVML_AGGREGATE_ECC]);
	put_u64(call, &status->aggregate_cor, cor[NVML_AGGREGATE_ECC]);
	put_u64(call, &status->volatile_unc_parity, unc[NVML_VOLATILE_ECC]);
	put_u64(call, &status->volatile_cor, cor[NVML_VOLATILE_ECC]);
	put_u64(call, &status->aggregate_unc_sm, unc[NVML_AGGREGATE_ECC]);
	return NVML_SUCCESS;
}

/* Pages lie where the number of the page and the GPU put them; all were retired when the machine booted. */
static enum nvml_return get_retired(const struct call *call, uint32_t cause, uint32_t *count,
				    uint64_t *addresses, uint64_t *timestamps)
{
	enum counter_kind kind = cause == NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR ?
					 COUNTER_RETIRED_DOUBLE_BIT :
					 COUNTER_RETIRED_SINGLE_BIT;
	uint32_t pages, capacity;

	NEED(count && cause < NVML_PAGE_RETIREMENT_CAUSE_COUNT);
	NEED_SUPPORT(call->gpu->what->model.retired_pages);
	pages = (uint32_t)gpu_count(call->gpu, kind, call->now_ms);
	capacity = *count;
	*count = pages;
	if (capacity < pages || (!addresses && pages > 0))
		return NVML_ERROR_INSUFFICIENT_SIZE;
	for (uint32_t i = 0; i < pages; i++) {
		addresses[i] =
			(uint64_t)mix32((uint64_t)call->gpu->index << 32 | kind << 16 | i) & ~UINT64_C(0xfff);
		if (timestamps)
			timestamps[i] = stamp_us(0) / 1000000;
	}
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceGetRetiredPages(struct nvml_device *device, uint32_t cause, uint32_t *count,
					   uint64_t *addresses)
{
	CALL(nvmlDeviceGetRetiredPages, device);

	return get_retired(call, cause, count, addresses, NULL);
}

enum nvml_return nvmlDeviceGetRetiredPages_v2(struct nvml_device *device, uint32_t cause, uint32_t *count,
					      uint64_t *addresses, uint64_t *timestamps)
{
	CALL(nvmlDeviceGetRetiredPages_v2, device);

	return get_retired(call, cause, count, addresses, timestamps);
}

DEVICE_U32(nvmlDeviceGetRetiredPagesPendingStatus, model->retired_pages, what->retire_pending)

enum nvml_return nvmlDeviceGetRemappedRows(struct nvml_device *device, uint32_t *correctable,
					   uint32_t *uncorrectable, uint32_t *pending, uint32_t *failed)
{
	CALL(nvmlDeviceGetRemappedRows, device);
	const struct scenario_gpu *what = call->gpu->what;

	NEED(correctable && uncorrectable && pending && failed);
	NEED_SUPPORT(what->model.row_remapping);
	put_u32(call, correctable,
		(uint32_t)gpu_count(call->gpu, COUNTER_REMAPPED_CORRECTABLE, call->now_ms));
	put_u32(call, uncorrectable,
		(uint32_t)gpu_count(call->gpu, COUNTER_REMAPPED_UNCORRECTABLE, call->now_ms));
	put_u32(call, pending, what->remap_pending);
	put_u32(call, failed, what->remap_failed);
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceGetRemappedRows_v2(struct nvml_device *device, struct nvml_remapped_rows_v2 *rows)
{
	CALL(nvmlDeviceGetRemappedRows_v2, device);
	const struct scenario_gpu *what = call->gpu->what;

	NEED(rows);
	NEED_SUPPORT(what->model.row_remapping);
	*rows = (struct nvml_remapped_rows_v2){ 0 };
	put_u32(call, &rows->correctable_active,
		(uint32_t)gpu_count(call->gpu, COUNTER_REMAPPED_CORRECTABLE, call->now_ms));
	put_u32(call, &rows->uncorrectable_active,
		(uint32_t)gpu_count(call->gpu, COUNTER_REMAPPED_UNCORRECTABLE, call->now_ms));
	put_u32(call, &rows->pending, what->remap_pending);
	put_u32(call, &rows->failed, what->remap_failed);
	return NVML_SUCCESS;
}

/* Every remapped row costs one of the banks a spare. */
enum nvml_return nvmlDeviceGetRowRemapperHistogram(struct nvml_device *device,
						   struct nvml_row_remapper_histogram *histogram)
{
	CALL(nvmlDeviceGetRowRemapperHistogram, device);
	const uint32_t banks = 5120;
	uint32_t rows;

	NEED(histogram);
	NEED_SUPPORT(call->gpu->what->model.row_remapping);
	rows = (uint32_t)(gpu_count(call->gpu, COUNTER_REMAPPED_CORRECTABLE, call->now_ms) +
			  gpu_count(call->gpu, COUNTER_REMAPPED_UNCORRECTABLE, call->now_ms));
	rows = MIN(rows, banks);
	put_u32(call, &histogram->max, banks - rows);
	put_u32(call, &histogram->high, rows);
	put_u32(call, &histogram->partial, 0);
	put_u32(call, &histogram->low, 0);
	put_u32(call, &histogram->none, 0);
	return NVML_SUCCESS;
}

enum nvml_return nvmlDeviceGetRepairStatus(struct nvml_device *device, struct nvml_repair_status *status)
{
	CALL(nvmlDeviceGetRepairStatus, device);

	NEED(status);
	NEED_SUPPORT(call->gpu->what->model.architecture >= NVML_DEVICE_ARCH_HOPPER);
	NEED_VERSION(status, 1);
	put_u32(call, &status->channel_pending, 0);
	put_u32(call, &status->tpc_pending, 0);
	return NVML_SUCCESS;
}
