// SPDX-License-Identifier: Apache-2.0
#pragma once

/*
 * A socket that listens at @path, to which every user may connect, or -errno; -EADDRINUSE: another one
 * listens there. One that is left there, and nobody listens on, is replaced.
 */
int plugin_listen(const char *path);
