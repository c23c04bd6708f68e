// SPDX-License-Identifier: Apache-2.0
/*
 * The source KUBELET: what kubelet says that the node's pods were given, and how they are called, which a
 * process of its own asks for (src/kubelet). It runs only where kubelet's socket is. Belongs to the thread
 * of the event loop.
 */
#pragma once

#include <limits.h>
#include <sys/types.h>

#include <systemd/sd-event.h>

#include "kube/protocol.h"
#include "model/model.h"

struct kubelet;

struct kubelet_config {
	const char *program; /* NULL: gpusonde-kubelet */
	const char *root; /* where the host's root file system is mounted */
	const char *socket; /* of pod-resources, below it; "auto": one of the known places */
	const char *resources; /* further names of resources, separated by commas */
};

/* Copies @config. Starts no process: that is kubelet_tick()'s. @model must live for longer. */
int kubelet_new(sd_event *event, struct model *model, const struct kubelet_config *config,
		struct kubelet **ret_kubelet);
void kubelet_free(struct kubelet *kubelet);
DEFINE_CLEANUP(struct kubelet *, kubelet_free, kubelet_freep)
/*
 * Asks when it is time: every ten seconds; every second, a few times, after a container has come that has
 * no name; later if kubelet wants or fails.
 */
void kubelet_tick(struct kubelet *kubelet);
/* Whether pods were given devices of DRA of which kubelet and CDI do not tell which GPUs they are. */
bool kubelet_has_claims(const struct kubelet *kubelet);
/* What the API says of devices of DRA, in place of what it said before. */
void kubelet_set_devices(struct kubelet *kubelet, const struct kube_device *list, uint32_t n);
/* Of its process; 0: none runs. */
pid_t kubelet_pid(const struct kubelet *kubelet);

/*
 * The socket that is there, of @socket or of the places that "auto" means, below @root: whole, and where it
 * begins below the root. -ENOENT: none; -ENAMETOOLONG.
 */
int kubelet_find_socket(const char *root, const char *socket, char ret_path[PATH_MAX], size_t *ret_below);
/* Where that looks, whole paths with commas between; what does not fit is cut. */
void kubelet_list_sockets(const char *root, const char *socket, char *buf, size_t size);
