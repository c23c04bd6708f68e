// SPDX-License-Identifier: Apache-2.0
/*
 * What has happened between one snapshot and the next, event by event, for those who want to be told: the
 * XIDs and findings of /api/v1/events and /api/v1/findings, GPUs that go and come, and what there is to warn
 * of (gpu_warning()).
 *
 * What is already so at the first snapshot is no event: figures say it. XIDs that were there then, from
 * before this process, are events if the caller knows that nobody has told of them.
 *
 * A warning that comes and goes is one event until it has been away for a minute.
 */
#pragma once

#include <stdbool.h>

#include "base/macro.h"
#include "model/event.h"
#include "model/snapshot.h"

struct event_watch;

/* @event is borrowed. */
typedef void (*event_receiver)(const struct event *event, void *userdata);

/* @old_xids: XIDs from before the first snapshot are events, too. 0 or -ENOMEM. */
int event_watch_new(bool old_xids, struct event_watch **ret_watch);
void event_watch_free(struct event_watch *watch);
DEFINE_CLEANUP(struct event_watch *, event_watch_free, event_watch_freep)

/*
 * Tells what is new, XIDs in the order in which they came. One that the kernel log has not told yet waits for
 * it, for about a second, since the driver's words and the process are the log's; with @ends nothing waits.
 * Returns how many events were left out, since more came, and of findings went, than a snapshot keeps.
 */
uint64_t event_watch_take(struct event_watch *watch, const struct snapshot *snapshot, bool ends,
			  event_receiver receive, void *userdata);
