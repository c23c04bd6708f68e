// SPDX-License-Identifier: Apache-2.0
#include "nccl_plugin/plugin.h"

#include <pthread.h>
#include <stdatomic.h>

#include "plugin/link.h"

enum {
	PLACES = 4096, /* operations that run; power of two */
	TRIES = 8,
	/* What a handle is of, in its lowest bits. */
	OF_OPERATION = 1,
	OF_CHANNEL,
	OF_PROXY,
	OF_BITS = 2,
	PLACE_BITS = 12,
};
/* An operation whose channels do not end (it was captured in a graph) gives its place back after this. */
#define PLACE_NS UINT64_C(5000000000)

struct place {
	pthread_spinlock_t lock;
	uint32_t number; /* of its operation, so that handles of earlier ones are found out */
	bool used, enqueued, timed;
	uint32_t begun, ended, stamped; /* channels; whose end the GPU told */
	uint64_t first_ns, last_ns; /* by one clock, as told.timing says */
	const void *context;
	struct nccl_wire_operation told;
};

static struct place places[PLACES];
static atomic_uint next_place;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void init_places(void)
{
	for (unsigned i = 0; i < PLACES; i++)
		pthread_spin_init(&places[i].lock, PTHREAD_PROCESS_PRIVATE);
}

static uintptr_t handle_of(const struct place *place, unsigned of)
{
	return (uintptr_t)place->number << (PLACE_BITS + OF_BITS) | (uintptr_t)(place - places) << OF_BITS |
	       of;
}

/* Locked; NULL: it is none, or its operation has ended. */
static struct place *place_lock(uintptr_t handle)
{
	struct place *place = &places[handle >> OF_BITS & (PLACES - 1)];

	if (handle == 0)
		return NULL;
	pthread_once(&once, init_places);
	pthread_spin_lock(&place->lock);
	if (place->used && place->number == (uint32_t)(handle >> (PLACE_BITS + OF_BITS)))
		return place;
	pthread_spin_unlock(&place->lock);
	return NULL;
}

/* The operation has ended. Locked. */
static struct nccl_wire_operation place_end(struct place *place)
{
	uint32_t ended = place->told.timing == NCCL_TIMING_GPU ? place->stamped : place->ended;
	bool complete = place->timed && ended >= place->told.channels && ended > 0 &&
			place->last_ns > place->first_ns &&
			place->last_ns - place->first_ns <= NCCL_WIRE_DURATION_MAX_NS;

	if (complete)
		place->told.duration_ns = place->last_ns - place->first_ns;
	else
		place->told.timing = NCCL_TIMING_NONE;
	place->used = false;
	return place->told;
}

static void told(const struct nccl_wire_operation *operation)
{
	ring_put(operation);
	sender_wake();
}

/* Unlocks. */
static void place_check(struct place *place)
{
	bool over = place->enqueued && (!place->timed || place->ended >= place->told.channels);
	struct nccl_wire_operation operation;

	if (over)
		operation = place_end(place);
	pthread_spin_unlock(&place->lock);
	if (over)
		told(&operation);
}

static bool place_is_old(const struct place *place, uint64_t now)
{
	return place->enqueued && now - place->told.start_ns > PLACE_NS;
}

uintptr_t operation_begin(const struct plugin_operation *operation)
{
	uint64_t now = plugin_now_ns();

	pthread_once(&once, init_places);
	for (unsigned i = 0; i < TRIES; i++) {
		struct place *place = &places[atomic_fetch_add(&next_place, 1) % PLACES];
		struct nccl_wire_operation old;
		bool was_used;
		uintptr_t handle;

		pthread_spin_lock(&place->lock);
		was_used = place->used;
		if (was_used && !place_is_old(place, now)) {
			pthread_spin_unlock(&place->lock);
			continue;
		}
		if (was_used)
			old = place_end(place);
		place->number++;
		place->used = true;
		place->enqueued = false;
		place->timed = operation->timed;
		place->context = operation->context;
		place->begun = place->ended = place->stamped = 0;
		place->first_ns = UINT64_MAX;
		place->last_ns = 0;
		place->told = operation->told;
		place->told.start_ns = now;
		handle = handle_of(place, OF_OPERATION);
		pthread_spin_unlock(&place->lock);
		if (was_used)
			told(&old);
		return handle;
	}
	ring_lose();
	return 0;
}

void operation_enqueued(uintptr_t handle)
{
	struct place *place = place_lock(handle);

	if (!place)
		return;
	place->enqueued = true;
	place_check(place);
}

void operations_end(const void *context)
{
	pthread_once(&once, init_places);
	for (unsigned i = 0; i < PLACES; i++) {
		struct place *place = &places[i];
		struct nccl_wire_operation operation;
		bool ends;

		pthread_spin_lock(&place->lock);
		ends = place->used && place->context == context;
		if (ends)
			operation = place_end(place);
		pthread_spin_unlock(&place->lock);
		if (ends)
			told(&operation);
	}
}

uintptr_t operation_channel_begin(uintptr_t parent, uint64_t gpu_ns)
{
	struct place *place = place_lock(parent);
	uint64_t at = gpu_ns ? gpu_ns : plugin_now_ns();
	uintptr_t handle;

	if (!place)
		return 0;
	place->told.timing = gpu_ns ? NCCL_TIMING_GPU : NCCL_TIMING_HOST;
	place->begun++;
	if (at < place->first_ns)
		place->first_ns = at;
	handle = handle_of(place, OF_CHANNEL);
	pthread_spin_unlock(&place->lock);
	return handle;
}

void operation_channel_time(uintptr_t handle, uint64_t gpu_ns)
{
	struct place *place = place_lock(handle);

	if (!place)
		return;
	place->stamped++;
	if (place->told.timing == NCCL_TIMING_GPU && gpu_ns > place->last_ns)
		place->last_ns = gpu_ns;
	pthread_spin_unlock(&place->lock);
}

void operation_proxy(uintptr_t parent)
{
	struct place *place = place_lock(parent);

	if (!place)
		return;
	place->told.proxy_operations++;
	pthread_spin_unlock(&place->lock);
}

void operation_event_end(uintptr_t handle)
{
	unsigned of = handle & ((1 << OF_BITS) - 1);
	struct place *place;

	if (of == OF_OPERATION) {
		operation_enqueued(handle);
		return;
	}
	place = of == OF_CHANNEL ? place_lock(handle) : NULL;
	if (!place)
		return;
	if (place->told.timing == NCCL_TIMING_HOST)
		place->last_ns = plugin_now_ns();
	place->ended++;
	place_check(place);
}
