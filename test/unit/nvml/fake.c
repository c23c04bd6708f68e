// SPDX-License-Identifier: Apache-2.0
#include "fake.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

struct fake fake;
struct reader *reader;

static struct fake_gpu *gpu_of(struct nvml_device *handle)
{
	for (unsigned i = 0; i < FAKE_GPUS; i++)
		if ((void *)handle == (void *)&fake.gpus[i])
			return &fake.gpus[i];
	return NULL;
}

static struct fake_instance *instance_of(struct nvml_device *handle)
{
	for (unsigned i = 0; i < FAKE_GPUS; i++)
		for (unsigned j = 0; j < fake.gpus[i].instances_n; j++)
			if ((void *)handle == (void *)&fake.gpus[i].instances[j])
				return &fake.gpus[i].instances[j];
	return NULL;
}

/* What every call for a GPU begins with. */
#define NEED_GPU(handle_)                        \
	struct fake_gpu *gpu = gpu_of(handle_);  \
                                                 \
	if (fake.gone)                           \
		return NVML_ERROR_UNINITIALIZED; \
	if (!gpu)                                \
		return NVML_ERROR_NOT_SUPPORTED; \
	if (gpu->lost)                           \
	return NVML_ERROR_GPU_IS_LOST

static enum nvml_return init(void)
{
	fake.inits++;
	if (fake.init_result == NVML_SUCCESS)
		fake.gone = false;
	return fake.init_result;
}

static enum nvml_return shut_down(void)
{
	fake.shutdowns++;
	return NVML_SUCCESS;
}

static enum nvml_return get_count(uint32_t *count)
{
	if (fake.gone)
		return NVML_ERROR_UNINITIALIZED;
	*count = fake.count;
	return NVML_SUCCESS;
}

static enum nvml_return get_handle(uint32_t index, struct nvml_device **device)
{
	if (index >= fake.count)
		return NVML_ERROR_INVALID_ARGUMENT;
	*device = (struct nvml_device *)&fake.gpus[index];
	fake.gpus[index].handle_calls++;
	return fake.gpus[index].handle_result;
}

static enum nvml_return get_uuid(struct nvml_device *device, char *uuid, uint32_t length)
{
	const struct fake_instance *instance = instance_of(device);

	if (instance) {
		snprintf(uuid, length, "%s", instance->uuid);
		return NVML_SUCCESS;
	}
	NEED_GPU(device);
	snprintf(uuid, length, "%s", gpu->uuid);
	return gpu->uuid_result;
}

static enum nvml_return get_pci(struct nvml_device *device, struct nvml_pci_info *pci)
{
	NEED_GPU(device);
	memcpy(pci->bus_id, gpu->bus_id, sizeof(pci->bus_id));
	return NVML_SUCCESS;
}

static enum nvml_return get_power(struct nvml_device *device, uint32_t *milliwatt)
{
	NEED_GPU(device);
	*milliwatt = gpu->power_mw;
	return gpu->power_result;
}

static enum nvml_return get_temperature_v(struct nvml_device *device, struct nvml_temperature *temperature)
{
	NEED_GPU(device);
	temperature->celsius = gpu->celsius;
	return gpu->temperature_v_result;
}

static enum nvml_return get_temperature(struct nvml_device *device, uint32_t sensor, uint32_t *celsius)
{
	NEED_GPU(device);
	assert_int_equal(sensor, NVML_TEMPERATURE_GPU);
	*celsius = (uint32_t)gpu->celsius;
	return NVML_SUCCESS;
}

static enum nvml_return get_margin(struct nvml_device *device, struct nvml_margin_temperature *margin)
{
	NEED_GPU(device);
	margin->celsius = gpu->celsius;
	return NVML_SUCCESS;
}

static enum nvml_return get_capability(struct nvml_device *device, int *major, int *minor)
{
	NEED_GPU(device);
	*major = gpu->capability;
	*minor = 0;
	return gpu->capability_result;
}

static enum nvml_return get_serial(struct nvml_device *device, char *serial, uint32_t length)
{
	NEED_GPU(device);
	snprintf(serial, length, "serial of %s", gpu->uuid);
	return gpu->serial_result;
}

static enum nvml_return get_link_state(struct nvml_device *device, uint32_t link, uint32_t *active)
{
	NEED_GPU(device);
	*active = link < gpu->switched_links;
	return NVML_SUCCESS;
}

static enum nvml_return get_link_end(struct nvml_device *device, uint32_t link, uint32_t *type)
{
	NEED_GPU(device);
	(void)link;
	*type = NVML_NVLINK_DEVICE_TYPE_SWITCH;
	return NVML_SUCCESS;
}

static enum nvml_return get_encoder(struct nvml_device *device, uint32_t *sessions, uint32_t *fps,
				    uint32_t *latency)
{
	NEED_GPU(device);
	*sessions = gpu->encoder_sessions;
	*fps = gpu->encoder_sessions ? 60 : 0;
	*latency = gpu->encoder_sessions ? 4000 : 0;
	return NVML_SUCCESS;
}

static enum nvml_return get_fbc(struct nvml_device *device, struct nvml_fbc_stats *stats)
{
	return get_encoder(device, &stats->sessions, &stats->average_fps, &stats->average_latency);
}

static enum nvml_return get_energy(struct nvml_device *device, uint64_t *millijoule)
{
	NEED_GPU(device);
	*millijoule = gpu->energy_mj;
	return gpu->energy_result;
}

static enum nvml_return get_limit(struct nvml_device *device, uint32_t *milliwatt)
{
	NEED_GPU(device);
	fake.limit_calls++;
	*milliwatt = 700000;
	return NVML_SUCCESS;
}

static enum nvml_return get_memory(struct nvml_device *device, struct nvml_memory *memory)
{
	NEED_GPU(device);
	*memory = (struct nvml_memory){ .total = 100, .free = 60, .used = 40 };
	return NVML_SUCCESS;
}

static enum nvml_return get_memory_v2(struct nvml_device *device, struct nvml_memory_v2 *memory)
{
	const struct fake_instance *instance = instance_of(device);

	*memory = (struct nvml_memory_v2){ .total = 100, .free = 60, .used = 30, .reserved = 10 };
	if (instance)
		return instance->memory_result;
	NEED_GPU(device);
	return gpu->memory_v2_result;
}

static enum nvml_return get_samples(struct nvml_device *device, uint32_t sampling, uint64_t last_seen,
				    uint32_t *type, uint32_t *count, struct nvml_sample *samples)
{
	int64_t begin_ns = clock_thread_cpu_ns();
	unsigned n = 0;

	NEED_GPU(device);
	while (clock_thread_cpu_ns() - begin_ns < gpu->samples_cost_ns)
		;
	gpu->samples_calls += sampling == NVML_GPU_UTILIZATION_SAMPLES;
	if (gpu->samples_result != NVML_SUCCESS || sampling != NVML_GPU_UTILIZATION_SAMPLES)
		return gpu->samples_result != NVML_SUCCESS ? gpu->samples_result : NVML_ERROR_NOT_SUPPORTED;
	*type = NVML_VALUE_TYPE_UNSIGNED_INT;
	for (unsigned i = 0; i < gpu->samples_n && n < *count; i++)
		if (gpu->samples[i].timestamp > last_seen)
			samples[n++] = gpu->samples[i];
	*count = gpu->samples_claim ? gpu->samples_claim : n;
	return n ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

static enum nvml_return get_fans(struct nvml_device *device, uint32_t *fans)
{
	NEED_GPU(device);
	*fans = gpu->fans_n;
	return gpu->fans_result;
}

static enum nvml_return get_licenses(struct nvml_device *device, struct nvml_licensable_features *features)
{
	NEED_GPU(device);
	*features = gpu->licenses;
	return gpu->license_result;
}

static enum nvml_return get_fan(struct nvml_device *device, uint32_t fan, uint32_t *percent)
{
	NEED_GPU(device);
	*percent = 30 + fan;
	return NVML_SUCCESS;
}

static enum nvml_return get_application_clock(struct nvml_device *device, uint32_t clock, uint32_t *mhz)
{
	NEED_GPU(device);
	*mhz = gpu->application_mhz;
	return clock == NVML_CLOCK_MEM ? gpu->application_memory_result : NVML_SUCCESS;
}

static enum nvml_return get_rates(struct nvml_device *device, struct nvml_utilization *utilization)
{
	NEED_GPU(device);
	*utilization = (struct nvml_utilization){ .gpu = gpu->rate_gpu, .memory = gpu->rate_gpu / 2 };
	return gpu->mig ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

static enum nvml_return list(struct nvml_device *device, enum process_type type, uint32_t *count,
			     struct nvml_process_info_v2 *infos)
{
	uint32_t n = 0;

	NEED_GPU(device);
	fake.list_calls++;
	for (unsigned i = 0; i < gpu->processes_n; i++)
		n += (gpu->processes[i].types & type) != 0;
	if (n > *count) {
		*count = n;
		return NVML_ERROR_INSUFFICIENT_SIZE;
	}
	*count = gpu->list_claim ? gpu->list_claim : n;
	for (unsigned i = 0; i < gpu->processes_n; i++)
		if (gpu->processes[i].types & type)
			*infos++ = (struct nvml_process_info_v2){
				.pid = gpu->processes[i].pid,
				.used_memory = gpu->processes[i].memory,
				.gpu_instance = NVML_NONE_U32,
				.compute_instance = NVML_NONE_U32,
			};
	return NVML_SUCCESS;
}

static enum nvml_return list_compute(struct nvml_device *device, uint32_t *count,
				     struct nvml_process_info_v2 *infos)
{
	NEED_GPU(device);
	if (gpu->compute_list_result != NVML_SUCCESS)
		return gpu->compute_list_result;
	return list(device, PROCESS_TYPE_COMPUTE, count, infos);
}

static enum nvml_return list_graphics(struct nvml_device *device, uint32_t *count,
				      struct nvml_process_info_v2 *infos)
{
	return list(device, PROCESS_TYPE_GRAPHICS, count, infos);
}

static enum nvml_return get_driver_version(char *version, uint32_t length)
{
	snprintf(version, length, "%u.01", fake.driver);
	return fake.version_result;
}

static enum nvml_return get_name(uint32_t pid, char *name, uint32_t length)
{
	/* As the driver does: what does not fit is cut. */
	snprintf(name, length,
		 "/opt/a/path/of/more/than/sixty/four/bytes/as/they/come/with/environments/bin/name-%u", pid);
	return NVML_SUCCESS;
}

static enum nvml_return util_newer(struct nvml_device *device, struct nvml_processes_utilization *info)
{
	unsigned n = 0;

	NEED_GPU(device);
	if (gpu->util_newer_result != NVML_SUCCESS)
		return gpu->util_newer_result;
	assert_int_equal(info->version, 0x1000018);
	if (info->count < gpu->utils_n) {
		info->count = gpu->utils_n;
		return NVML_ERROR_INSUFFICIENT_SIZE;
	}
	for (unsigned i = 0; i < gpu->utils_n; i++)
		if (gpu->utils[i].timestamp > info->last_seen)
			info->processes[n++] = gpu->utils[i];
	info->count = gpu->util_claim ? gpu->util_claim : n;
	return n ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

static enum nvml_return util_older(struct nvml_device *device, struct nvml_process_utilization *samples,
				   uint32_t *count, uint64_t last_seen)
{
	NEED_GPU(device);
	(void)last_seen;
	*count = gpu->utils_n;
	for (unsigned i = 0; i < gpu->utils_n; i++)
		samples[i] = (struct nvml_process_utilization){ .pid = gpu->utils[i].pid,
								.timestamp = gpu->utils[i].timestamp,
								.sm = gpu->utils[i].sm };
	return gpu->util_older_result;
}

static enum nvml_return get_fields(struct nvml_device *device, int count, struct nvml_field_value *values)
{
	NEED_GPU(device);
	gpu->field_calls++;
	for (int i = 0; i < count; i++) {
		uint32_t scope = values[i].scope;

		gpu->field_asked[values[i].field]++;
		values[i].result = NVML_ERROR_NOT_SUPPORTED;
		values[i].timestamp = (int64_t)fake_now_us() + gpu->skew_us - gpu->field_age_us;
		if (gpu->scribbled_scope)
			values[i].scope = gpu->scribbled_scope;
		for (unsigned j = 0; j < gpu->fields_n; j++) {
			if (gpu->fields[j].field != values[i].field || gpu->fields[j].scope != scope)
				continue;
			values[i].result = gpu->fields[j].result;
			values[i].value_type = gpu->fields[j].type;
			values[i].value.as_u64 = gpu->fields[j].value;
		}
	}
	return NVML_SUCCESS;
}

static enum nvml_return get_mig_mode(struct nvml_device *device, uint32_t *current, uint32_t *pending)
{
	NEED_GPU(device);
	*current = *pending = gpu->mig;
	return NVML_SUCCESS;
}

static enum nvml_return get_mig_max(struct nvml_device *device, uint32_t *count)
{
	NEED_GPU(device);
	*count = FAKE_INSTANCES;
	return NVML_SUCCESS;
}

static enum nvml_return get_mig(struct nvml_device *device, uint32_t index, struct nvml_device **mig)
{
	NEED_GPU(device);
	if (index >= gpu->instances_n)
		return NVML_ERROR_NOT_FOUND;
	*mig = (struct nvml_device *)&gpu->instances[index];
	return NVML_SUCCESS;
}

static enum nvml_return get_gi(struct nvml_device *device, uint32_t *id)
{
	*id = instance_of(device)->gi;
	return NVML_SUCCESS;
}

static enum nvml_return get_ci(struct nvml_device *device, uint32_t *id)
{
	*id = instance_of(device)->ci;
	return NVML_SUCCESS;
}

static enum nvml_return gpm_support(struct nvml_device *device, struct nvml_gpm_support *support)
{
	NEED_GPU(device);
	support->supported = gpu->gpm;
	return NVML_SUCCESS;
}

/* A sample is the percent that its GPU had. */
static enum nvml_return gpm_alloc(struct nvml_gpm_sample **sample)
{
	*sample = calloc(1, sizeof(double));
	return NVML_SUCCESS;
}

static enum nvml_return gpm_free(struct nvml_gpm_sample *sample)
{
	free(sample);
	return NVML_SUCCESS;
}

static enum nvml_return gpm_sample(struct nvml_device *device, struct nvml_gpm_sample *sample)
{
	NEED_GPU(device);
	*(double *)sample = gpu->gpm_percent;
	return gpu->gpm_result;
}

static enum nvml_return gpm_mig_sample(struct nvml_device *device, uint32_t gi,
				       struct nvml_gpm_sample *sample)
{
	NEED_GPU(device);
	*(double *)sample = gpu->gpm_percent + gi;
	return gpu->gpm_result;
}

static enum nvml_return gpm_get(struct nvml_gpm_metrics_get *get)
{
	assert_int_equal(get->version, 1);
	for (uint32_t i = 0; i < get->count; i++) {
		get->metrics[i].result = get->metrics[i].id == NVML_GPM_METRIC_FP16_UTIL ?
						 NVML_ERROR_NOT_SUPPORTED :
						 NVML_SUCCESS;
		get->metrics[i].value =
			get->metrics[i].id == NVML_GPM_METRIC_FP32_UTIL ? NAN : *(double *)get->sample2;
	}
	return NVML_SUCCESS;
}

/* Each counter is its port times a thousand and its number. */
static enum nvml_return read_prm(struct nvml_device *device, struct nvml_prm_counters *list)
{
	NEED_GPU(device);
	for (uint32_t i = 0; i < list->count; i++) {
		struct nvml_prm_counter *counter = &list->counters[i];

		counter->value.result = counter->input.port >= gpu->prm_first_port ?
						NVML_SUCCESS :
						NVML_ERROR_INVALID_ARGUMENT;
		counter->value.type = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
		counter->value.value.as_u64 = counter->input.port * UINT64_C(1000) + counter->id;
	}
	return gpu->prm_result;
}

static enum nvml_return event_create(struct nvml_event_set **set)
{
	*set = (struct nvml_event_set *)&fake;
	return NVML_SUCCESS;
}

static enum nvml_return event_free(struct nvml_event_set *set)
{
	(void)set;
	fake.registered = 0;
	return NVML_SUCCESS;
}

static enum nvml_return event_register(struct nvml_device *device, uint64_t types, struct nvml_event_set *set)
{
	NEED_GPU(device);
	(void)set;
	assert_true(types & NVML_EVENT_XID_CRITICAL_ERROR);
	fake.registered += gpu->register_result == NVML_SUCCESS;
	return gpu->register_result;
}

static enum nvml_return event_wait(struct nvml_event_set *set, struct nvml_event_data *data, uint32_t timeout)
{
	(void)set;
	assert_int_equal(timeout, 0);
	if (fake.events_n == 0)
		return NVML_ERROR_TIMEOUT;
	*data = fake.events[0];
	memmove(fake.events, fake.events + 1, --fake.events_n * sizeof(fake.events[0]));
	return NVML_SUCCESS;
}

static void fill_table(struct nvml_api *api)
{
	*api = (struct nvml_api){
		.nvmlInit_v2 = init,
		.nvmlShutdown = shut_down,
		.nvmlDeviceGetCount_v2 = get_count,
		.nvmlDeviceGetHandleByIndex_v2 = get_handle,
		.nvmlDeviceGetUUID = get_uuid,
		.nvmlDeviceGetPciInfo_v3 = get_pci,
		.nvmlDeviceGetPowerUsage = get_power,
		.nvmlDeviceGetTotalEnergyConsumption = get_energy,
		.nvmlDeviceGetCudaComputeCapability = get_capability,
		.nvmlDeviceGetSerial = get_serial,
		.nvmlDeviceGetNvLinkState = get_link_state,
		.nvmlDeviceGetNvLinkRemoteDeviceType = get_link_end,
		.nvmlDeviceGetEncoderStats = get_encoder,
		.nvmlDeviceGetFBCStats = get_fbc,
		.nvmlDeviceGetTemperatureV = get_temperature_v,
		.nvmlDeviceGetTemperature = get_temperature,
		.nvmlDeviceGetMarginTemperature = get_margin,
		.nvmlDeviceGetEnforcedPowerLimit = get_limit,
		.nvmlDeviceGetMemoryInfo = get_memory,
		.nvmlDeviceGetMemoryInfo_v2 = get_memory_v2,
		.nvmlDeviceGetSamples = get_samples,
		.nvmlDeviceGetUtilizationRates = get_rates,
		.nvmlDeviceGetNumFans = get_fans,
		.nvmlDeviceGetGridLicensableFeatures_v4 = get_licenses,
		.nvmlDeviceGetFanSpeed_v2 = get_fan,
		.nvmlDeviceGetApplicationsClock = get_application_clock,
		.nvmlSystemGetDriverVersion = get_driver_version,
		.nvmlSystemGetProcessName = get_name,
		.nvmlDeviceGetComputeRunningProcesses_v3 = list_compute,
		.nvmlDeviceGetGraphicsRunningProcesses_v2 = list_graphics,
		.nvmlDeviceGetProcessesUtilizationInfo = util_newer,
		.nvmlDeviceGetProcessUtilization = util_older,
		.nvmlDeviceGetFieldValues = get_fields,
		.nvmlDeviceGetMigMode = get_mig_mode,
		.nvmlDeviceGetMaxMigDeviceCount = get_mig_max,
		.nvmlDeviceGetMigDeviceHandleByIndex = get_mig,
		.nvmlDeviceGetGpuInstanceId = get_gi,
		.nvmlDeviceGetComputeInstanceId = get_ci,
		.nvmlGpmQueryDeviceSupport = gpm_support,
		.nvmlGpmSampleAlloc = gpm_alloc,
		.nvmlGpmSampleFree = gpm_free,
		.nvmlGpmSampleGet = gpm_sample,
		.nvmlGpmMigSampleGet = gpm_mig_sample,
		.nvmlGpmMetricsGet = gpm_get,
		.nvmlDeviceReadPRMCounters_v1 = read_prm,
		.nvmlEventSetCreate = event_create,
		.nvmlEventSetFree = event_free,
		.nvmlDeviceRegisterEvents = event_register,
		.nvmlEventSetWait_v2 = event_wait,
	};
}

int fake_setup(void **state)
{
	struct nvml_shared *shared = calloc(1, sizeof(*shared));

	(void)state;
	clock_freeze(true);
	memset(&fake, 0, sizeof(fake));
	fake.count = 1;
	fake.driver = 1000;
	for (unsigned i = 0; i < FAKE_GPUS; i++) {
		struct fake_gpu *gpu = &fake.gpus[i];

		snprintf(gpu->uuid, sizeof(gpu->uuid), "GPU-%u", i);
		snprintf(gpu->bus_id, sizeof(gpu->bus_id), "00000000:%02X:00.0", i + 1);
		gpu->power_mw = 100000 * (i + 1);
		gpu->prm_result = NVML_ERROR_NOT_SUPPORTED;
	}
	reader = calloc(1, sizeof(*reader));
	reader_init(reader, shared, NULL);
	reader->fake = true;
	fill_table(&reader->api);
	return shared && reader ? 0 : -1;
}

int fake_teardown(void **state)
{
	(void)state;
	reader_done(reader);
	free(reader->shared);
	free(reader);
	return 0;
}

void pass_after(int64_t ms)
{
	clock_advance(ms * NSEC_PER_MSEC);
	reader_pass(reader);
}

void fake_field(struct fake_gpu *gpu, uint32_t field, uint32_t scope, uint64_t value)
{
	unsigned i = 0;

	while (i < gpu->fields_n && (gpu->fields[i].field != field || gpu->fields[i].scope != scope))
		i++;
	assert_true(i < FAKE_FIELDS);
	gpu->fields_n = MAX(gpu->fields_n, i + 1);
	gpu->fields[i].field = field;
	gpu->fields[i].scope = scope;
	gpu->fields[i].type = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
	gpu->fields[i].value = value;
	gpu->fields[i].result = NVML_SUCCESS;
}

uint64_t fake_now_us(void)
{
	return (uint64_t)(clock_real_ns() / 1000);
}

void fake_busy(struct fake_gpu *gpu, int64_t ms, uint32_t percent)
{
	uint64_t now = fake_now_us();

	for (int64_t at = ms - 100; at >= 0; at -= 100) {
		assert_true(gpu->samples_n < FAKE_SAMPLES);
		gpu->samples[gpu->samples_n++] = (struct nvml_sample){ .timestamp = now - (uint64_t)at * 1000,
								       .value.as_uint = percent };
	}
}

const struct reading_process *find_process(uint32_t pid)
{
	for (uint32_t i = 0; i < reader->reading->processes_n; i++)
		if (reader->reading->processes[i].pid == pid)
			return &reader->reading->processes[i];
	return NULL;
}
