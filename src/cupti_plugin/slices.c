// SPDX-License-Identifier: Apache-2.0
#include "cupti_plugin/plugin.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "plugin/link.h"

enum { RETRY_MS = 2000, GREET_FIRST_MS = 200, GREET_MS = 5000, TURN_MS = 100, FLUSH_MS = 500 };
enum { STACK_BYTES = 1 << 20 }; /* CUPTI runs on it */
enum { LAST_TURNS = 10, LAST_TURN_MS = 20, END_TURNS = 100, END_MS = 150, END_LAST_MS = 50 };
#define NS_PER_MS UINT64_C(1000000)

static const struct {
	int activity;
	uint8_t kind;
} activities[] = {
	/* The first is needed. */
	{ ACTIVITY_KERNEL, CUPTI_KERNEL },    { ACTIVITY_MEMCPY, CUPTI_COPY }, { ACTIVITY_MEMSET, CUPTI_SET },
	{ ACTIVITY_MEMCPY_PEER, CUPTI_COPY }, { ACTIVITY_GRAPH, CUPTI_GRAPH },
};
enum { ACTIVITIES = sizeof(activities) / sizeof(activities[0]) };

static struct {
	pthread_mutex_t lock; /* of all: the thread has it but for its waits */
	struct cupti_wanted wanted;
	struct records records;
	void *subscriber; /* NULL: CUPTI is off */
	bool enabled[ACTIVITIES];
	uint64_t begun_ns, told_ns, flushed_ns; /* of the slice that is on */
	uint32_t kinds;
	uint8_t clock;
	uint64_t unsure_ns;
	atomic_bool child, ended; /* ended: CUPTI is not used any more */
	bool at_exit; /* slices_end() comes before CUPTI's own end */
} slices = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* CUPTI's own clock on Linux, for a profiler that uses it after us. */
static uint64_t real_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* ---- what is told ---- */

static void tell_slice(uint8_t state, uint32_t error, uint64_t now_ns)
{
	const struct cupti *cupti = library_cupti();
	union cupti_record record = { .slice = { .kind = CUPTI_SLICE,
						 .state = state,
						 .clock = slices.clock,
						 .api = cupti ? cupti->version : 0,
						 .error = error,
						 .kinds = slices.kinds,
						 .start_ns = slices.told_ns,
						 .end_ns = now_ns,
						 .dropped = buffers_dropped(),
						 .unknown = slices.records.unknown,
						 .bad = slices.records.bad,
						 .unsure_ns = slices.unsure_ns } };

	slices.told_ns = now_ns;
	if (send_hurries())
		send_hurry(END_LAST_MS);
	send_put(&record);
	send_rest();
}

static void drain(const struct cupti *cupti, bool by_end)
{
	struct buffer buffer;

	/* The program's end has it all: the thread gives way. */
	while ((by_end || !send_hurries()) && buffers_take(&buffer)) {
		records_take(cupti, &slices.records, &buffer);
		buffers_give(&buffer);
	}
}

/* ---- CUPTI on and off ---- */

/* How far CUPTI's own clock is from ours: again and again, since it may be set. */
static void offset_measure(const struct cupti *cupti)
{
	uint64_t before = plugin_now_ns(), theirs = 0, after;

	cupti->GetTimestamp(&theirs);
	after = plugin_now_ns();
	slices.unsure_ns = after - before;
	slices.records.offset_ns = (int64_t)(before + (after - before) / 2 - theirs);
}

static void clock_set(const struct cupti *cupti)
{
	slices.records.offset_ns = 0;
	slices.unsure_ns = 0;
	slices.clock = CUPTI_CLOCK_OURS;
	if (cupti->ActivityRegisterTimestampCallback &&
	    cupti->ActivityRegisterTimestampCallback(plugin_now_ns) == CUPTI_SUCCESS)
		return;
	slices.clock = CUPTI_CLOCK_OFFSET;
	offset_measure(cupti);
}

static void turn_off(const struct cupti *cupti)
{
	for (unsigned i = 0; i < ACTIVITIES; i++)
		if (slices.enabled[i])
			cupti->ActivityDisable(activities[i].activity);
	for (unsigned i = 0; launches_function(i); i++)
		cupti->EnableCallback(0, slices.subscriber, CALLBACK_DRIVER, launches_function(i));
}

static void leave(const struct cupti *cupti)
{
	buffers_accept(false);
	cupti->Unsubscribe(slices.subscriber);
	slices.subscriber = NULL;
	if (slices.clock == CUPTI_CLOCK_OURS)
		cupti->ActivityRegisterTimestampCallback(real_ns);
}

static uint32_t activities_enable(const struct cupti *cupti)
{
	for (unsigned i = 0; i < ACTIVITIES; i++) {
		bool wanted = activities[i].activity != ACTIVITY_GRAPH || !slices.wanted.nodes;
		int r = wanted ? cupti->ActivityEnable(activities[i].activity) : CUPTI_SUCCESS;

		slices.enabled[i] = wanted && r == CUPTI_SUCCESS;
		if (slices.enabled[i])
			slices.kinds |= 1u << activities[i].kind;
		else if (i == 0)
			return (uint32_t)r;
	}
	return CUPTI_SUCCESS;
}

static uint32_t turn_on(const struct cupti *cupti)
{
	int r;

	/* What others have enabled is not turned off. */
	memset(slices.enabled, 0, sizeof(slices.enabled));
	r = cupti->ActivityRegisterCallbacks(buffers_requested, buffers_completed);

	if (r != CUPTI_SUCCESS)
		return (uint32_t)r;
	for (unsigned i = 0; launches_function(i); i++)
		cupti->EnableCallback(1, slices.subscriber, CALLBACK_DRIVER, launches_function(i));
	return activities_enable(cupti);
}

/* What is registered last comes first, and CUPTI registers its own end when it is loaded and first used. */
static void end_before_cupti(void)
{
	if (!slices.at_exit)
		slices.at_exit = atexit(slices_end) == 0;
}

static void slice_begin(void)
{
	const struct cupti *cupti = library_cupti();
	uint32_t r = CUPTI_SUCCESS;

	slices.told_ns = slices.begun_ns = slices.flushed_ns = plugin_now_ns();
	slices.kinds = 0;
	if (!cupti) {
		tell_slice(CUPTI_NO_LIBRARY, 0, slices.begun_ns);
		return;
	}
	r = (uint32_t)cupti->Subscribe(&slices.subscriber, launches_called, NULL);
	if (r != CUPTI_SUCCESS) {
		slices.subscriber = NULL;
		tell_slice(r == CUPTI_ERROR_SUBSCRIBED ? CUPTI_OTHER : CUPTI_REFUSED, r, slices.begun_ns);
		return;
	}
	launches_begin(slices.wanted.launches);
	buffers_accept(true);
	clock_set(cupti);
	r = turn_on(cupti);
	end_before_cupti();
	if (r == CUPTI_SUCCESS)
		return;
	turn_off(cupti);
	leave(cupti);
	tell_slice(CUPTI_REFUSED, r, slices.begun_ns);
}

/* What is still running is waited for a little; then CUPTI is to give what it has. */
static void slice_end(uint8_t state, bool by_end)
{
	const struct cupti *cupti = library_cupti();
	uint64_t now_ns = plugin_now_ns();

	turn_off(cupti);
	for (unsigned i = 0; i < (by_end ? 1 : LAST_TURNS); i++) {
		buffers_flush(cupti, false);
		drain(cupti, by_end);
		if (buffers_given() == 0)
			break;
		plugin_sleep_ms(LAST_TURN_MS);
	}
	if (buffers_given() > 0)
		buffers_flush(cupti, true);
	drain(cupti, by_end);
	tell_slice(state, 0, now_ns);
	leave(cupti);
	buffers_release();
}

static void slice_turn(void)
{
	const struct cupti *cupti = library_cupti();
	uint64_t now_ns = plugin_now_ns(), slice_ns = slices.wanted.slice_ms * NS_PER_MS;
	bool always = slices.wanted.slice_ms >= slices.wanted.period_ms;

	drain(cupti, false);
	if (!send_connected() || launches_spent() || (!always && now_ns - slices.begun_ns >= slice_ns)) {
		slice_end(launches_spent() ? CUPTI_SPENT : CUPTI_OVER, false);
		return;
	}
	if (now_ns - slices.flushed_ns < FLUSH_MS * NS_PER_MS)
		return;
	if (slices.clock == CUPTI_CLOCK_OFFSET)
		offset_measure(cupti);
	buffers_flush(cupti, false);
	drain(cupti, false);
	slices.flushed_ns = plugin_now_ns();
	tell_slice(CUPTI_ON, 0, now_ns);
}

/* ---- the thread ---- */

static bool listened_to(int timeout_ms)
{
	if (!send_connect(&slices.wanted, timeout_ms))
		return false;
	if (slices.wanted.period_ms == 0)
		slices.wanted.period_ms = RETRY_MS;
	records_forget();
	return true;
}

/* ms until the next slice. */
static int rest_ms(void)
{
	uint64_t period_ms = slices.wanted.period_ms > RETRY_MS ? slices.wanted.period_ms : RETRY_MS,
		 since_ms = (plugin_now_ns() - slices.begun_ns) / NS_PER_MS;

	return since_ms < period_ms ? (int)(period_ms - since_ms) : 0;
}

static void *slices_run(void *userdata)
{
	(void)userdata;
	while (!atomic_load(&slices.ended)) {
		bool on, connected;
		int rest;

		pthread_mutex_lock(&slices.lock);
		if (slices.subscriber && !atomic_load(&slices.ended))
			slice_turn();
		on = slices.subscriber;
		connected = send_connected();
		rest = rest_ms();
		pthread_mutex_unlock(&slices.lock);
		if (on) {
			buffers_wait(TURN_MS);
			continue;
		}
		if (connected)
			send_pause(rest);
		else
			plugin_sleep_ms(RETRY_MS);
		pthread_mutex_lock(&slices.lock);
		if ((send_connected() ? rest_ms() == 0 : listened_to(GREET_MS)) &&
		    !atomic_load(&slices.ended))
			slice_begin();
		pthread_mutex_unlock(&slices.lock);
	}
	return NULL;
}

static void in_child(void)
{
	atomic_store(&slices.child, true);
	buffers_accept(false);
	send_in_child();
}

void slices_start(void)
{
	pthread_atfork(NULL, NULL, in_child);
	library_init();
	send_init();
	atexit(slices_end);
	pthread_mutex_lock(&slices.lock);
	/* Its first work is seen, too, where somebody listens already. */
	if (listened_to(GREET_FIRST_MS))
		slice_begin();
	pthread_mutex_unlock(&slices.lock);
	plugin_thread("gpusonde-cupti", slices_run, STACK_BYTES);
}

void slices_end(void)
{
	if (atomic_load(&slices.child) || atomic_exchange(&slices.ended, true))
		return;
	send_hurry(END_MS);
	for (unsigned i = 0; pthread_mutex_trylock(&slices.lock) != 0; i++) {
		if (i == END_TURNS)
			return;
		plugin_sleep_ms(1);
	}
	if (slices.subscriber)
		slice_end(CUPTI_OVER, true);
	/* Stays locked: the thread does nothing more. */
}
