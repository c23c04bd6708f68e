// SPDX-License-Identifier: Apache-2.0
/*
 * Pushes numbers to one destination, by a process of its own (src/push). Belongs to the thread of the event
 * loop.
 */
#pragma once

#include <sys/types.h>

#include <systemd/sd-event.h>

#include "agent/outputs/push_config.h"
#include "model/model.h"

struct push;

/*
 * Copies @config, whose texts must live for longer, as must @model. Starts no process: that is push_tick()'s.
 */
int push_new(sd_event *event, struct model *model, const struct push_config *config, struct push **ret_push);
/*
 * Tells its process to send or keep what is left; push_free() gives it a moment for that. @push may be NULL,
 * and so may the newest snapshot, of which events that wait are taken.
 */
void push_leave(struct push *push, const struct snapshot *snapshot);
void push_free(struct push *push);
DEFINE_CLEANUP(struct push *, push_free, push_freep)
/* Hands over what the snapshot has when it is time, and asks how it goes. */
void push_tick(struct push *push, const struct snapshot *snapshot);
/* Why nothing gets there; "": it does, or nothing was tried yet. Borrowed until the next call. */
const char *push_error(const struct push *push);
/* Of its process; 0: none runs, or @push is NULL. */
pid_t push_pid(const struct push *push);
