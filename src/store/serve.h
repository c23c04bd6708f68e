// SPDX-License-Identifier: Apache-2.0
/* gpusonde-store: the process that has the file. One thread; what the disk does may take its time. */
#pragma once

#include <sys/types.h>

#include "base/macro.h"

struct store_server;

/* @owner: as confine() takes it; 0: it is not confined. */
int store_server_new(pid_t owner, struct store_server **ret_server);
void store_server_free(struct store_server *server);
DEFINE_CLEANUP(struct store_server *, store_server_free, store_server_freep)
/* Answers questions until @channel is closed. 0 or -errno. */
int store_serve(struct store_server *server, int channel);
