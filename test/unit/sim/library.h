// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>

#include "nvml/abi.h"

/*
 * The library under test, loaded again for each scenario as a program would load it. Its functions are
 * members here, under their own names without "nvml".
 */
#define LIBRARY_FUNCTIONS(X)                   \
	X(DeviceGetComputeRunningProcesses)    \
	X(DeviceGetComputeRunningProcesses_v3) \
	X(DeviceGetCount_v2)                   \
	X(DeviceGetFieldValues)                \
	X(DeviceGetGpuInstanceId)              \
	X(DeviceGetHandleByIndex_v2)           \
	X(DeviceGetHandleByUUID)               \
	X(DeviceGetMemoryInfo_v2)              \
	X(DeviceGetMigDeviceHandleByIndex)     \
	X(DeviceGetName)                       \
	X(DeviceGetNvLinkRemotePciInfo_v2)     \
	X(DeviceGetP2PStatus)                  \
	X(DeviceGetPciInfo_v3)                 \
	X(DeviceGetPowerUsage)                 \
	X(DeviceGetProcessUtilization)         \
	X(DeviceGetSamples)                    \
	X(DeviceGetTemperature)                \
	X(DeviceGetTotalEnergyConsumption)     \
	X(DeviceGetUUID)                       \
	X(DeviceGetUtilizationRates)           \
	X(DeviceRegisterEvents)                \
	X(ErrorString)                         \
	X(EventSetCreate)                      \
	X(EventSetFree)                        \
	X(EventSetWait_v2)                     \
	X(GpmMetricsGet)                       \
	X(GpmMigSampleGet)                     \
	X(GpmSampleAlloc)                      \
	X(GpmSampleFree)                       \
	X(GpmSampleGet)                        \
	X(Init_v2)                             \
	X(Shutdown)                            \
	X(SystemGetDriverVersion)              \
	X(SystemGetProcessName)

struct library {
	void *handle;
	const char *identity;
	void (*advance)(int64_t ns);
	char path[64]; /* of the scenario's file */
#define X(name) typeof(nvml##name) *name;
	LIBRARY_FUNCTIONS(X)
#undef X
};

/*
 * Loads it with a scenario given as text, and a control file that is not there yet. Does not initialise it.
 */
void library_open(struct library *library, const char *scenario);
void library_close(struct library *library);

/* Writes the control file, or removes it (NULL), and waits until the library has had time to look. */
void library_control(struct library *library, const char *faults);

/* The handle of a GPU; initialises the library before if need be. */
struct nvml_device *library_device(struct library *library, uint32_t index);
