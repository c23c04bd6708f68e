// SPDX-License-Identifier: Apache-2.0
/* What a packet says: clocks, texts, tracks, events. */
#include <math.h>
#include <string.h>

#include "timeline/perfetto.h"
#include "timeline/read_private.h"

enum { SNAPSHOT_CLOCKS = 32, NO_CLOCK = 0 };

struct packet {
	bool has_time;
	uint64_t time, sequence, flags, clock;
	struct proto_field event, interned, defaults, descriptor, snapshot,
		deflated; /* number 0: not there */
};

int read_malformed(struct timeline_reader *r)
{
	return read_refuse(r, "a field of a packet does not end within it");
}

/* ---- sequences ---- */

static struct read_sequence *sequence_of(struct timeline_reader *r, uint64_t id)
{
	struct read_sequence *sequences = r->sequences.list, *new;

	for (uint32_t i = 0; i < r->sequences.n; i++)
		if (sequences[i].id == id)
			return &sequences[i];
	new = id <= UINT32_MAX ? row_list_add(&r->sequences) : NULL;
	if (new)
		new->id = (uint32_t)id;
	return new;
}

static void forget_texts(struct timeline_reader *r, struct read_sequence *s)
{
	r->interned -= s->texts.count;
	if (s->texts.count > 1 << 16)
		hashmap_done(&s->texts);
	else
		hashmap_clear(&s->texts);
}

static void sequence_clear(struct timeline_reader *r, struct read_sequence *s)
{
	forget_texts(r, s);
	memset(s->clocks, 0, sizeof(s->clocks));
	s->default_clock = s->default_track = 0;
	s->whole = true;
}

/* ---- clocks ---- */

struct snapshot_clock {
	uint64_t id, value, incremental, multiplier;
};

static int snapshot_clock(struct timeline_reader *r, struct proto_in in, struct snapshot_clock *clock)
{
	struct proto_field field;
	int n;

	*clock = (struct snapshot_clock){ .multiplier = 1 };
	while ((n = proto_next(&in, &field)) > 0) {
		if (field.number == CLOCK_ID)
			clock->id = field.value;
		else if (field.number == CLOCK_TIMESTAMP)
			clock->value = field.value;
		else if (field.number == CLOCK_INCREMENTAL)
			clock->incremental = field.value;
		else if (field.number == CLOCK_MULTIPLIER)
			clock->multiplier = field.value;
	}
	return n < 0 ? read_malformed(r) : 0;
}

static uint64_t snapshot_ns(const struct snapshot_clock *clocks, unsigned n, uint64_t id, uint64_t otherwise)
{
	for (unsigned i = 0; i < n; i++)
		if (clocks[i].id == id)
			return clocks[i].value * clocks[i].multiplier;
	return otherwise;
}

static struct read_clock *clock_of(struct timeline_reader *r, struct read_sequence *s, uint64_t id)
{
	if (id == NO_CLOCK || id >= 2 * CLOCKS)
		return NULL;
	return id < CLOCKS ? &r->clocks[id] : &s->clocks[id - CLOCKS];
}

/* The clocks of a snapshot are of one moment. Times are told by the monotonic one where it is there. */
static int on_snapshot(struct timeline_reader *r, struct read_sequence *s, struct proto_in in)
{
	struct snapshot_clock clocks[SNAPSHOT_CLOCKS];
	struct proto_field field;
	uint64_t reference_ns, real_ns;
	unsigned n = 0;
	int more;

	while ((more = proto_next(&in, &field)) > 0) {
		if (field.number != SNAPSHOT_CLOCK || field.wire != PROTO_BYTES || n == SNAPSHOT_CLOCKS)
			continue;
		if (snapshot_clock(r, proto_in(&field), &clocks[n++]) < 0)
			return -EBADMSG;
	}
	if (more < 0)
		return read_malformed(r);
	reference_ns = snapshot_ns(clocks, n, CLOCK_BOOTTIME_ID, 0);
	reference_ns = snapshot_ns(clocks, n, CLOCK_MONOTONIC_ID, reference_ns);
	for (unsigned i = 0; i < n; i++) {
		struct read_clock *clock = clock_of(r, s, clocks[i].id);
		uint64_t ns = clocks[i].value * clocks[i].multiplier;

		if (clock)
			*clock = (struct read_clock){ .set = true,
						      .incremental = clocks[i].incremental,
						      .multiplier = clocks[i].multiplier,
						      .ns = ns,
						      .to_reference = reference_ns - ns };
	}
	real_ns = snapshot_ns(clocks, n, CLOCK_REALTIME_ID, 0);
	if (real_ns)
		r->real_offset_ns = (int64_t)(real_ns - reference_ns);
	return 0;
}

/* Of any packet, since the next one's may be the difference to it. */
static bool time_of(struct timeline_reader *r, struct read_sequence *s, const struct packet *packet,
		    uint64_t *ret_ns)
{
	uint64_t id = packet->clock ? packet->clock : s->default_clock ? s->default_clock : CLOCK_BOOTTIME_ID;
	struct read_clock *clock = clock_of(r, s, id);
	uint64_t ns = packet->time;

	if (!packet->has_time || !clock || (id >= CLOCKS && !clock->set))
		return false;
	if (clock->set)
		ns *= clock->multiplier;
	if (clock->incremental)
		ns = clock->ns += ns;
	*ret_ns = ns + clock->to_reference;
	return true;
}

/* ---- texts ---- */

static int text_number(struct timeline_reader *r, const struct proto_field *field, uint32_t *ret_text)
{
	int n = texts_add(&r->texts, (const char *)field->data, field->value, ret_text);

	return n == -ENOBUFS ? read_refuse(r, "it has too many different texts") : n;
}

/* Of the identifiers of one kind; UINT64_MAX: none has that. */
static uint64_t interned_key(uint64_t iid, uint32_t kind)
{
	static const uint8_t kinds[] = { INTERNED_CATEGORIES, INTERNED_NAMES,  INTERNED_KEYS,
					 INTERNED_FUNCTIONS,  INTERNED_FRAMES, INTERNED_CALLSTACKS,
					 INTERNED_SOURCES,    INTERNED_VALUES };
	uint64_t i = 0;

	_Static_assert(ARRAY_SIZE(kinds) == 1 << 3, "bits of a key");
	while (i < ARRAY_SIZE(kinds) && kinds[i] != kind)
		i++;
	return iid >> 61 || i == ARRAY_SIZE(kinds) ? UINT64_MAX : iid << 3 | i;
}

bool read_interned(const struct read_sequence *s, uint64_t iid, uint32_t kind, uint32_t *ret_number)
{
	return hashmap_get(&s->texts, interned_key(iid, kind), ret_number);
}

int read_intern(struct timeline_reader *r, struct read_sequence *s, uint64_t iid, uint32_t kind,
		uint32_t number)
{
	uint64_t key = interned_key(iid, kind);
	uint32_t before = s->texts.count;
	int n;

	if (key == UINT64_MAX) {
		r->read.left_out++;
		return 0;
	}
	if (r->interned >= INTERNED_MAX)
		return read_refuse(r, "it has too many texts");
	n = hashmap_put(&s->texts, key, number);
	r->interned += s->texts.count - before;
	return n;
}

static int on_entry(struct timeline_reader *r, struct read_sequence *s, const struct proto_field *entry)
{
	struct proto_field field, name = { .data = (const uint8_t *)"" };
	struct proto_in in = proto_in(entry);
	uint64_t iid = 0;
	uint32_t text;
	int n;

	while ((n = proto_next(&in, &field)) > 0) {
		if (field.number == ENTRY_IID && field.wire == PROTO_VARINT)
			iid = field.value;
		else if (field.number == ENTRY_NAME && field.wire == PROTO_BYTES)
			name = field;
	}
	if (n < 0)
		return read_malformed(r);
	n = text_number(r, &name, &text);
	return n < 0 ? n : read_intern(r, s, iid, entry->number, text);
}

static int interned_entry(struct timeline_reader *r, struct read_sequence *s, const struct proto_field *field)
{
	switch (field->number) {
	case INTERNED_CATEGORIES:
	case INTERNED_NAMES:
	case INTERNED_KEYS:
	case INTERNED_VALUES:
	case INTERNED_FUNCTIONS:
	case INTERNED_SOURCES:
		return on_entry(r, s, field);
	case INTERNED_FRAMES:
		return read_frame(r, s, field);
	case INTERNED_CALLSTACKS:
		return read_callstack(r, s, field);
	default:
		return 0;
	}
}

static int on_interned(struct timeline_reader *r, struct read_sequence *s, struct proto_in in)
{
	struct proto_field field;
	int n;

	while ((n = proto_next(&in, &field)) > 0) {
		int entered = field.wire == PROTO_BYTES ? interned_entry(r, s, &field) : 0;

		if (entered < 0)
			return entered;
	}
	return n < 0 ? read_malformed(r) : 0;
}

/* "" if it is not known, which is counted. */
static uint32_t interned(struct timeline_reader *r, const struct read_sequence *s, uint64_t iid,
			 uint32_t number)
{
	uint32_t text;

	if (read_interned(s, iid, number, &text))
		return text;
	r->read.left_out++;
	return r->no_text;
}

/* ---- tracks ---- */

static struct read_track *track_at(const struct timeline_reader *r, uint32_t index)
{
	return &((struct read_track *)r->tracks.list)[index];
}

/* One that was not described yet has no name. */
static int track_of(struct timeline_reader *r, uint64_t uuid, uint32_t *ret_track)
{
	struct read_track *track;
	int n;

	if (hashmap_get(&r->track_by, uuid, ret_track))
		return 0;
	if (r->tracks.n == TIMELINE_TRACKS_MAX)
		return read_refuse(r, "it has more than 65536 tracks");
	track = row_list_add(&r->tracks);
	if (!track)
		return -ENOMEM;
	n = hashmap_put(&r->track_by, uuid, r->tracks.n - 1);
	if (n < 0)
		return n;
	track->shown = (struct timeline_track){ .kind = TIMELINE_GROUP,
						.parent = TIMELINE_NONE,
						.name = r->no_text };
	*ret_track = r->tracks.n - 1;
	return 0;
}

static int set_parent(struct timeline_reader *r, uint32_t track, uint64_t uuid)
{
	uint32_t parent, above, n = 0;
	int error = track_of(r, uuid, &parent);

	if (error < 0)
		return error;
	for (above = parent; above != TIMELINE_NONE; above = track_at(r, above)->shown.parent)
		if (above == track || n++ == PARENTS_MAX)
			return read_refuse(r, "tracks are below themselves, or more than 64 others");
	track_at(r, track)->shown.parent = parent;
	if (track_at(r, track)->shown.kind == TIMELINE_GROUP)
		track_at(r, track)->shown.kind = TIMELINE_CHILD;
	return 0;
}

/* A process's or a thread's; their numbers have different places. */
static int describe_kind(struct timeline_reader *r, struct timeline_track *track,
			 const struct proto_field *part)
{
	bool thread = part->number == TRACK_THREAD;
	struct proto_in in = proto_in(part);
	struct proto_field field;
	int n;

	track->kind = thread ? TIMELINE_THREAD : TIMELINE_PROCESS;
	while ((n = proto_next(&in, &field)) > 0) {
		if (field.number == (thread ? THREAD_NAME : PROCESS_NAME) && field.wire == PROTO_BYTES) {
			n = text_number(r, &field, &track->name);
			if (n < 0)
				return n;
		} else if (field.number == (thread ? THREAD_PID : PROCESS_PID)) {
			track->pid = (uint32_t)field.value;
		} else if (thread && field.number == THREAD_TID) {
			track->tid = (uint32_t)field.value;
		}
	}
	return n < 0 ? read_malformed(r) : 0;
}

static int describe_counter(struct timeline_reader *r, struct timeline_track *track, struct proto_in in)
{
	struct proto_field field;
	int n;

	track->kind = TIMELINE_COUNTER;
	while ((n = proto_next(&in, &field)) > 0)
		if (field.number == COUNTER_UNIT)
			track->unit = field.value == UNIT_BYTES ? TIMELINE_BYTES : TIMELINE_NUMBER;
	return n < 0 ? read_malformed(r) : 0;
}

static int describe_track(struct timeline_reader *r, struct timeline_track *track,
			  const struct proto_field *field)
{
	if (field->wire != PROTO_BYTES)
		return 0;
	switch (field->number) {
	case TRACK_NAME:
	case TRACK_STATIC_NAME:
		return text_number(r, field, &track->name);
	case TRACK_PROCESS:
	case TRACK_THREAD:
		return describe_kind(r, track, field);
	case TRACK_COUNTER:
		return describe_counter(r, track, proto_in(field));
	default:
		return 0;
	}
}

/* Described again, it may have another name. */
static int on_descriptor(struct timeline_reader *r, struct proto_in in)
{
	struct timeline_track track = { .kind = TIMELINE_GROUP, .parent = TIMELINE_NONE, .name = r->no_text };
	uint64_t uuid = 0, parent = 0;
	struct proto_field field;
	uint32_t index;
	int n;

	while ((n = proto_next(&in, &field)) > 0) {
		if (field.number == TRACK_UUID)
			uuid = field.value;
		else if (field.number == TRACK_PARENT)
			parent = field.value;
		else if ((n = describe_track(r, &track, &field)) < 0)
			return n;
	}
	if (n < 0)
		return read_malformed(r);
	n = track_of(r, uuid, &index);
	if (n < 0)
		return n;
	track_at(r, index)->shown = track;
	return parent ? set_parent(r, index, parent) : 0;
}

/* ---- events ---- */

struct event {
	struct timeline_event told;
	uint64_t type, uuid;
	bool has_value;
};

static void set_arg(struct timeline_arg *arg, enum timeline_arg_type type, uint64_t value)
{
	arg->type = (uint8_t)type;
	arg->value = value;
}

/* 1, or 0: its value is of a kind that is not understood. */
static int arg_value(struct timeline_reader *r, const struct read_sequence *s,
		     const struct proto_field *field, struct timeline_arg *arg)
{
	uint32_t text;
	int n;

	switch (field->number) {
	case ARG_BOOL:
	case ARG_UNSIGNED:
		set_arg(arg, TIMELINE_UNSIGNED, field->value);
		return 1;
	case ARG_SIGNED:
		set_arg(arg, TIMELINE_SIGNED, field->value);
		return 1;
	case ARG_POINTER:
		set_arg(arg, TIMELINE_POINTER, field->value);
		return 1;
	case ARG_TEXT_IID:
		set_arg(arg, TIMELINE_TEXT, interned(r, s, field->value, INTERNED_VALUES));
		return 1;
	case ARG_TEXT:
		n = field->wire == PROTO_BYTES ? text_number(r, field, &text) : 0;
		if (n < 0 || field->wire != PROTO_BYTES)
			return n;
		set_arg(arg, TIMELINE_TEXT, text);
		return 1;
	default:
		return 0;
	}
}

static int on_arg(struct timeline_reader *r, const struct read_sequence *s, struct proto_in in,
		  struct timeline_event *event)
{
	struct timeline_arg arg = { .key = r->no_text };
	struct proto_field field;
	bool has_value = false;
	int n, is;

	while ((n = proto_next(&in, &field)) > 0) {
		if (field.number == ARG_KEY_IID) {
			arg.key = interned(r, s, field.value, INTERNED_KEYS);
		} else if (field.number == ARG_KEY && field.wire == PROTO_BYTES) {
			is = text_number(r, &field, &arg.key);
			if (is < 0)
				return is;
		} else {
			is = arg_value(r, s, &field, &arg);
			if (is < 0)
				return is;
			has_value = has_value || is;
		}
	}
	if (n < 0)
		return read_malformed(r);
	if (!has_value || event->args_n == TIMELINE_ARGS)
		r->read.left_out++;
	else
		event->args[event->args_n++] = arg;
	return 0;
}

static uint8_t category_of(const struct timeline_reader *r, uint32_t text)
{
	for (uint8_t i = 0; i < TIMELINE_CATEGORIES; i++)
		if (r->categories[i] == text)
			return i;
	return TIMELINE_PROGRAM;
}

static int event_text(struct timeline_reader *r, const struct proto_field *field, struct timeline_event *told)
{
	uint32_t text;
	int n = text_number(r, field, &text);

	if (n < 0)
		return n;
	if (field->number == EVENT_NAME)
		told->name = text;
	else
		told->category = category_of(r, text);
	return 0;
}

static int event_bytes(struct timeline_reader *r, const struct read_sequence *s,
		       const struct proto_field *field, struct event *event)
{
	switch (field->number) {
	case EVENT_ARG:
		return on_arg(r, s, proto_in(field), &event->told);
	case EVENT_NAME:
	case EVENT_CATEGORY:
		return event_text(r, field, &event->told);
	default:
		return 0;
	}
}

static void event_number(struct timeline_reader *r, const struct read_sequence *s,
			 const struct proto_field *field, struct event *event)
{
	switch (field->number) {
	case EVENT_TYPE:
		event->type = field->value;
		break;
	case EVENT_TRACK:
		event->uuid = field->value;
		break;
	case EVENT_NAME_IID:
		event->told.name = interned(r, s, field->value, INTERNED_NAMES);
		break;
	case EVENT_CATEGORY_IID:
		event->told.category = category_of(r, interned(r, s, field->value, INTERNED_CATEGORIES));
		break;
	case EVENT_DOUBLE:
		memcpy(&event->told.value, &field->value, sizeof(event->told.value));
		event->has_value = field->wire == PROTO_FIXED64 && isfinite(event->told.value);
		break;
	case EVENT_INTEGER:
		event->told.value = (double)(int64_t)field->value;
		event->has_value = true;
		break;
	case EVENT_CALLSTACK_IID:
		if (!read_interned(s, field->value, INTERNED_CALLSTACKS, &event->told.stack))
			r->read.left_out++;
		break;
	case EVENT_FLOW:
		if (event->told.flow)
			event->told.other_flow = field->value;
		else
			event->told.flow = field->value;
		break;
	default:
		break;
	}
}

static int tell(struct timeline_reader *r, const struct timeline_event *event)
{
	r->read.events++;
	r->told = *event;
	r->has_told = true;
	return 0;
}

static struct open_slice *open_slice_at(const struct timeline_reader *r, uint32_t index)
{
	return &((struct open_slice *)r->open.list)[index];
}

static int slice_begin(struct timeline_reader *r, const struct timeline_event *event)
{
	struct read_track *track = track_at(r, event->track);
	uint32_t index = r->open_free - 1;
	struct open_slice *slice;

	if (r->open_free) {
		slice = open_slice_at(r, index);
		r->open_free = slice->below;
	} else {
		if (r->open.n == TIMELINE_OPEN_MAX)
			return read_refuse(r, "more than 65536 slices are open");
		slice = row_list_add(&r->open);
		if (!slice)
			return -ENOMEM;
		index = r->open.n - 1;
	}
	*slice = (struct open_slice){ .event = *event, .below = track->open };
	track->open = index + 1;
	return 0;
}

static int slice_end(struct timeline_reader *r, uint32_t track_index, uint64_t end_ns)
{
	struct read_track *track = track_at(r, track_index);
	uint32_t open = track->open;
	struct timeline_event told;
	struct open_slice *slice;

	if (!open) {
		r->read.left_out++;
		return 0;
	}
	slice = open_slice_at(r, open - 1);
	track->open = slice->below;
	slice->below = r->open_free;
	r->open_free = open;
	told = slice->event;
	told.end_ns = end_ns;
	if (end_ns >= told.begin_ns)
		return tell(r, &told);
	r->read.left_out++;
	return 0;
}

/* @time_ns: NULL, if it has none. */
static int place_event(struct timeline_reader *r, struct event *event, const uint64_t *time_ns)
{
	struct timeline_event *told = &event->told;
	int n = track_of(r, event->uuid, &told->track);

	if (n < 0)
		return n;
	if (!time_ns || event->type == 0 || event->type > TYPE_COUNTER ||
	    (event->type == TYPE_COUNTER && !event->has_value)) {
		r->read.left_out++;
		return 0;
	}
	told->begin_ns = *time_ns;
	if (event->type == TYPE_BEGIN)
		return slice_begin(r, told);
	if (event->type == TYPE_END)
		return slice_end(r, told->track, *time_ns);
	told->type = event->type == TYPE_INSTANT ? TIMELINE_INSTANT : TIMELINE_VALUE;
	return tell(r, told);
}

static int on_track_event(struct timeline_reader *r, const struct read_sequence *s, struct proto_in in,
			  const uint64_t *time_ns)
{
	struct event event = { .told = { .category = TIMELINE_PROGRAM, .name = r->no_text },
			       .uuid = s->default_track };
	struct proto_field field;
	int n;

	while ((n = proto_next(&in, &field)) > 0) {
		if (field.wire != PROTO_BYTES)
			event_number(r, s, &field, &event);
		else if ((n = event_bytes(r, s, &field, &event)) < 0)
			return n;
	}
	return n < 0 ? read_malformed(r) : place_event(r, &event, time_ns);
}

/* ---- packets ---- */

static int on_defaults(struct timeline_reader *r, struct read_sequence *s, struct proto_in in)
{
	struct proto_field field, inner;
	struct proto_in of_event;
	int n, more;

	while ((n = proto_next(&in, &field)) > 0) {
		if (field.number == DEFAULTS_CLOCK)
			s->default_clock = field.value;
		if (field.number != DEFAULTS_EVENT || field.wire != PROTO_BYTES)
			continue;
		of_event = proto_in(&field);
		while ((more = proto_next(&of_event, &inner)) > 0)
			if (inner.number == DEFAULT_TRACK)
				s->default_track = inner.value;
		if (more < 0)
			return read_malformed(r);
	}
	return n < 0 ? read_malformed(r) : 0;
}

static void packet_bytes(struct packet *packet, const struct proto_field *field)
{
	if (field->number == PACKET_TRACK_EVENT)
		packet->event = *field;
	else if (field->number == PACKET_INTERNED)
		packet->interned = *field;
	else if (field->number == PACKET_DEFAULTS)
		packet->defaults = *field;
	else if (field->number == PACKET_TRACK_DESCRIPTOR)
		packet->descriptor = *field;
	else if (field->number == PACKET_CLOCK_SNAPSHOT)
		packet->snapshot = *field;
	else if (field->number == PACKET_COMPRESSED)
		packet->deflated = *field;
}

static int take_apart(struct timeline_reader *r, struct proto_in in, struct packet *packet)
{
	struct proto_field field;
	int n;

	while ((n = proto_next(&in, &field)) > 0) {
		if (field.wire == PROTO_BYTES)
			packet_bytes(packet, &field);
		else if (field.number == PACKET_TIMESTAMP)
			packet->time = field.value;
		else if (field.number == PACKET_SEQUENCE)
			packet->sequence = field.value;
		else if (field.number == PACKET_FLAGS)
			packet->flags = field.value;
		else if (field.number == PACKET_CLOCK)
			packet->clock = field.value;
		packet->has_time = packet->has_time || field.number == PACKET_TIMESTAMP;
	}
	return n < 0 ? read_malformed(r) : 0;
}

int read_packet(struct timeline_reader *r, struct proto_in in)
{
	struct packet packet = { 0 };
	struct read_sequence *s;
	uint64_t time_ns;
	bool has_time;
	int n = take_apart(r, in, &packet);

	if (n == 0 && packet.deflated.number)
		return read_block(r, &packet.deflated);
	if (n < 0)
		return n;
	s = sequence_of(r, packet.sequence);
	if (!s)
		return read_refuse(r, "it has packets of more than 64 writers");
	if (packet.flags & FLAG_CLEARED)
		sequence_clear(r, s);
	if (packet.snapshot.number)
		n = on_snapshot(r, s, proto_in(&packet.snapshot));
	if (n == 0 && packet.defaults.number)
		n = on_defaults(r, s, proto_in(&packet.defaults));
	has_time = time_of(r, s, &packet, &time_ns);
	if (n == 0 && packet.descriptor.number)
		n = on_descriptor(r, proto_in(&packet.descriptor));
	if (n == 0 && packet.interned.number)
		n = on_interned(r, s, proto_in(&packet.interned));
	if (n < 0 || !packet.event.number)
		return n;
	if (packet.flags & FLAG_NEEDS_STATE && !s->whole) {
		r->read.left_out++;
		return 0;
	}
	return on_track_event(r, s, proto_in(&packet.event), has_time ? &time_ns : NULL);
}

/* ---- the reader ---- */

int read_packets_init(struct timeline_reader *r)
{
	int n;

	texts_init(&r->texts);
	timeline_stacks_init(&r->stacks);
	r->sequences =
		(struct row_list){ .size = sizeof(struct read_sequence), .max = TIMELINE_SEQUENCES_MAX };
	r->tracks = (struct row_list){ .size = sizeof(struct read_track), .max = TIMELINE_TRACKS_MAX };
	r->open = (struct row_list){ .size = sizeof(struct open_slice), .max = TIMELINE_OPEN_MAX };
	n = texts_add(&r->texts, "", 0, &r->no_text);
	for (unsigned i = 0; n == 0 && i < TIMELINE_CATEGORIES; i++)
		n = texts_add(&r->texts, timeline_category_names[i], strlen(timeline_category_names[i]),
			      &r->categories[i]);
	return n;
}

void read_packets_done(struct timeline_reader *r)
{
	for (uint32_t i = 0; i < r->sequences.n; i++)
		hashmap_done(&((struct read_sequence *)r->sequences.list)[i].texts);
	row_list_done(&r->sequences);
	row_list_done(&r->tracks);
	row_list_done(&r->open);
	hashmap_done(&r->track_by);
	texts_done(&r->texts);
	timeline_stacks_done(&r->stacks);
}

const char *timeline_reader_text(const struct timeline_reader *r, uint32_t text)
{
	return texts_get(&r->texts, text);
}

const struct timeline_track *timeline_reader_track(const struct timeline_reader *r, uint32_t track)
{
	return &track_at(r, track)->shown;
}

int64_t timeline_reader_real_offset(const struct timeline_reader *r)
{
	return r->real_offset_ns;
}
