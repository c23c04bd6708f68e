// SPDX-License-Identifier: Apache-2.0
/*
 * The source KUBE: whose the node's pods are, and what controls them in the end, as the Kubernetes API says,
 * which a process of its own asks (src/kube). Belongs to the thread of the event loop.
 */
#pragma once

#include <sys/types.h>

#include <systemd/sd-event.h>

#include "config/options.h"
#include "kube/protocol.h"
#include "model/model.h"

struct kube;

struct kube_config {
	const char *program; /* NULL: gpusonde-kube */
	bool quiet; /* nobody has asked for it: where the API refuses, that is no failure of ours */
	struct kube_settings settings;
	/* Pods that export metrics of GPUs, and labels of the node, whenever they change; may be NULL. */
	void (*exporters)(const struct kube_exporter *list, uint32_t n, void *userdata);
	void (*labels)(const struct kube_label *list, uint32_t n, void *userdata);
	/* Devices of DRA, asked for while @wants_devices says that pods were given some; both may be NULL. */
	void (*devices)(const struct kube_device *list, uint32_t n, void *userdata);
	bool (*wants_devices)(void *userdata);
	void *userdata;
};

/*
 * What the options and the process's environment say: false, the API is not to be asked. @exporters: a label
 * selector of exporters' pods, or NULL.
 */
bool kube_configure(const struct options *options, const char *exporters, struct kube_config *ret_config);
/* Copies @config. Starts no process: that is kube_tick()'s. @model must live for longer. */
int kube_new(sd_event *event, struct model *model, const struct kube_config *config, struct kube **ret_kube);
void kube_free(struct kube *kube);
DEFINE_CLEANUP(struct kube *, kube_free, kube_freep)
/* Asks when it is time: every two seconds; every second while a container or pod has no name. */
void kube_tick(struct kube *kube);
/* Of its process; 0: none runs. */
pid_t kube_pid(const struct kube *kube);
