// SPDX-License-Identifier: Apache-2.0
/* Texts and tracks of a timeline: processes, threads, and what is missing. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "pipeline/timeline_private.h"

void trace_timeline_add(struct trace_timeline *t, const struct timeline_event *event)
{
	if (timeline_add(t->timeline, event) < 0)
		t->missing.dropped++;
}

bool trace_timeline_text(struct trace_timeline *t, const char *text, uint32_t *ret_text)
{
	return timeline_text(t->timeline, text, ret_text) == 0;
}

bool trace_timeline_key(struct trace_timeline *t, const char *literal, uint32_t *ret_text)
{
	uint64_t key = (uintptr_t)literal;

	if (hashmap_get(&t->key_by, key, ret_text))
		return true;
	return trace_timeline_text(t, literal, ret_text) && hashmap_put(&t->key_by, key, *ret_text) == 0;
}

bool trace_timeline_track(struct trace_timeline *t, const struct timeline_track *track, uint32_t *ret_track)
{
	return timeline_track(t->timeline, track, ret_track) == 0;
}

uint64_t timeline_key_in(uint32_t process, uint64_t id)
{
	const uint64_t both[] = { process, id };

	return hash_bytes_secret(both, sizeof(both));
}

static bool process_new(struct trace_timeline *t, uint32_t tgid, const char *name, uint32_t *ret_process)
{
	struct timeline_track track = { .kind = TIMELINE_PROCESS, .parent = TIMELINE_NONE, .pid = tgid };
	struct timeline_process *process = row_list_add(&t->processes);

	if (!process)
		return false;
	if (!trace_timeline_text(t, name, &track.name) || !trace_timeline_track(t, &track, &process->track) ||
	    hashmap_put(&t->process_by, tgid, t->processes.n - 1) < 0) {
		t->processes.n--;
		return false;
	}
	*ret_process = t->processes.n - 1;
	return true;
}

/* Its name while it runs; else "". */
static void thread_name(uint32_t tgid, uint32_t tid, char *name, size_t size)
{
	char path[64];
	size_t n = 0;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/task/%" PRIu32 "/comm", tgid, tid);
	if (read_file(path, name, size, &n) < 0)
		n = 0;
	name[n > 0 ? n - 1 : 0] = '\0';
}

/* Index of the process; its first event, which has the name, may have been lost. */
bool timeline_process_of(struct trace_timeline *t, uint32_t tgid, uint32_t *ret_process)
{
	char name[TRACE_COMM + 1];

	if (hashmap_get(&t->process_by, tgid, ret_process))
		return true;
	thread_name(tgid, tgid, name, sizeof(name));
	return process_new(t, tgid, name, ret_process);
}

/* The first event of a process, or of what it has become by exec. */
bool timeline_process_begins(struct trace_timeline *t, const struct trace_process *event)
{
	char name[TRACE_COMM + 1] = "";
	uint32_t process;

	memcpy(name, event->comm, TRACE_COMM);
	if (hashmap_get(&t->process_by, event->header.tgid, &process)) {
		struct timeline_process *known = timeline_process_at(t, process);

		if (!known->incarnation || known->incarnation == event->incarnation) {
			known->incarnation = event->incarnation;
			return true;
		}
	}
	if (!process_new(t, event->header.tgid, name, &process))
		return false;
	timeline_process_at(t, process)->incarnation = event->incarnation;
	return true;
}

void timeline_process_ends(struct trace_timeline *t, uint32_t tgid, const char *how, uint64_t time_ns)
{
	uint32_t process;

	if (!hashmap_get(&t->process_by, tgid, &process))
		return;
	timeline_mark(t, timeline_process_at(t, process)->track, how, time_ns);
	hashmap_del(&t->process_by, tgid);
	hashmap_put(&t->ended_by, tgid, process);
}

void timeline_over(uint32_t tgid, uint64_t incarnation, void *userdata)
{
	struct trace_timeline *t = userdata;
	uint32_t process;

	/* Its successor may have begun. */
	if (hashmap_get(&t->process_by, tgid, &process) &&
	    (!timeline_process_at(t, process)->incarnation ||
	     timeline_process_at(t, process)->incarnation == incarnation))
		hashmap_del(&t->process_by, tgid);
}

bool timeline_has_room(const struct trace_timeline *t, uint32_t process)
{
	return timeline_process_at(t, process)->tracks < PROCESS_TRACKS_MAX;
}

bool timeline_child(struct trace_timeline *t, uint32_t process, struct timeline_track *track,
		    const char *name, struct hashmap *by, uint64_t id, uint32_t *ret_track)
{
	uint64_t key = timeline_key_in(process, id);

	if (hashmap_get(by, key, ret_track))
		return true;
	track->parent = timeline_process_at(t, process)->track;
	if (!timeline_has_room(t, process) || !trace_timeline_text(t, name, &track->name) ||
	    !trace_timeline_track(t, track, ret_track) || hashmap_put(by, key, *ret_track) < 0)
		return false;
	timeline_process_at(t, process)->tracks++;
	return true;
}

bool timeline_thread(struct trace_timeline *t, const struct trace_header *event, uint32_t *ret_process,
		     uint32_t *ret_track)
{
	struct timeline_track track = { .kind = TIMELINE_THREAD, .pid = event->tgid, .tid = event->tid };
	char name[TRACE_COMM + 1];

	if (!timeline_process_of(t, event->tgid, ret_process))
		return false;
	if (hashmap_get(&t->thread_by, timeline_key_in(*ret_process, event->tid), ret_track))
		return true;
	if (!timeline_has_room(t, *ret_process))
		return false;
	thread_name(event->tgid, event->tid, name, sizeof(name));
	return timeline_child(t, *ret_process, &track, name, &t->thread_by, event->tid, ret_track);
}

struct timeline_lane *timeline_lane(struct trace_timeline *t, uint32_t process, struct hashmap *by,
				    uint64_t id, const char *name)
{
	struct timeline_track track = { .kind = TIMELINE_CHILD,
					.parent = timeline_process_at(t, process)->track };
	uint64_t key = timeline_key_in(process, id);
	struct timeline_lane *lane;
	uint32_t index;

	if (hashmap_get(by, key, &index))
		return &((struct timeline_lane *)t->lanes.list)[index];
	lane = timeline_has_room(t, process) ? row_list_add(&t->lanes) : NULL;
	if (!lane)
		return NULL;
	if (!trace_timeline_text(t, name, &track.name) || !trace_timeline_track(t, &track, &lane->track) ||
	    hashmap_put(by, key, t->lanes.n - 1) < 0) {
		t->lanes.n--;
		return NULL;
	}
	timeline_process_at(t, process)->tracks++;
	return lane;
}

void timeline_add_to_lane(struct trace_timeline *t, struct timeline_lane *lane, struct timeline_event *event)
{
	event->track = lane->track;
	event->begin_ns = MAX(event->begin_ns, lane->ended_ns);
	event->end_ns = lane->ended_ns = MAX(event->end_ns, event->begin_ns);
	trace_timeline_add(t, event);
}

void timeline_mark(struct trace_timeline *t, uint32_t track, const char *text, uint64_t time_ns)
{
	struct timeline_event event = {
		.type = TIMELINE_INSTANT, .category = TIMELINE_TRACING, .track = track, .begin_ns = time_ns
	};

	if (trace_timeline_text(t, text, &event.name))
		trace_timeline_add(t, &event);
	else
		t->missing.dropped++;
}

void timeline_mark_own(struct trace_timeline *t, struct timeline_event *event, const char *text)
{
	struct timeline_track track = { .kind = TIMELINE_GROUP, .parent = TIMELINE_NONE };

	if (t->marks == TIMELINE_NONE && (!trace_timeline_text(t, "gpusonde", &track.name) ||
					  !trace_timeline_track(t, &track, &t->marks))) {
		t->missing.dropped++;
		return;
	}
	event->track = t->marks;
	if (trace_timeline_text(t, text, &event->name))
		trace_timeline_add(t, event);
	else
		t->missing.dropped++;
}

void trace_timeline_say(struct trace_timeline *t, const char *text)
{
	struct timeline_event event = { .type = TIMELINE_INSTANT,
					.category = TIMELINE_TRACING,
					.begin_ns = (uint64_t)clock_mono_ns() };

	timeline_mark_own(t, &event, text);
}
