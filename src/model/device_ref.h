// SPDX-License-Identifier: Apache-2.0
/*
 * A device as those name it who give devices to containers and jobs: device plugins, NVIDIA's container
 * toolkit, CDI, Slurm. Pure functions of texts.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum device_ref_kind {
	DEVICE_NOT, /* "none" or "void": no device */
	DEVICE_ALL, /* every GPU, with its instances */
	DEVICE_BY_UUID, /* of a GPU, or of a MIG instance; with `gi` and `ci`: that instance of the GPU */
	DEVICE_BY_INDEX, /* the driver's index of a GPU; `mig` set: a MIG device of it; `gi`: an instance */
	DEVICE_BY_MINOR, /* N of /dev/nvidiaN, which may differ from the index; `gi` set: an instance of it */
	/*
	 * of DRA: `uuid` is a digest of its names. Kept from the model: the API has to tell which GPU it is
	 */
	DEVICE_CLAIMED,
};

#define DEVICE_REF_NO UINT32_MAX

struct device_ref {
	enum device_ref_kind kind;
	uint32_t index; /* DEVICE_BY_INDEX: the index; DEVICE_BY_MINOR: the minor number */
	/*
	 * MIG instances by the driver's IDs; DEVICE_REF_NO: not said. Without `gi` and `mig`: the GPU
	 * itself
	 */
	uint32_t gi, ci;
	uint32_t mig; /* DEVICE_BY_INDEX: the driver's index of a MIG device of that GPU; DEVICE_REF_NO */
	char uuid[80]; /* DEVICE_BY_UUID: "GPU-…" or "MIG-…", perhaps the beginning of it */
};

/*
 * Parses one device: "GPU-<uuid>", "MIG-<uuid>", an old driver's "MIG-GPU-<uuid>/<gi>/<ci>" (uuid
 * "GPU-<uuid>", gi, ci), "3", "3:1" (GPU and MIG device by index, as NVIDIA_VISIBLE_DEVICES has it: index,
 * mig), "nvidia3", GKE's "nvidia3/gi7", DRA's "gpu-3" (both by the minor number), "all", "none", "void",
 * and each of these behind CDI's "<vendor>.nvidia.com/<class>=". The end that names a replica, "::N" of
 * NVIDIA's plugin or "/vgpuN" of GKE's, is taken off and sets *ret_replica (NULL: not wanted). -EINVAL:
 * none of these; nothing is set.
 */
int device_ref_parse(const char *text, struct device_ref *ret_device, bool *ret_replica);

/* The device that a driver of DRA calls so: DEVICE_CLAIMED, equal for equal names. */
void device_ref_claimed(const char *driver, const char *pool, const char *device,
			struct device_ref *ret_device);
