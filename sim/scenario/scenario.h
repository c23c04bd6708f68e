// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/scenario/curve.h"
#include "sim/scenario/fault.h"
#include "sim/scenario/generation.h"
#include "sim/scenario/model.h"

/*
 * A scenario, as read from its YAML file and not changed afterwards: what the node is made of and what
 * happens on it. sim/README.md describes the file; the limits below bound what one file can ask for.
 */
enum {
	SCENARIO_MAX_GPUS = 16,
	SCENARIO_MAX_PROCESSES = 256, /* entries */
	SCENARIO_MAX_SLOTS = 1024, /* processes on GPUs that they make */
	SCENARIO_MAX_COUNTERS = 64,
	SCENARIO_MAX_XIDS = 32,
	SCENARIO_MAX_REASONS = 16,
	SCENARIO_MAX_INSTANCES = 8, /* MIG instances of a GPU */
	SCENARIO_TICK_MS = 100, /* the driver's sample period */
};

/* Engines of a GPU, in the order in which everything here counts them. */
enum engine {
	ENGINE_GPU,
	ENGINE_MEMORY,
	ENGINE_ENCODER,
	ENGINE_DECODER,
	ENGINE_JPEG,
	ENGINE_OFA,
	ENGINE_COUNT,
};

/* Traffic that a scenario may set; otherwise it goes with the load. */
enum traffic {
	TRAFFIC_PCIE_TX,
	TRAFFIC_PCIE_RX,
	TRAFFIC_NVLINK_TX,
	TRAFFIC_NVLINK_RX,
	TRAFFIC_COUNT,
};

/* A MIG device: a GPU instance with one compute instance in it. */
struct scenario_instance {
	uint32_t gpu_instance, compute_instance;
	uint32_t slices, memory_slices,
		start; /* slices of compute; of memory, which is cut in 8; first of these */
	uint32_t memory_mib;
	uint32_t profile; /* NVML_GPU_INSTANCE_PROFILE_... */
	char name[24]; /* "3g.40gb" */
	char uuid[48];
};

enum vgpu_license { VGPU_LICENSE_NONE, VGPU_LICENSE_MISSING, VGPU_LICENSE_VALID };

struct scenario_gpu {
	struct model model;
	struct curve traffic[TRAFFIC_COUNT]; /* MB/s, all NVLinks together */
	bool traffic_set[TRAFFIC_COUNT];
	struct scenario_instance instances[SCENARIO_MAX_INSTANCES];
	uint32_t instance_count;
	bool mig; /* its current mode; a GPU may be in MIG mode with no instance */
	bool display_active, persistence, remap_pending, remap_failed, retire_pending;
	uint32_t compute_mode, numa_node, application_sm_mhz; /* the last 0: none set */
	enum vgpu_license vgpu_license;
	uint32_t pci_domain, pci_bus, minor, inactive_links;
	char uuid[48], serial[24];
	struct name_globs unsupported;
};

/* In place of a load of the memory interface: it goes with that of the GPU. */
#define LOAD_FOLLOWS (-1.0f)

enum process_type { PROCESS_COMPUTE = 1, PROCESS_GRAPHICS = 2, PROCESS_MPS = 4 };

/* Where the PID of a process comes from. */
enum pid_source {
	PID_FAKE, /* a number that no process of a real system has */
	PID_FIXED, /* `pid`, and the following numbers */
	PID_SELF, /* of the program that loaded the library */
	PID_MATCH, /* processes of this machine with this name */
};

struct scenario_process {
	char name[64], match[32];
	enum pid_source pid_source;
	uint32_t pid, type, gpus, count; /* gpus: one bit each */
	bool shared_pid; /* one process on all its GPUs, not one for each */
	int32_t instance; /* the MIG device's number on its GPU; negative: none */
	struct curve memory; /* MiB */
	/* percent of the GPU or instance; of the memory interface also LOAD_FOLLOWS */
	struct curve load[ENGINE_COUNT];
	struct window window; /* when it runs; then it exits and a new one starts */
	int64_t stagger_ms; /* each further instance is so much later in all of this */
	uint32_t encoder_fps; /* frames per second of an encoder session; 0: none */
};

enum counter_kind {
	COUNTER_ECC_CORRECTED,
	COUNTER_ECC_UNCORRECTED,
	COUNTER_NVLINK_REPLAY, /* in the order of enum nvml_nvlink_error */
	COUNTER_NVLINK_RECOVERY,
	COUNTER_NVLINK_CRC_FLIT,
	COUNTER_NVLINK_CRC_DATA,
	COUNTER_NVLINK_ECC_DATA,
	COUNTER_PCIE_REPLAY,
	COUNTER_REMAPPED_CORRECTABLE,
	COUNTER_REMAPPED_UNCORRECTABLE,
	COUNTER_RETIRED_SINGLE_BIT,
	COUNTER_RETIRED_DOUBLE_BIT,
	COUNTER_KIND_COUNT,
};

/* Errors: `initial` before the node booted, then `count` more whenever the window opens. */
struct scenario_counter {
	enum counter_kind kind;
	uint32_t gpus;
	uint32_t where; /* NVML_MEMORY_LOCATION_... or the link */
	uint64_t initial, count;
	struct window window;
};

struct scenario_xid {
	uint32_t xid, gpu;
	int32_t instance; /* the MIG device's number; negative: none */
	struct window window;
};

/* A reason for low clocks, while the window is open. */
struct scenario_reason {
	uint64_t bit;
	uint32_t gpus;
	struct window window;
};

struct scenario {
	char name[64];
	enum generation_id generation; /* of the driver: which functions there are */
	char driver_version[80], nvml_version[80], driver_branch[80];
	uint32_t cuda_version; /* 12040 for 12.4 */
	int64_t cycle_ms; /* the load of the node repeats after this */
	uint32_t seed;
	struct scenario_gpu gpus[SCENARIO_MAX_GPUS];
	uint32_t gpu_count;
	struct scenario_process processes[SCENARIO_MAX_PROCESSES];
	uint32_t process_count;
	struct scenario_counter counters[SCENARIO_MAX_COUNTERS];
	uint32_t counter_count;
	struct scenario_xid xids[SCENARIO_MAX_XIDS];
	uint32_t xid_count;
	struct scenario_reason reasons[SCENARIO_MAX_REASONS];
	uint32_t reason_count;
	struct fault faults[FAULT_MAX];
	uint32_t fault_count;
};

/* A message about an error in a scenario: "file:line: ", cause and remedy. */
struct scenario_error {
	char message[512];
};

/* Sets the generation and its versions. */
void scenario_set_generation(struct scenario *scenario, enum generation_id id);

/*
 * Reads a scenario. Returns 0, -EINVAL if it is invalid, -ENOMEM, or why the file cannot be read; on error,
 * err has the message. The result is freed with free().
 */
int scenario_load_file(const char *path, struct scenario **ret_scenario, struct scenario_error *err);
int scenario_load_buffer(const char *name, const void *data, size_t length, struct scenario **ret_scenario,
			 struct scenario_error *err);

/* Reads the faults of a control file, at most FAULT_MAX. An empty file has none. */
int scenario_load_faults(const char *path, struct fault *ret_faults, uint32_t *ret_count,
			 struct scenario_error *err);
