// SPDX-License-Identifier: Apache-2.0
/*
 * What the administrator lets NVIDIA's container toolkit follow, by its configuration: the variable
 * NVIDIA_VISIBLE_DEVICES of containers without privileges, and mounts that name devices. Of the file only
 * these two keys are read (NVIDIA's api/config/v1: names and defaults).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define TOOLKIT_FILE "etc/nvidia-container-runtime/config.toml"

struct toolkit {
	bool known; /* false: the file is not at hand, and both are assumed to be followed */
	bool variable; /* accept-nvidia-visible-devices-envvar-when-unprivileged */
	bool mounts; /* accept-nvidia-visible-devices-as-volume-mounts */
};

/* Where nothing is known of it. */
extern const struct toolkit toolkit_unknown;

/* What a file of this text says; "": the defaults. Pure. */
struct toolkit toolkit_parse(const char *text, size_t n);
/*
 * Reads the file below @root, a descriptor of the folder where the host's root file system is mounted. A
 * missing file means the defaults if @root is our own root, where it would be seen. A file that is not
 * root's, or that others may write to, is not believed. True: it says something else than *toolkit.
 */
bool toolkit_read(struct toolkit *toolkit, int root);
