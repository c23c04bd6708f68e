// SPDX-License-Identifier: Apache-2.0
/*
 * The node's tags, for whatever labels hosts: an inventory, a scheduler, another monitoring agent. What its
 * GPUs are (gpu_host, gpu_vendor, gpu_count, gpu_model, gpu_architecture, gpu_mig_mode, gpu_mig_profile,
 * gpu_driver_version, gpu_cuda_version, gpu_simulated), then what it was given. Each pair once, the same in
 * every view.
 */
#pragma once

#include "model/snapshot.h"

#define NODE_TAG_HELP "A tag of the node: what its GPUs are, and what the configuration says (node.tags)."

enum { TAG_VALUE_MAX = 128, TAGS_MAX = NODE_TAGS_MAX + 3 * READING_ENTITIES_MAX + 16 };

struct tag {
	const char *key; /* of the snapshot, or static */
	char value[TAG_VALUE_MAX];
};

/* Fills @ret_tags, of which there are TAGS_MAX; returns how many there are. */
uint32_t tags_of(const struct snapshot *s, struct tag *ret_tags);
