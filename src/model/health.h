// SPDX-License-Identifier: Apache-2.0
/*
 * Whether those who give devices to pods call a device healthy. Kubelet's list of what it can give and the
 * status of pods are two things, and shown as two: the first has every device of a device plugin, but says
 * nothing of why one is not in it; the second is the plugin's own word, of devices alone that pods have.
 */
#pragma once

#include "model/device_ref.h"

enum health {
	HEALTH_UNKNOWN,
	HEALTH_GOOD,
	HEALTH_BAD,
};

/* What is shown. */
enum health_kind {
	HEALTH_ALLOCATABLE, /* kubelet can give it, or could once and cannot any more */
	HEALTH_POD_STATUS, /* `allocatedResourcesStatus` of pods */
	HEALTH_KINDS
};

/* Who says it. Of two that say the same kind the first that knows a device counts. */
enum health_teller { HEALTH_KUBELET_LIST, HEALTH_KUBELET_PODS, HEALTH_API_PODS, HEALTH_TELLERS };

struct device_health {
	struct device_ref device;
	uint32_t health; /* enum health; of several rows of a device the worst counts */
};

enum { DEVICE_HEALTH_MAX = 4096 }; /* rows of one teller: as many as it may name allocations */
