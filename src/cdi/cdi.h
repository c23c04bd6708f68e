// SPDX-License-Identifier: Apache-2.0
/*
 * CDI, the Container Device Interface: specifications in /etc/cdi and /var/run/cdi say which device nodes a
 * device of a name stands for, "nvidia.com/gpu=0" or "k8s.gpu.nvidia.com/device=gpu-0". Those who give GPUs
 * to containers by CDI (NVIDIA's container toolkit, device plugin and DRA driver) write one that names each
 * of them; this finds the GPU or MIG instance behind a name. Specifications are root's files, but their size
 * and content are bounded all the same.
 *
 * A device is known by a UUID in its name, else by its nodes: by another name of the same nodes that has a
 * UUID, else by their minor numbers.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"
#include "cdi/nodes.h"
#include "model/device_ref.h"

enum {
	CDI_FILE_MAX = 1 << 20, /* bytes; nvidia-ctk's of eight GPUs has 20 to 60 KiB */
	CDI_FILES_MAX = 1024, /* of both folders: DRA's driver writes one for each claim */
	CDI_DEVICES_MAX = 8192,
	CDI_REFS_MAX = 16384,
	CDI_NAME_MAX = 512, /* "vendor/class=name" */
};

/* What the specifications say. */
struct cdi;

int cdi_new(struct cdi **ret_cdi);
void cdi_free(struct cdi *cdi);
DEFINE_CLEANUP(struct cdi *, cdi_free, cdi_freep)

/*
 * Adds one specification, YAML or JSON. It replaces earlier devices of the same names. -EBADMSG: it is none;
 * -E2BIG: a limit of base/yaml.h; -ENOMEM. @caps may be NULL.
 */
int cdi_add(struct cdi *cdi, const char *text, size_t n, const struct mig_caps *caps);

/*
 * folders.c: reads the specifications below @root, a descriptor of the folder where the host's root file
 * system is mounted, if their names or times have changed since the last call. 1: what they say may have
 * changed; 0: it is as before. -errno: memory or @root; what cannot be read is cdi_error()'s.
 */
int cdi_read(struct cdi *cdi, int root);
/* The first file or folder that exists and could not be read or understood, and why; "": none. */
const char *cdi_error(const struct cdi *cdi);
/* The driver's list of MIG instances' nodes, as it was read with the specifications. */
const struct mig_caps *cdi_caps(const struct cdi *cdi);
/* Files, devices and GPUs of devices that were beyond a limit above. */
uint32_t cdi_dropped(const struct cdi *cdi);

/*
 * The GPUs and instances of a device by its whole name, "nvidia.com/gpu=0". NULL: no specification has it;
 * *ret_n 0: it has no GPU, or one that cannot be told. Valid until the next cdi_add() or cdi_read().
 */
const struct device_ref *cdi_find(const struct cdi *cdi, const char *name, uint32_t *ret_n);
/*
 * The same for a device of a DRA driver ("gpu.nvidia.com", "gpu-0"), of which the name in CDI is not known:
 * that of its kinds "k8s.<driver>/..." and "<driver>/...", called "<device>" or "<claim's UID>-<device>".
 */
const struct device_ref *cdi_find_claimed(const struct cdi *cdi, const char *driver, const char *device,
					  uint32_t *ret_n);
