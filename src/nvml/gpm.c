// SPDX-License-Identifier: Apache-2.0
#include "nvml/column.h"
#include "nvml/report.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"

/* The hardware refreshes its samples this often at most, says NVIDIA's header. */
#define GPM_INTERVAL_MIN_NS (100 * NSEC_PER_MSEC)
#define GPM_UNSUPPORTED_RETRY_NS (300 * NSEC_PER_SEC)
#define GPM_FAILED_RETRY_NS (10 * NSEC_PER_SEC)
/* Rounding in the driver gives a little more than 100 %. */
#define RATIO_OVERSHOOT 1.02

/* Some versions of the library write all slots that their header declares, even if fewer were requested. */
static _Alignas(16) unsigned char buffer[sizeof(struct nvml_gpm_metrics_get) +
					 NVML_GPM_METRICS_MAX * sizeof(struct nvml_gpm_metric)];
static uint16_t rows[GPU_METRICS];
static unsigned rows_n;

static void find_rows(void)
{
	if (rows_n)
		return;
	for (unsigned row = 0; row < GPU_METRICS; row++)
		if (nvml_columns[row].gpm)
			rows[rows_n++] = (uint16_t)row;
}

static bool measured_here(const struct device *device, unsigned row)
{
	return gpu_metrics[row].levels & (device->parent == READING_NONE ? LEVEL_GPU : LEVEL_MIG);
}

/* Frees the samples, and expires the values derived from them. */
static void gpm_fail(struct reader *reader, struct device *device, enum nvml_return result)
{
	gpm_done(reader, device);
	device->gpm_result = result;
	device->gpm_retry_ns =
		reader->now_ns + (nvml_unsupported(result) ? GPM_UNSUPPORTED_RETRY_NS : GPM_FAILED_RETRY_NS);
	for (unsigned i = 0; i < rows_n; i++)
		if (measured_here(device, rows[i]))
			reader_report(reader, device, rows[i], gpu_metrics[rows[i]].slot, result, 0);
}

void gpm_done(struct reader *reader, struct device *device)
{
	for (int i = 0; i < 2; i++) {
		if (device->gpm[i])
			NVML_CALL(reader, nvmlGpmSampleFree, device->gpm[i]);
		device->gpm[i] = NULL;
		device->gpm_ns[i] = 0;
	}
	device->gpm_works = false;
}

static enum nvml_return gpm_begin(struct reader *reader, struct device *device, const struct device *gpu)
{
	struct nvml_gpm_support support = { .version = NVML_GPM_SUPPORT_VERSION };
	enum nvml_return result = NVML_CALL(reader, nvmlGpmQueryDeviceSupport, gpu->handle, &support);

	if (result == NVML_SUCCESS && !support.supported)
		return NVML_ERROR_NOT_SUPPORTED;
	for (int i = 0; i < 2 && result == NVML_SUCCESS; i++)
		result = NVML_CALL(reader, nvmlGpmSampleAlloc, &device->gpm[i]);
	return result;
}

static void report(struct reader *reader, struct device *device, unsigned row,
		   const struct nvml_gpm_metric *answer)
{
	const struct metric *metric = &gpu_metrics[row];
	enum nvml_return result = answer->result;
	double value = answer->value * (metric->scale == 0 ? 1 : metric->scale);

	if (result == NVML_SUCCESS && isnan(value))
		result = NVML_ERROR_NO_DATA;
	if (metric->unit == UNIT_RATIO && value > 1 && value <= RATIO_OVERSHOOT)
		value = 1;
	reader_report(reader, device, row, metric->slot, result, value);
}

static enum nvml_return compare(struct reader *reader, struct device *device)
{
	struct nvml_gpm_metrics_get *get = (struct nvml_gpm_metrics_get *)buffer;
	unsigned asked[GPU_METRICS], n = 0;
	enum nvml_return result;

	for (unsigned i = 0; i < rows_n && n < NVML_GPM_METRICS_MAX; i++) {
		if (!measured_here(device, rows[i]))
			continue;
		asked[n] = rows[i];
		get->metrics[n++] = (struct nvml_gpm_metric){ .id = nvml_columns[rows[i]].gpm };
	}
	get->version = NVML_GPM_METRICS_GET_VERSION;
	get->count = n;
	get->sample1 = device->gpm[!device->gpm_newest];
	get->sample2 = device->gpm[device->gpm_newest];
	result = NVML_CALL(reader, nvmlGpmMetricsGet, get);
	if (result != NVML_SUCCESS)
		return result;
	device->gpm_works = device->gpm_read = true;
	device->gpm_seconds =
		(double)(device->gpm_ns[device->gpm_newest] - device->gpm_ns[!device->gpm_newest]) /
		NSEC_PER_SEC;
	for (unsigned i = 0; i < n; i++)
		report(reader, device, asked[i], &get->metrics[i]);
	return NVML_SUCCESS;
}

static enum nvml_return sample(struct reader *reader, struct device *device, const struct device *gpu)
{
	unsigned next = !device->gpm_newest;
	enum nvml_return result;

	result = device == gpu ? NVML_CALL(reader, nvmlGpmSampleGet, gpu->handle, device->gpm[next]) :
				 NVML_CALL(reader, nvmlGpmMigSampleGet, gpu->handle, device->entity->gi,
					   device->gpm[next]);
	if (result != NVML_SUCCESS)
		return result;
	device->gpm_ns[next] = clock_boot_ns();
	device->gpm_newest = next;
	if (device->gpm_result == NVML_SUCCESS)
		device->gpm_result =
			NVML_ERROR_NO_DATA; /* a value needs two samples; until then a failure persists */
	return device->gpm_ns[!next] ? compare(reader, device) : NVML_SUCCESS;
}

void gpm_read(struct reader *reader, struct device *device)
{
	const struct device *gpu = device->parent == READING_NONE ? device : &reader->devices[device->parent];
	enum nvml_return result = NVML_SUCCESS;

	find_rows();
	device->gpm_read = false;
	if (reader->now_ns < device->gpm_retry_ns ||
	    (device->gpm[0] && reader->now_ns - device->gpm_ns[device->gpm_newest] < GPM_INTERVAL_MIN_NS))
		return;
	device->gpm_retry_ns = 0;
	if (device != gpu && !device->sole_ci)
		result = NVML_ERROR_NOT_SUPPORTED; /* GPM measures the whole GPU instance, which is shared */
	else if (!device->gpm[0])
		result = gpm_begin(reader, device, gpu);
	if (result == NVML_SUCCESS)
		result = sample(reader, device, gpu);
	if (result != NVML_SUCCESS && !reader->gone)
		gpm_fail(reader, device, result);
}
