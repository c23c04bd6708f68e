// SPDX-License-Identifier: Apache-2.0
#include "agent/outputs/push_events.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/fd.h"
#include "push/protocol.h"
#include "view/events.h"

struct push_events {
	struct event_watch *watch;
	struct event *ring; /* PUSH_EVENTS_MAX; NULL: there was none yet */
	uint32_t first, n;
	uint64_t dropped; /* for want of room, of this snapshot */
};

static void keep_event(const struct event *event, void *userdata)
{
	struct push_events *events = userdata;

	if (!events->ring)
		events->ring = malloc(PUSH_EVENTS_MAX * sizeof(*events->ring));
	if (!events->ring || events->n == PUSH_EVENTS_MAX)
		events->dropped++;
	if (!events->ring)
		return;
	events->ring[(events->first + events->n) % PUSH_EVENTS_MAX] = *event;
	if (events->n < PUSH_EVENTS_MAX)
		events->n++;
	else
		events->first = (events->first + 1) % PUSH_EVENTS_MAX;
}

void push_events_take(struct push_events *events, const struct snapshot *snapshot, struct model *model,
		      bool ends)
{
	uint64_t left_out;

	events->dropped = 0;
	left_out = event_watch_take(events->watch, snapshot, ends, keep_event, events);
	model_agent_add(model, AGENT_DROPPED_PUSH_EVENTS, (double)(left_out + events->dropped));
}

uint32_t push_events_waiting(const struct push_events *events)
{
	return events->n;
}

int push_events_write(const struct push_events *events, uint32_t *ret_bytes)
{
	_cleanup_close_ int fd = -1;
	uint32_t whole = MIN(events->n, PUSH_EVENTS_MAX - events->first);
	ssize_t r;

	if (events->n == 0)
		return -ENODATA;
	fd = memfd_create("gpusonde-push", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = write_all(fd, events->ring + events->first, whole * sizeof(*events->ring));
	if (r >= 0)
		r = write_all(fd, events->ring, (events->n - whole) * sizeof(*events->ring));
	if (r < 0)
		return (int)r;
	*ret_bytes = events->n * (uint32_t)sizeof(*events->ring);
	return TAKE_FD(fd);
}

void push_events_forget(struct push_events *events)
{
	events->first = events->n = 0;
}

int push_events_new(bool kept, struct push_events **ret_events)
{
	_cleanup_(push_events_freep) struct push_events *events = calloc(1, sizeof(*events));
	int r = events ? event_watch_new(kept, &events->watch) : -ENOMEM;

	if (r < 0)
		return r;
	*ret_events = TAKE_PTR(events);
	return 0;
}

void push_events_free(struct push_events *events)
{
	if (!events)
		return;
	event_watch_free(events->watch);
	free(events->ring);
	free(events);
}
