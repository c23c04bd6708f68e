// SPDX-License-Identifier: Apache-2.0
/*
 * Between the agent (agent/kubelet.c) and gpusonde-kubelet: one question, the tables that have changed in
 * parts (helper/parts.h), then the end.
 */
#pragma once

#include <limits.h>
#include <stdint.h>

#include <linux/capability.h>

#include "helper/confine.h"
#include "helper/parts.h"
#include "model/allocation.h"
#include "model/health.h"

/*
 * To connect, before it is confined: kubelet's sockets are root's. Kept is what reads CDI specifications
 * and folders of logs, which may be closed to others.
 */
#define KUBELET_KEPT_CAPABILITIES CONFINE_CAPABILITY(DAC_READ_SEARCH)
#define KUBELET_CAPABILITIES (KUBELET_KEPT_CAPABILITIES | CONFINE_CAPABILITY(DAC_OVERRIDE))

enum kubelet_table {
	KUBELET_OWNERS, /* struct owner: of the Pods API */
	KUBELET_ALLOCATIONS, /* struct allocation: of the pod-resources API */
	KUBELET_LISTED, /* struct device_health: of the same */
	KUBELET_POD_HEALTH, /* struct device_health: of the Pods API */
	KUBELET_TABLES,
};

struct kubelet_question {
	char version[32]; /* GPUSONDE_VERSION; of another one's question nothing else is read */
	uint64_t known[KUBELET_TABLES]; /* digests of the newest tables that the agent has; 0: none */
	char root[PATH_MAX]; /* where the host's root file system is mounted */
	char socket[PATH_MAX]; /* of pod-resources, below it; as of the first question to a process */
	char resources[4096]; /* further names of resources, separated by commas; the same */
};

enum kubelet_outcome {
	KUBELET_OK,
	KUBELET_FAILED,
	KUBELET_BUSY, /* kubelet refuses so many questions: ask later */
	KUBELET_OUTCOMES,
};

/* The last message of an answer. */
struct kubelet_end {
	uint32_t message; /* PART_OTHERS */
	uint32_t outcome; /* enum kubelet_outcome */
	/*
	 * Of the tables as of now; one that has been sent, or the one @known. 0: it could not be had, and
	 * what the agent knows stays; or there is no Pods API.
	 */
	uint64_t digest[KUBELET_TABLES];
	uint64_t dropped[KUBELET_TABLES]; /* rows that did not fit, and pods that could not be read */
	uint32_t replace; /* 1: the connection has ended; another process must be asked */
	uint32_t pods_api; /* 1: kubelet has it */
	uint32_t allocatable; /* GPUs, instances and slots that pods can be given; UINT32_MAX: not known */
	uint32_t unmatched; /* devices that name no GPU as far as can be told */
	uint32_t
		claimed; /* of these: devices of DRA, which the API may know; their rows are DEVICE_CLAIMED */
	uint32_t reserved;
	char error[256]; /* why the outcome is not KUBELET_OK; "" */
	char note[256]; /* what else is to be said: unmatched devices, what could not be read; "" */
};
