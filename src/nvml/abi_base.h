// SPDX-License-Identifier: Apache-2.0
#pragma once

/* NVML: return codes, handles, version words, library and system calls. See nvml/abi.h. */

#include <stdint.h>

enum nvml_return {
	NVML_SUCCESS = 0,
	NVML_ERROR_UNINITIALIZED = 1,
	NVML_ERROR_INVALID_ARGUMENT = 2,
	NVML_ERROR_NOT_SUPPORTED = 3,
	NVML_ERROR_NO_PERMISSION = 4,
	NVML_ERROR_ALREADY_INITIALIZED = 5,
	NVML_ERROR_NOT_FOUND = 6,
	NVML_ERROR_INSUFFICIENT_SIZE = 7,
	NVML_ERROR_INSUFFICIENT_POWER = 8,
	NVML_ERROR_DRIVER_NOT_LOADED = 9,
	NVML_ERROR_TIMEOUT = 10,
	NVML_ERROR_IRQ_ISSUE = 11,
	NVML_ERROR_LIBRARY_NOT_FOUND = 12,
	NVML_ERROR_FUNCTION_NOT_FOUND = 13,
	NVML_ERROR_CORRUPTED_INFOROM = 14,
	NVML_ERROR_GPU_IS_LOST = 15,
	NVML_ERROR_RESET_REQUIRED = 16,
	NVML_ERROR_OPERATING_SYSTEM = 17,
	NVML_ERROR_LIB_RM_VERSION_MISMATCH = 18,
	NVML_ERROR_IN_USE = 19,
	NVML_ERROR_MEMORY = 20,
	NVML_ERROR_NO_DATA = 21,
	NVML_ERROR_INSUFFICIENT_RESOURCES = 23,
	NVML_ERROR_FREQ_NOT_SUPPORTED = 24,
	NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25,
	NVML_ERROR_DEPRECATED = 26,
	NVML_ERROR_NOT_READY = 27,
	NVML_ERROR_GPU_NOT_FOUND = 28,
	NVML_ERROR_INVALID_STATE = 29,
	NVML_ERROR_RESET_TYPE_NOT_SUPPORTED = 30,
	NVML_ERROR_UNKNOWN = 999,
};

/* Opaque handles; valid between nvmlInit and nvmlShutdown. */
struct nvml_device;
struct nvml_unit;

/* The first word of a versioned struct. Only the GPM structs have a plain 1 instead. */
#define NVML_VERSION_WORD(type, version) ((uint32_t)(sizeof(type) | (uint32_t)(version) << 24))

/* Values of a 32-bit and a 64-bit member for which the driver has no value. */
#define NVML_NONE_U32 UINT32_MAX
#define NVML_NONE_U64 UINT64_MAX

enum nvml_enable_state {
	NVML_FEATURE_DISABLED = 0,
	NVML_FEATURE_ENABLED = 1,
};

/* Which member of union nvml_value is set. */
enum nvml_value_type {
	NVML_VALUE_TYPE_DOUBLE = 0,
	NVML_VALUE_TYPE_UNSIGNED_INT = 1,
	NVML_VALUE_TYPE_UNSIGNED_LONG = 2,
	NVML_VALUE_TYPE_UNSIGNED_LONG_LONG = 3,
	NVML_VALUE_TYPE_SIGNED_LONG_LONG = 4,
	NVML_VALUE_TYPE_SIGNED_INT = 5,
	NVML_VALUE_TYPE_UNSIGNED_SHORT = 6,
	NVML_VALUE_TYPE_COUNT = 7,
};

union nvml_value { // nvmlValue_t
	double as_double;
	int32_t as_int;
	uint32_t as_uint;
	unsigned long as_ulong;
	uint64_t as_u64;
	int64_t as_i64;
	uint16_t as_ushort;
};
_Static_assert(sizeof(union nvml_value) == 8, "nvmlValue_t");

/* Flags of nvmlInitWithFlags. */
#define NVML_INIT_FLAG_NO_GPUS 1u
#define NVML_INIT_FLAG_NO_ATTACH 2u
#define NVML_INIT_FLAG_FORCE_INIT 4u

#define NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE 80
#define NVML_SYSTEM_NVML_VERSION_BUFFER_SIZE 80

struct nvml_driver_branch { // nvmlSystemDriverBranchInfo_v1_t
	uint32_t version;
	char branch[80];
};
_Static_assert(sizeof(struct nvml_driver_branch) == 84, "nvmlSystemDriverBranchInfo_v1_t");

struct nvml_conf_compute_caps { // nvmlConfComputeSystemCaps_t
	uint32_t cpu_caps;
	uint32_t gpus_caps;
};
_Static_assert(sizeof(struct nvml_conf_compute_caps) == 8, "nvmlConfComputeSystemCaps_t");

struct nvml_conf_compute_state { // nvmlConfComputeSystemState_t
	uint32_t environment;
	uint32_t feature;
	uint32_t dev_tools_mode;
};
_Static_assert(sizeof(struct nvml_conf_compute_state) == 12, "nvmlConfComputeSystemState_t");

struct nvml_conf_compute_settings { // nvmlSystemConfComputeSettings_v1_t
	uint32_t version;
	uint32_t environment;
	uint32_t feature;
	uint32_t dev_tools_mode;
	uint32_t multi_gpu_mode;
};
_Static_assert(sizeof(struct nvml_conf_compute_settings) == 20, "nvmlSystemConfComputeSettings_v1_t");

enum nvml_return nvmlInit(void);
enum nvml_return nvmlInit_v2(void);
enum nvml_return nvmlInitWithFlags(uint32_t flags);
enum nvml_return nvmlShutdown(void);
const char *nvmlErrorString(enum nvml_return result);

enum nvml_return nvmlSystemGetDriverVersion(char *version, uint32_t length);
enum nvml_return nvmlSystemGetNVMLVersion(char *version, uint32_t length);
enum nvml_return nvmlSystemGetCudaDriverVersion(int *version);
enum nvml_return nvmlSystemGetCudaDriverVersion_v2(int *version);
enum nvml_return nvmlSystemGetDriverBranch(struct nvml_driver_branch *branch, uint32_t length);
enum nvml_return nvmlSystemGetProcessName(uint32_t pid, char *name, uint32_t length);
enum nvml_return nvmlSystemGetConfComputeCapabilities(struct nvml_conf_compute_caps *caps);
enum nvml_return nvmlSystemGetConfComputeState(struct nvml_conf_compute_state *state);
enum nvml_return nvmlSystemGetConfComputeSettings(struct nvml_conf_compute_settings *settings);
enum nvml_return nvmlSystemGetConfComputeGpusReadyState(uint32_t *accepting);
enum nvml_return nvmlUnitGetCount(uint32_t *count);
enum nvml_return nvmlGetExcludedDeviceCount(uint32_t *count);
