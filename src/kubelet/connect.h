// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>

/*
 * A non-blocking connection to the UNIX socket @path below the folder @root, or -errno. Becomes root for
 * the moment, if this process may and that helps: kubelet's sockets are root's.
 */
int connect_below(int root, const char *path, int *ret_fd);

/*
 * Where the Pods API's socket of the kubelet is whose pod-resources socket is @socket: @which of two
 * places. -ENOENT: there are no more; -ENAMETOOLONG.
 */
int pods_api_path(const char *socket, unsigned which, char *ret_path, size_t size);
