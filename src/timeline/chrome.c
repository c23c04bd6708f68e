// SPDX-License-Identifier: Apache-2.0
/*
 * Chrome's trace event format, as an array of complete events: viewers accept one without its end. Tracks
 * other than threads get numbers that no thread and no process has.
 */
#include <inttypes.h>

#include "base/clock.h"
#include "timeline/private.h"

enum { OTHERS = 1 << 30 }; /* above the kernel's greatest PID, 1 << 22 */

struct place {
	uint32_t pid, tid;
};

static struct place chrome_place(const struct timeline *t, uint32_t index)
{
	const struct timeline_track *track = &t->tracks[index];
	uint32_t number = (uint32_t)((t->tracks_before + index) % OTHERS);

	switch (track->kind) {
	case TIMELINE_PROCESS:
		return (struct place){ track->pid, 0 };
	case TIMELINE_THREAD:
		return (struct place){ track->pid, track->tid };
	case TIMELINE_GROUP:
		return (struct place){ OTHERS + number, 0 };
	default:
		return (struct place){ chrome_place(t, track->parent).pid, OTHERS + number };
	}
}

/* Texts have no control characters. */
static void put_string(struct strbuf *out, const char *text)
{
	strbuf_addc(out, '"');
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			strbuf_addc(out, '\\');
		strbuf_addc(out, *text);
	}
	strbuf_addc(out, '"');
}

/* What is between blocks is the file's (timeline/files.c). */
static void put_open(struct timeline *t)
{
	strbuf_adds(&t->out, t->out.len > 0 ? ",\n{" : "{");
}

static void put_name(struct timeline *t, const char *of, struct place place, const char *name)
{
	put_open(t);
	strbuf_addf(&t->out, "\"ph\":\"M\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32, place.pid, place.tid);
	strbuf_addf(&t->out, ",\"name\":\"%s\"", of);
	strbuf_adds(&t->out, ",\"args\":{\"name\":");
	put_string(&t->out, name);
	strbuf_adds(&t->out, "}}");
}

static void need_track(struct timeline *t, uint32_t index)
{
	const struct timeline_track *track = &t->tracks[index];

	if (t->described[index] == t->block)
		return;
	t->described[index] = t->block;
	if (track->parent != TIMELINE_NONE)
		need_track(t, track->parent);
	if (track->kind == TIMELINE_PROCESS || track->kind == TIMELINE_GROUP)
		put_name(t, "process_name", chrome_place(t, index), text_at(t, track->name));
	else if (track->kind != TIMELINE_COUNTER)
		put_name(t, "thread_name", chrome_place(t, index), text_at(t, track->name));
}

static void put_arg(struct timeline *t, const struct timeline_arg *arg)
{
	char text[TIMELINE_DIMENSIONS_TEXT];

	put_string(&t->out, text_at(t, arg->key));
	strbuf_addc(&t->out, ':');
	switch ((enum timeline_arg_type)arg->type) {
	case TIMELINE_UNSIGNED:
		strbuf_add_u64(&t->out, arg->value);
		break;
	case TIMELINE_SIGNED:
		strbuf_add_i64(&t->out, (int64_t)arg->value);
		break;
	case TIMELINE_POINTER:
		strbuf_addf(&t->out, "\"0x%" PRIx64 "\"", arg->value);
		break;
	case TIMELINE_TEXT:
		put_string(&t->out, text_at(t, (uint32_t)arg->value));
		break;
	case TIMELINE_DIMENSIONS:
		timeline_dimensions_text(arg->value, text);
		put_string(&t->out, text);
		break;
	}
}

static void put_args(struct timeline *t, const struct timeline_event *e)
{
	strbuf_adds(&t->out, ",\"args\":{");
	for (unsigned i = 0; i < e->args_n; i++) {
		if (i > 0)
			strbuf_addc(&t->out, ',');
		put_arg(t, &e->args[i]);
	}
	strbuf_addc(&t->out, '}');
}

/* Microseconds. */
static void put_time(struct timeline *t, const char *key, uint64_t ns)
{
	strbuf_addf(&t->out, ",\"%s\":%" PRIu64 ".%03" PRIu64, key, ns / NSEC_PER_USEC, ns % NSEC_PER_USEC);
}

static void put_head(struct timeline *t, const struct timeline_event *e, const char *phase,
		     struct place place, const char *name)
{
	put_open(t);
	strbuf_addf(&t->out, "\"ph\":\"%s\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32, phase, place.pid,
		    place.tid);
	put_time(t, "ts", e->begin_ns);
	strbuf_adds(&t->out, ",\"cat\":");
	put_string(&t->out, timeline_category_names[e->category]);
	strbuf_adds(&t->out, ",\"name\":");
	put_string(&t->out, name);
}

/* The first event with the number begins the arrow; a viewer finds the order by the times. */
static void put_flow(struct timeline *t, const struct timeline_event *e, struct place place, uint64_t flow)
{
	bool ends = t->tracks[e->track].kind == TIMELINE_CHILD;

	put_head(t, e, ends ? "f" : "s", place, "launch");
	strbuf_addf(&t->out, ",\"id\":%" PRIu64 "%s}", flow, ends ? ",\"bp\":\"e\"" : "");
}

static void put_event(struct timeline *t, const struct timeline_event *e)
{
	static const char *const phases[] = {
		[TIMELINE_SLICE] = "X", [TIMELINE_INSTANT] = "i", [TIMELINE_VALUE] = "C"
	};
	struct place place = chrome_place(t, e->track);

	need_track(t, e->track);
	if (e->type == TIMELINE_VALUE) {
		place.tid = 0;
		put_head(t, e, phases[e->type], place, text_at(t, t->tracks[e->track].name));
		strbuf_addf(&t->out, ",\"args\":{\"value\":%.17g}}", e->value);
		return;
	}
	put_head(t, e, phases[e->type], place, text_at(t, e->name));
	if (e->type == TIMELINE_SLICE)
		put_time(t, "dur", e->end_ns - e->begin_ns);
	else
		strbuf_adds(&t->out, ",\"s\":\"t\"");
	put_args(t, e);
	strbuf_addc(&t->out, '}');
	if (e->flow)
		put_flow(t, e, place, e->flow);
	if (e->other_flow)
		put_flow(t, e, place, e->other_flow);
}

static int chrome_block(struct timeline *t)
{
	for (uint32_t i = 0; i < t->n; i++)
		put_event(t, &t->events[i]);
	return 0;
}

const struct timeline_encoder timeline_chrome = {
	.block = chrome_block,
};
