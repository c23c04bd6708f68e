// SPDX-License-Identifier: Apache-2.0
/*
 * The GPUs that a container was given, as the runtimes' files say it. All functions are pure: they parse
 * texts, which are hostile in part: an image chooses environment variables, a pod its annotations.
 *
 * An OCI bundle shows what was done: device nodes in it, or the hook of NVIDIA's container toolkit, which
 * makes them by mounts or the variable NVIDIA_VISIBLE_DEVICES, as far as its configuration lets it. Without
 * either, the variable is only the image's wish.
 * Docker's files show what was asked for, and are used where there is no bundle. A privileged container has
 * the nodes of all devices, and was not given one of them; a wish for GPUs counts for it as for others.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cdi/cdi.h"
#include "model/device_ref.h"
#include "owners/toolkit.h"

enum { GIVEN_MAX = 64 }; /* devices of one container: as many as CUDA shows a process */

struct given {
	struct device_ref list[GIVEN_MAX];
	uint32_t n;
	uint64_t dropped; /* beyond GIVEN_MAX, or with a name that means no device */
	/* Likely, and not confirmed: annotations alone tell it, or the toolkit may not be let. */
	bool estimated;
	char resource[64]; /* who says so: "NVIDIA_VISIBLE_DEVICES", "devices", a kind of CDI */
	char pod_uid[48]; /* "": not a pod's, or not noted */
};

/* What tells how to read what runtimes say. */
struct given_by {
	const struct cdi *cdi; /* what names of CDI mean; may be NULL */
	struct toolkit toolkit;
};

/*
 * config.json of an OCI bundle. -EBADMSG: it is no JSON object; -ENOMEM is that, too. A
 * container without GPUs has n 0.
 */
int given_by_bundle(const char *json, size_t n, const struct given_by *by, struct given *ret_given);
/* Docker's hostconfig.json, with the config.v2.json beside it for the container's environment. */
int given_by_docker(const char *host, size_t host_n, const char *config, size_t config_n,
		    const struct given_by *by, struct given *ret_given);
/* The container's first process, by config.v2.json; 0: it does not run. */
uint32_t docker_init(const char *config, size_t n);
