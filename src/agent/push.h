// SPDX-License-Identifier: Apache-2.0
/*
 * Pushes the numbers of /container/metrics to a server, by a process of its own (src/push). Off unless
 * server, cluster and key are configured. Belongs to the thread of the event loop.
 */
#pragma once

#include <sys/types.h>

#include <systemd/sd-event.h>

#include "config/options.h"
#include "model/model.h"
#include "push/protocol.h"

struct push;

struct push_config {
	const char *program; /* NULL: gpusonde-push */
	const char *key_file; /* borrowed from the options; NULL: the key is `API_KEY` of the environment */
	int64_t interval_ns;
	struct push_settings settings;
};

/*
 * What the options and the process's environment say. 0: *ret_config; -ENOENT: nobody wants it; -EINVAL: only
 * some of it is configured, or wrongly: @why says what is to be done.
 */
int push_configure(const struct options *options, struct push_config *ret_config, char *why, size_t size);
/* Copies @config. Starts no process: that is push_tick()'s. @model must live for longer. */
int push_new(sd_event *event, struct model *model, const struct push_config *config, struct push **ret_push);
void push_free(struct push *push);
DEFINE_CLEANUP(struct push *, push_free, push_freep)
/* Hands over what the snapshot has when it is time, and asks how it goes. */
void push_tick(struct push *push, const struct snapshot *snapshot);
/* Why nothing gets there; "": it does, or nothing was tried yet. Borrowed until the next call. */
const char *push_error(const struct push *push);
/* Of its process; 0: none runs. */
pid_t push_pid(const struct push *push);
