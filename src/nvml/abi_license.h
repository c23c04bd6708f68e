// SPDX-License-Identifier: Apache-2.0
#pragma once

/* NVML: licences of vGPU software. See nvml/abi.h. */

#include "nvml/abi_base.h"

#define NVML_GRID_LICENSE_BUFFER_SIZE 128
#define NVML_GRID_LICENSE_FEATURE_MAX_COUNT 3

enum nvml_license_feature_code {
	NVML_GRID_LICENSE_FEATURE_CODE_UNKNOWN = 0,
	NVML_GRID_LICENSE_FEATURE_CODE_VGPU = 1,
	NVML_GRID_LICENSE_FEATURE_CODE_NVIDIA_RTX = 2,
	NVML_GRID_LICENSE_FEATURE_CODE_GAMING = 3,
	NVML_GRID_LICENSE_FEATURE_CODE_COMPUTE = 4,
};

struct nvml_license_expiry { // nvmlGridLicenseExpiry_t
	uint32_t year;
	uint16_t month;
	uint16_t day;
	uint16_t hour;
	uint16_t min;
	uint16_t sec;
	uint8_t status;
};
_Static_assert(sizeof(struct nvml_license_expiry) == 16, "nvmlGridLicenseExpiry_t");

struct nvml_licensable_feature { // nvmlGridLicensableFeature_t
	uint32_t code;
	uint32_t state; /* not 0: licensed now */
	char info[NVML_GRID_LICENSE_BUFFER_SIZE];
	char product[NVML_GRID_LICENSE_BUFFER_SIZE];
	uint32_t enabled;
	struct nvml_license_expiry expiry;
};
_Static_assert(sizeof(struct nvml_licensable_feature) == 284, "nvmlGridLicensableFeature_t");

struct nvml_licensable_features { // nvmlGridLicensableFeatures_t
	int supported; /* not 0: this device may need a licence */
	uint32_t count;
	struct nvml_licensable_feature features[NVML_GRID_LICENSE_FEATURE_MAX_COUNT];
};
_Static_assert(sizeof(struct nvml_licensable_features) == 860, "nvmlGridLicensableFeatures_t");

enum nvml_return nvmlDeviceGetGridLicensableFeatures_v4(struct nvml_device *device,
							struct nvml_licensable_features *features);
