// SPDX-License-Identifier: Apache-2.0
/*
 * A driver made of functions in the test itself: the table that the reader calls, answers that a test sets,
 * and a clock that stands still until the test moves it.
 */
#pragma once

#include "near.h"

#include "base/clock.h"
#include "nvml/reader.h"

enum {
	FAKE_GPUS = 3,
	FAKE_SAMPLES = 256,
	FAKE_PROCESSES = 400,
	FAKE_FIELDS = 512,
	FAKE_INSTANCES = 4,
	FAKE_EVENTS = 8
};

struct fake_process {
	uint32_t pid;
	uint64_t memory;
	enum process_type types;
};

struct fake_instance {
	struct nvml_device *handle; /* its own address */
	uint32_t gi, ci;
	char uuid[48];
	enum nvml_return memory_result;
};

struct fake_gpu {
	char uuid[48], bus_id[32];
	bool lost, mig;
	enum nvml_return handle_result, uuid_result, capability_result, serial_result;
	unsigned handle_calls;
	enum nvml_return power_result, energy_result, memory_v2_result, samples_result, util_newer_result,
		util_older_result, compute_list_result, temperature_v_result;
	uint32_t power_mw, rate_gpu;
	int32_t celsius;
	uint32_t encoder_sessions;
	struct nvml_licensable_features licenses;
	enum nvml_return license_result;
	int capability; /* major; 0: not told */
	uint32_t switched_links;
	uint64_t energy_mj;
	struct nvml_sample samples[FAKE_SAMPLES]; /* of the GPU engine; the others have none */
	unsigned samples_n, samples_calls;
	int64_t samples_cost_ns; /* CPU time that asking for them takes */
	struct fake_process processes[FAKE_PROCESSES];
	unsigned processes_n;
	struct nvml_process_utilization_v1 utils[FAKE_PROCESSES];
	unsigned utils_n;
	struct fake_instance instances[FAKE_INSTANCES];
	unsigned instances_n;
	bool gpm;
	double gpm_percent; /* of every GPM metric */
	enum nvml_return register_result, prm_result;
	uint32_t prm_first_port;
	/* Fields: by default unsupported. */
	struct {
		uint32_t field, scope, type;
		enum nvml_return result;
		uint64_t value;
	} fields[FAKE_FIELDS];
	unsigned fields_n;
	int64_t skew_us, field_age_us; /* of the driver's clock; of a field's time stamp */
	unsigned field_asked[400]; /* how often, by field id */
	unsigned field_calls;
	uint32_t scribbled_scope; /* not 0: written over the scope of every field that was asked */
	uint32_t fans_n, application_mhz;
	enum nvml_return fans_result, application_memory_result, gpm_result;
	uint32_t list_claim, util_claim, samples_claim; /* not 0: how many records it says to have written */
};

struct fake {
	struct fake_gpu gpus[FAKE_GPUS];
	unsigned count;
	unsigned driver; /* its version */
	enum nvml_return init_result, version_result;
	bool gone; /* the driver was unloaded after it was initialised */
	unsigned inits, shutdowns;
	struct nvml_event_data events[FAKE_EVENTS];
	unsigned events_n, registered;
	unsigned limit_calls; /* of nvmlDeviceGetEnforcedPowerLimit: a slow one */
	unsigned list_calls;
};
extern struct fake fake;

/* A reader upon the fake driver; what @fake says holds from the next pass on. */
extern struct reader *reader;
int fake_setup(void **state);
int fake_teardown(void **state);

/* Moves the clock and makes a pass. */
void pass_after(int64_t ms);
/* The newest reading of a number of an entity, by row name. */
#define VALUE(entity_, row_) (reader->reading->entities[entity_].v[SLOT_##row_])
#define PRESENCE(entity_, row_) (reader->reading->entities[entity_].p[SLOT_##row_])

void fake_field(struct fake_gpu *gpu, uint32_t field, uint32_t scope, uint64_t value);
/* Adds samples of the GPU engine every 100 ms over the last @ms, which end now. */
void fake_busy(struct fake_gpu *gpu, int64_t ms, uint32_t percent);
/* The driver's time now, in microseconds since 1970. */
uint64_t fake_now_us(void);
const struct reading_process *find_process(uint32_t pid);
