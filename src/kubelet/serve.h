// SPDX-License-Identifier: Apache-2.0
/*
 * gpusonde-kubelet: asks kubelet, over its UNIX sockets, what the node's pods were given and how they are
 * called, so that a kubelet that hangs or lies delays nothing else. A process speaks over the connections
 * that it has made before it was confined, and is replaced with them.
 */
#pragma once

#include "helper/confine.h"
#include "kubelet/protocol.h"

extern const struct confinement kubelet_confinement;

struct kubelet_server;

/* Connects as @question says. -errno: there is no memory; a connection that fails is the answer's. */
int kubelet_server_new(const struct kubelet_question *question, struct kubelet_server **ret_server);
void kubelet_server_free(struct kubelet_server *server);
DEFINE_CLEANUP(struct kubelet_server *, kubelet_server_free, kubelet_server_freep)

/*
 * Waits for a question. 0: it may be received; 1: meanwhile a connection has ended, so the process is of no
 * more use; -errno.
 */
int kubelet_wait(struct kubelet_server *server, int channel);
/*
 * 0: a question has come; 1: the agent has closed @channel. -EPROTONOSUPPORT: not of our version. -errno.
 */
int kubelet_receive(int channel, struct kubelet_question *ret_question);
/* 0 or -errno: the agent is gone. */
int kubelet_answer(struct kubelet_server *server, int channel, const struct kubelet_question *question);
