// SPDX-License-Identifier: Apache-2.0
#include "model/publisher.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/macro.h"

/* A publisher with one or two readers needs three snapshots; more idle ones are freed. */
enum { IDLE_MAX = 4 };

struct publisher {
	pthread_mutex_t lock;
	struct box *newest;
	struct box *idle; /* unreferenced */
	unsigned idle_n;
	unsigned boxes; /* number of all: the newest, idle ones, and referenced ones */
	bool closed;
	uint64_t seq;
};

struct box {
	struct snapshot snapshot; /* first: readers get a pointer to this */
	struct publisher *home;
	struct box *next;
	struct snapshot_sizes room;
	uint64_t exited_tag;
};

int publisher_new(struct publisher **ret_publisher)
{
	struct publisher *publisher = calloc(1, sizeof(*publisher));

	if (!publisher)
		return -ENOMEM;
	pthread_mutex_init(&publisher->lock, NULL);
	*ret_publisher = publisher;
	return 0;
}

static void box_free(struct box *box)
{
	free(box->snapshot.entities);
	free(box->snapshot.processes);
	free(box->snapshot.exited);
	free(box->snapshot.workloads);
	free(box->snapshot.xids);
	free(box->snapshot.xid_events);
	free(box->snapshot.workload_names);
	free(box->snapshot.traced_workloads);
	free(box->snapshot.traced_places);
	free(box->snapshot.slot_sources);
	free(box->snapshot.allocated);
	free(box->snapshot.jobs);
	free(box->snapshot.traced_uses);
	free(box);
}

static void publisher_destroy(struct publisher *publisher)
{
	pthread_mutex_destroy(&publisher->lock);
	free(publisher);
}

/* The last reference is released: returns the box to the publisher, or frees it. */
static void box_return(struct box *box)
{
	struct publisher *home = box->home;
	bool keep, last;

	trace_view_unref(TAKE_PTR(box->snapshot.trace));
	owners_unref(TAKE_PTR(box->snapshot.owners));
	scraped_unref(TAKE_PTR(box->snapshot.scraped));
	nccl_measurements_unref(TAKE_PTR(box->snapshot.measured));
	gpu_times_unref(TAKE_PTR(box->snapshot.gpu_times));
	pthread_mutex_lock(&home->lock);
	keep = !home->closed && home->idle_n < IDLE_MAX;
	if (keep) {
		box->next = home->idle;
		home->idle = box;
		home->idle_n++;
	} else {
		home->boxes--;
	}
	last = home->closed && home->boxes == 0;
	pthread_mutex_unlock(&home->lock);
	if (!keep)
		box_free(box);
	if (last)
		publisher_destroy(home);
}

void publisher_free(struct publisher *publisher)
{
	struct box *newest, *idle;
	bool last;

	if (!publisher)
		return;
	pthread_mutex_lock(&publisher->lock);
	publisher->closed = true;
	newest = TAKE_PTR(publisher->newest);
	idle = TAKE_PTR(publisher->idle);
	publisher->boxes -= publisher->idle_n;
	last = publisher->boxes == 0;
	pthread_mutex_unlock(&publisher->lock);

	while (idle) {
		struct box *next = idle->next;

		box_free(idle);
		idle = next;
	}
	if (last)
		publisher_destroy(publisher);
	else if (newest)
		snapshot_unref(&newest->snapshot);
}

struct snapshot *snapshot_ref(struct snapshot *snapshot)
{
	if (snapshot)
		atomic_fetch_add_explicit(&snapshot->refs, 1, memory_order_relaxed);
	return snapshot;
}

void snapshot_unref(struct snapshot *snapshot)
{
	/* Release: our reads complete before the writer refills it. Acquire: so do other readers'. */
	if (snapshot && atomic_fetch_sub_explicit(&snapshot->refs, 1, memory_order_acq_rel) == 1)
		box_return((struct box *)snapshot);
}

struct snapshot *publisher_get(struct publisher *publisher)
{
	struct snapshot *newest;

	pthread_mutex_lock(&publisher->lock);
	newest = publisher->newest ? snapshot_ref(&publisher->newest->snapshot) : NULL;
	pthread_mutex_unlock(&publisher->lock);
	return newest;
}

/*
 * Returns an array for `want` elements: the old one if large enough, else a new one without its content, a
 * quarter larger than requested so that reallocations become rare. If *room is less than `want` afterwards:
 * out of memory.
 */
static void *with_room(void *old, uint32_t *room, uint32_t want, size_t size)
{
	void *bigger;

	if (want <= *room)
		return old;
	free(old);
	want += want / 4 + 1;
	bigger = malloc(want * size);
	*room = bigger ? want : 0;
	return bigger;
}

#define MAKE_ROOM(box_, what_, want_)                                                                    \
	((box_)->snapshot.what_ = with_room((box_)->snapshot.what_, &(box_)->room.what_, (want_)->what_, \
					    sizeof(*(box_)->snapshot.what_)),                            \
	 (box_)->room.what_ >= (want_)->what_)

static bool box_make_room(struct box *box, const struct snapshot_sizes *want)
{
	if (want->exited > box->room.exited)
		box->exited_tag = 0;
	return MAKE_ROOM(box, entities, want) && MAKE_ROOM(box, processes, want) &&
	       MAKE_ROOM(box, exited, want) && MAKE_ROOM(box, workloads, want) &&
	       MAKE_ROOM(box, xids, want) && MAKE_ROOM(box, xid_events, want) &&
	       MAKE_ROOM(box, workload_names, want) && MAKE_ROOM(box, traced_workloads, want) &&
	       MAKE_ROOM(box, traced_places, want) && MAKE_ROOM(box, slot_sources, want) &&
	       MAKE_ROOM(box, allocated, want) && MAKE_ROOM(box, jobs, want) &&
	       MAKE_ROOM(box, traced_uses, want);
}

static struct box *box_take(struct publisher *publisher)
{
	struct box *box;

	pthread_mutex_lock(&publisher->lock);
	box = publisher->idle;
	if (box) {
		publisher->idle = box->next;
		publisher->idle_n--;
	} else {
		box = calloc(1, sizeof(*box));
		if (box) {
			box->home = publisher;
			publisher->boxes++;
		}
	}
	pthread_mutex_unlock(&publisher->lock);
	return box;
}

int publisher_take(struct publisher *publisher, const struct snapshot_sizes *sizes,
		   struct snapshot **ret_snapshot, uint64_t *ret_exited_tag)
{
	struct box *box = box_take(publisher);

	if (!box)
		return -ENOMEM;
	if (!box_make_room(box, sizes)) {
		box_return(box);
		return -ENOMEM;
	}
	atomic_store_explicit(&box->snapshot.refs, 1, memory_order_relaxed);
	*ret_snapshot = &box->snapshot;
	*ret_exited_tag = box->exited_tag;
	return 0;
}

void publisher_tag_exited(struct snapshot *snapshot, uint64_t tag)
{
	((struct box *)snapshot)->exited_tag = tag;
}

void publisher_put(struct publisher *publisher, struct snapshot *snapshot)
{
	struct box *before;

	pthread_mutex_lock(&publisher->lock);
	snapshot->seq = ++publisher->seq;
	before = publisher->newest;
	publisher->newest = (struct box *)snapshot;
	pthread_mutex_unlock(&publisher->lock);
	if (before)
		snapshot_unref(&before->snapshot);
}
