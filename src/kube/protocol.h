// SPDX-License-Identifier: Apache-2.0
/*
 * Between the agent (agent/kube.c) and gpusonde-kube: one question, the tables that have changed in parts
 * (helper/parts.h), then the end.
 */
#pragma once

#include <limits.h>
#include <stdint.h>

#include <linux/capability.h>

#include "helper/confine.h"
#include "helper/parts.h"
#include "model/health.h"
#include "model/net_failure.h"
#include "model/owner.h"

/* Tokens and keys may be root's alone, and are read again while it runs. */
#define KUBE_CAPABILITIES (CONFINE_CAPABILITY(DAC_READ_SEARCH) | CONFINE_CAPABILITY(DAC_OVERRIDE))

enum kube_table {
	KUBE_OWNERS, /* struct owner */
	KUBE_EXPORTERS, /* struct kube_exporter */
	KUBE_LABELS, /* struct kube_label: of the node */
	KUBE_DEVICES, /* struct kube_device: of the node */
	KUBE_HEALTH, /* struct device_health, by the status of pods */
	KUBE_TABLES,
};

enum { KUBE_EXPORTERS_MAX = 64, KUBE_LABELS_MAX = 64, KUBE_DEVICES_MAX = 1024 };

/* A pod that exports metrics of GPUs: one of this node whose labels were looked for, running and ready. */
struct kube_exporter {
	char namespace[64], pod[254], uid[48];
	char address[48]; /* its IP address; one of IPv6 without brackets */
};

struct kube_label {
	char key[320], value[64];
};

/* A device that a driver of DRA offers, and the UUID of the GPU or MIG instance that it is. */
struct kube_device {
	char driver[64], pool[254], device[64], uuid[80];
};

/* What a process is to do; as of the first question to it. Texts end with NUL. */
struct kube_settings {
	char server[1024], kubeconfig[PATH_MAX], context[256];
	char account[PATH_MAX]; /* folder of the service account */
	char host[256], port[16]; /* KUBERNETES_SERVICE_HOST and _PORT */
	char node[256];
	char workload_labels[2048]; /* keys, separated by commas */
	char node_labels[2048]; /* the same */
	char pod_run[400], pod_group[400]; /* "label:KEY", "annotation:KEY", "KEY" of a label; "": none */
	char resources[4096]; /* further names of GPUs, separated by commas (model/gpu_resource.h) */
	char exporters[2048]; /* a label selector; "": none are looked for */
	char exporter_namespaces[2048]; /* theirs, separated by commas; "*": all */
	char namespace[64]; /* whose pods are asked for; "": all */
	uint32_t cache; /* owners that are kept */
	uint32_t reserved;
	int64_t watch_ns; /* after which the server is to end a watch */
};

struct kube_question {
	char version[32]; /* GPUSONDE_VERSION; of another one's question nothing else is read */
	uint64_t known[KUBE_TABLES]; /* digests of the newest tables that the agent has; 0: none */
	uint32_t wants_devices; /* 1: pods were given devices of DRA */
	uint32_t reserved;
	struct kube_settings settings;
};

enum kube_outcome {
	KUBE_OK,
	KUBE_BEGINS, /* the first list has not come yet */
	KUBE_FAILED,
	KUBE_REFUSED, /* for want of rights, or of such an API */
	KUBE_OUTCOMES,
};

/* The last message of an answer. */
struct kube_end {
	uint32_t message; /* PART_OTHERS */
	uint32_t outcome; /* enum kube_outcome */
	uint64_t digest[KUBE_TABLES]; /* 0: it is not known yet, and what the agent knows stays */
	uint64_t dropped; /* pods, containers and owners that did not fit, or could not be read; as of now */
	/* since the answer before: */
	uint64_t bytes, requests, lists;
	uint64_t failures[NET_FAILURES]; /* of lists and watches */
	uint32_t replace; /* 1: another process must be asked: the configuration has changed */
	uint32_t pods; /* of the node */
	uint32_t exporters_skipped; /* that have no address of a pod, are not ready, or of other namespaces */
	uint32_t fallbacks; /* pods whose owners cannot be read */
	char error[256]; /* why the outcome is not KUBE_OK; "" */
	char note[256]; /* what else is to be said; "" */
};
