// SPDX-License-Identifier: Apache-2.0
/*
 * Who owns a container or pod, read from names and files that kubelet and the container runtimes leave on
 * the node. All functions are pure: they parse text. They return false, and an unspecified @ret_owner, if the
 * text does not name an owner. Texts are hostile; the owner's members are cut to their size, not escaped.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "model/owner.h"

/* The length of container IDs: SHA-256 in hexadecimal, of all runtimes here. */
enum { CONTAINER_ID_DIGITS = 64 };

/* Whether @name is such an ID, in lower case. */
bool is_container_id(const char *name);

/* A link in /var/log/containers: POD_NAMESPACE_CONTAINER-ID.log (kubelet, legacyLogSymlink()). */
bool owner_of_log_link(const char *name, struct owner *ret_owner);
/* A folder in /var/log/pods: NAMESPACE_POD_UID (kubelet, BuildPodLogsDirectory()). */
bool owner_of_log_folder(const char *name, struct owner *ret_owner);
/*
 * config.json of an OCI bundle, for its annotations by containerd's or CRI-O's server for kubelet. @id: the
 * container's. A pod's sandbox has no container name.
 */
bool owner_of_bundle(const char *id, const char *json, size_t n, struct owner *ret_owner);
/* Docker's config.v2.json. */
bool owner_of_docker(const char *json, size_t n, struct owner *ret_owner);

typedef void owner_fn(const struct owner *owner, void *userdata);
/*
 * containers.json, the list of containers/storage, which Podman and CRI-O use. 0 or -EBADMSG: it is no such
 * list; entries that are no containers are left out.
 */
int owners_of_storage(const char *json, size_t n, owner_fn *found, void *userdata);
