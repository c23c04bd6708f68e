// SPDX-License-Identifier: Apache-2.0
/*
 * src/push pushes numbers to a server that collects them: program gpusonde-push, one for each destination.
 * The agent (agent/outputs/push.c) hands it rows or a page of samples; it makes batches of them, sends
 * these, and keeps what the server does not take.
 *
 *   protocol, labels.def   what the agent says and is told
 *   kind, batch            kinds of destinations: what each makes of what it is handed
 *   rows, metrics.proto    the kind `push`: rows of /container/metrics as gzipped protobuf
 *   otlp_logs, otlp_resource  the kind `otlp_logs`: events as log records of OpenTelemetry
 *   queue                  batches on the disk
 *   post                   a request, by libcurl
 *   sender                 attempts, and what becomes of a batch
 *
 * Invariants
 *  1. One thread; libcurl has another one for names.
 *  2. The agent is answered at once, whatever the server does. What the disk does may take its time: then the
 *     agent replaces the process.
 *  3. Every batch is sent, in the queue, refused or lost, and is counted as such.
 *  4. The key is in memory alone, and in no text.
 */
#pragma once

#include "base/macro.h"
#include "push/protocol.h"

struct push_server;

/* As of the first question. -errno: there is no memory. */
int push_server_new(const struct push_settings *settings, struct push_server **ret_server);
void push_server_free(struct push_server *server);
DEFINE_CLEANUP(struct push_server *, push_server_free, push_server_freep)

/* Gives up what it does not need any more. @owner: as confine() takes it. */
int push_server_confine(struct push_server *server, pid_t owner);
/* Sends until the agent asks. 0 or -errno. */
int push_server_wait(struct push_server *server, int channel);
/*
 * 0: a question has come, with *ret_fd, the caller's, -1 for none; 1: the agent has closed @channel.
 * -EPROTONOSUPPORT: not of our version. -errno.
 */
int push_receive(int channel, struct push_question *ret_question, int *ret_fd);
/* Takes what is to be pushed, and answers. @fd stays the caller's. 0 or -errno: the agent is gone. */
int push_answer(struct push_server *server, int channel, struct push_question *question, int fd);
