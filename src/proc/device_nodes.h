// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>
#include <stdint.h>

/* How the text of these begins among variables, whose names have no slash. */
#define PROC_DEVICE_NODES "/dev="

/*
 * Which GPUs a process finds in its own /dev: the minor numbers of character devices nvidiaN of NVIDIA's
 * major number there, as text "0,2". The folder may be of a file system that its user serves, so this may
 * wait for as long as the user likes. 0 and the length; -ESRCH: it has ended, or its root cannot be looked
 * at; -E2BIG: the folder has too many entries, or the text does not fit; another errno: there is no such
 * folder.
 */
int proc_device_nodes(const char *root, uint32_t pid, char *buf, size_t size, size_t *ret_n);
