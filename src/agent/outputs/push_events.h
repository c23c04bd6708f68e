// SPDX-License-Identifier: Apache-2.0
/* Events that wait to be handed to gpusonde-push, at most PUSH_EVENTS_MAX. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/macro.h"
#include "model/model.h"

struct push_events;

/* @kept: what was told is remembered (state.dir), so XIDs from before that are there are new. 0, -ENOMEM. */
int push_events_new(bool kept, struct push_events **ret_events);
void push_events_free(struct push_events *events);
DEFINE_CLEANUP(struct push_events *, push_events_free, push_events_freep)

/*
 * Adds what has happened since the snapshot before. What has no room is counted in @model: the oldest. @ends:
 * there is no snapshot after this one (event_watch_take()).
 */
void push_events_take(struct push_events *events, const struct snapshot *snapshot, struct model *model,
		      bool ends);
uint32_t push_events_waiting(const struct push_events *events);
/* A file in memory with all that wait: a descriptor, the caller's, and its size. -ENODATA: none; -errno. */
int push_events_write(const struct push_events *events, uint32_t *ret_bytes);
/* They were handed over. */
void push_events_forget(struct push_events *events);
