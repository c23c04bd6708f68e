// SPDX-License-Identifier: Apache-2.0
/*
 * The GPUs and MIG instances that device nodes stand for: those of a container, or of a device of a CDI
 * specification. Minor numbers are the driver's, and not its indexes. Pure functions.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/device_ref.h"

enum {
	NVIDIA_MAJOR = 195, /* of /dev/nvidiaN, fixed */
	NVIDIA_MINORS = 254, /* nvidia-modeset and nvidiactl are 254 and 255 */
	GPU_NODES_MAX = 256, /* more than a node has: each kind of them */
	MIG_CAPS_MAX = 4096, /* 64 GPUs of 14 instances with a few compute instances */
};

/* A reference of this kind, with nothing said beyond. */
#define DEVICE_REF(kind_)                             \
	((struct device_ref){ .kind = (kind_),        \
			      .index = DEVICE_REF_NO, \
			      .gi = DEVICE_REF_NO,    \
			      .ci = DEVICE_REF_NO,    \
			      .mig = DEVICE_REF_NO })

/* Which node /dev/nvidia-caps/nvidia-capN opens which MIG instance. */
struct mig_cap {
	uint32_t minor; /* N */
	uint32_t gpu; /* the GPU's minor number */
	uint32_t gi, ci; /* ci DEVICE_REF_NO: the GPU instance's own node */
};
struct mig_caps {
	struct mig_cap *list; /* by minor */
	uint32_t n, dropped;
};

/* Parses /proc/driver/nvidia-caps/mig-minors: lines "gpu0/gi7/ci0/access 67". -ENOMEM. */
int mig_caps_parse(const char *text, size_t n, struct mig_caps *ret_caps);
void mig_caps_done(struct mig_caps *caps);

/* Zeroed: none. */
struct gpu_nodes {
	uint8_t gpus[GPU_NODES_MAX / 8]; /* set of minor numbers */
	uint32_t caps[GPU_NODES_MAX]; /* of instances */
	uint32_t caps_n;
	bool cut; /* it has more: what it stands for is not known */
};

/* Adds what a path is: /dev/nvidiaN, /dev/nvidia-caps/nvidia-capN. False: it is no such node. */
bool gpu_nodes_add(struct gpu_nodes *nodes, const char *path);
/* Adds a character device of these numbers. False: it is no GPU's. */
bool gpu_nodes_add_number(struct gpu_nodes *nodes, uint64_t major, uint64_t minor);
bool gpu_nodes_equal(const struct gpu_nodes *a, const struct gpu_nodes *b);
/* Equal for equal sets, whatever their order. */
uint64_t gpu_nodes_hash(const struct gpu_nodes *nodes);

/*
 * What they stand for, as DEVICE_BY_MINOR, at most @max; the number. A GPU with nodes of its instances stands
 * for these; where @caps (may be NULL) does not know one of them, nothing is said of any GPU.
 */
uint32_t gpu_nodes_refs(const struct gpu_nodes *nodes, const struct mig_caps *caps,
			struct device_ref *ret_list, uint32_t max);
