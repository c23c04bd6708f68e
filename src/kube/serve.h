// SPDX-License-Identifier: Apache-2.0
/*
 * src/kube is gpusonde-kube: the process that asks the API server whose the node's pods are, so that a server
 * that hangs or lies delays nothing else. It watches the pods of its node and nothing more.
 *
 *   access, kubeconfig   where the server is, and credentials, which are read again as they are rotated
 *   client               requests, by libcurl
 *   json                 values at known paths of a stream
 *   watch                a collection, listed and watched
 *   node_pods, selector  what is kept of each pod
 *   kinds, walk          what controls it in the end
 *   tables, protocol     what the agent is told
 *
 * Invariants
 *  1. One thread; libcurl has another one for names.
 *  2. A list is never whole in memory, nor is an object.
 *  3. What an answer can make grow has a bound, and reaching it is counted.
 *  4. The agent is answered from memory, whatever the server does.
 */
#pragma once

#include "base/macro.h"
#include "kube/protocol.h"

struct kube_server;

/* -errno: there is no memory. What else is wrong is what it answers. */
int kube_server_new(const struct kube_settings *settings, struct kube_server **ret_server);
void kube_server_free(struct kube_server *server);
DEFINE_CLEANUP(struct kube_server *, kube_server_free, kube_server_freep)

/* Gives up what it does not need any more. @owner: as confine() takes it. */
int kube_server_confine(struct kube_server *server, pid_t owner);
/* Asks the API server until the agent asks. 0: it does; -errno. */
int kube_server_wait(struct kube_server *server, int channel);
/* 0 or -errno: the agent is gone. */
int kube_answer(struct kube_server *server, int channel, const struct kube_question *question);
