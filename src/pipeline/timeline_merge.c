// SPDX-License-Identifier: Apache-2.0
#include "pipeline/timeline_merge.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "pipeline/timeline_private.h"
#include "timeline/chrome_read.h"

enum { PROGRAM_NAME = 256 };
#define BEFORE_NS (3600 * NSEC_PER_SEC) /* slices may have begun that long before the timeline */

struct merge {
	struct trace_timeline *timeline;
	struct chrome_file file;
	int64_t offset_ns; /* to CLOCK_MONOTONIC */
	struct hashmap group_by; /* tracks of processes that are not known, by their text */
};

/* ---- clocks ---- */

static bool file_range(const struct chrome_file *file, int64_t *ret_first, int64_t *ret_last)
{
	*ret_first = INT64_MAX;
	*ret_last = INT64_MIN;
	for (uint32_t i = 0; i < file->slices.n; i++) {
		const struct chrome_slice *slice = chrome_slice_at(file, i);

		*ret_first = MIN(*ret_first, (int64_t)slice->begin_ns);
		*ret_last = MAX(*ret_last, (int64_t)slice->end_ns);
	}
	return file->slices.n > 0;
}

/* The clock by which the file's slices were while the timeline is. */
static const char *choose_clock(struct merge *m)
{
	const int64_t mono = clock_mono_ns(), to_real = mono - clock_real_ns(),
		      to_boot = mono - clock_boot_ns(), begun = m->timeline->begun_ns;
	const struct {
		const char *name;
		int64_t offset_ns;
		bool possible;
	} clocks[] = {
		{ "the wall clock, by the file's base", m->file.base_ns + to_real, m->file.base_ns != 0 },
		{ "CLOCK_MONOTONIC", 0, m->file.base_ns == 0 },
		{ "CLOCK_BOOTTIME", to_boot, m->file.base_ns == 0 },
		{ "the wall clock", to_real, m->file.base_ns == 0 },
	};
	int64_t first, last;

	for (unsigned i = 0; file_range(&m->file, &first, &last) && i < ARRAY_SIZE(clocks); i++) {
		m->offset_ns = clocks[i].offset_ns;
		if (clocks[i].possible && first + m->offset_ns <= mono && last + m->offset_ns >= begun)
			return clocks[i].name;
	}
	return NULL;
}

/* ---- tracks ---- */

static const char *text_at_place(const struct merge *m, uint32_t text)
{
	return texts_get(&m->file.texts, text);
}

static bool program_track(struct merge *m, struct timeline_track track, const char *what, const char *name,
			  uint32_t *ret_track)
{
	char text[PROGRAM_NAME];

	snprintf(text, sizeof(text), "%s %.200s (written by the program)", what, name);
	return trace_timeline_text(m->timeline, text, &track.name) &&
	       trace_timeline_track(m->timeline, &track, ret_track);
}

static bool parent_of(struct merge *m, const struct chrome_place *place, uint32_t *ret_track)
{
	const struct timeline_track group = { .kind = TIMELINE_GROUP, .parent = TIMELINE_NONE };
	uint32_t process;

	if (place->pid && (hashmap_get(&m->timeline->process_by, place->pid, &process) ||
			   hashmap_get(&m->timeline->ended_by, place->pid, &process))) {
		*ret_track = timeline_process_at(m->timeline, process)->track;
		return true;
	}
	if (hashmap_get(&m->group_by, place->process, ret_track))
		return true;
	return program_track(m, group, "process", text_at_place(m, place->process), ret_track) &&
	       hashmap_put(&m->group_by, place->process, *ret_track) == 0;
}

static bool track_of(struct merge *m, uint32_t place, uint32_t *ret_track)
{
	struct timeline_track track = { .kind = TIMELINE_CHILD };
	const struct chrome_place *at = chrome_place_at(&m->file, place);

	return parent_of(m, at, &track.parent) &&
	       program_track(m, track, "thread", text_at_place(m, at->thread), ret_track);
}

/* ---- slices ---- */

static bool event_of(struct merge *m, const struct chrome_slice *slice, struct timeline_event *event)
{
	int64_t begin = (int64_t)slice->begin_ns + m->offset_ns, end = (int64_t)slice->end_ns + m->offset_ns;
	const char *category = text_at_place(m, slice->category);

	if (begin < m->timeline->begun_ns - BEFORE_NS || begin < 0 || end > clock_mono_ns())
		return false;
	event->begin_ns = (uint64_t)begin;
	event->end_ns = (uint64_t)end;
	event->args_n = 0;
	if (category[0])
		timeline_put_text_arg(m->timeline, event, "category", category);
	return trace_timeline_text(m->timeline, text_at_place(m, slice->name), &event->name);
}

static void add_slices(struct merge *m, struct trace_timeline_merged *merged)
{
	struct timeline_event event = { .type = TIMELINE_SLICE, .category = TIMELINE_PROGRAM };
	uint32_t place = UINT32_MAX;
	bool placed = false;

	for (uint32_t i = 0; i < m->file.slices.n; i++) {
		const struct chrome_slice *slice = chrome_slice_at(&m->file, i);

		if (slice->place != place)
			placed = track_of(m, slice->place, &event.track);
		place = slice->place;
		if (!placed || !event_of(m, slice, &event)) {
			merged->left_out++;
			continue;
		}
		trace_timeline_add(m->timeline, &event);
		merged->slices++;
	}
}

int trace_timeline_merge(struct trace_timeline *t, int fd, struct trace_timeline_merged *ret_merged)
{
	struct trace_timeline_merged merged = { .clock = "" };
	struct merge m = { .timeline = t };
	int r = chrome_file_read(fd, &m.file);
	const char *clock = r == 0 ? choose_clock(&m) : NULL;

	if (r == -E2BIG || r == -EFBIG)
		merged.why = "it is nested too deeply, or has too long a text";
	else if (r == -EBADMSG)
		merged.why = "it is no JSON, or has no events of Chrome's format";
	else if (r == 0 && !clock)
		merged.why = "no slice was while tracing ran, by CLOCK_MONOTONIC, CLOCK_BOOTTIME or the wall "
			     "clock";
	if (merged.why)
		r = -EBADMSG;
	if (r == 0) {
		merged.clock = clock;
		merged.left_out = m.file.left_out;
		merged.cut = m.file.cut;
		add_slices(&m, &merged);
	}
	chrome_file_done(&m.file);
	hashmap_done(&m.group_by);
	*ret_merged = merged;
	return r;
}
