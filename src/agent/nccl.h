// SPDX-License-Identifier: Apache-2.0
/*
 * Listens for NCCL's profiler plugin (src/nccl_plugin) on a UNIX socket that every user may connect to, and
 * has a confined process receive what comes (src/nccl_socket). Its rows are checked, joined with the
 * processes that connected, and given to the model.
 */
#pragma once

#include <sys/types.h>

#include <systemd/sd-event.h>

#include "base/macro.h"
#include "model/model.h"

struct nccl_socket;

/* @path: where; a socket that is left there, which nobody listens on, is replaced. The error is logged. */
int nccl_socket_new(sd_event *event, struct model *model, const char *path, struct nccl_socket **ret_socket);
void nccl_socket_free(struct nccl_socket *socket);
/* Once a second: asks for the rows. */
void nccl_socket_tick(struct nccl_socket *socket);
/* Of the process that receives; 0: none. */
pid_t nccl_socket_pid(const struct nccl_socket *socket);
