// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>
#include <zlib.h>

#include "base/fd.h"
#include "base/strbuf.h"
#include "timeline/perfetto.h"
#include "timeline/proto.h"
#include "timeline/read.h"
#include "timeline/stacks.h"

enum { EVENTS = 64, TEXT = 256 };

/* What was told, with its texts. */
static struct told {
	struct timeline_event event;
	struct timeline_track track;
	char name[TEXT], track_name[TEXT], parent[TEXT], keys[TIMELINE_ARGS][TEXT],
		values[TIMELINE_ARGS][TEXT];
} told[EVENTS];
static unsigned told_n;
static struct strbuf file;
static struct timeline_read result;
static int64_t real_offset_ns;

static void copy(char to[static TEXT], const char *from)
{
	snprintf(to, TEXT, "%s", from);
}

static void on_event(struct timeline_reader *reader, const struct timeline_event *event)
{
	struct told *one = &told[told_n++ % EVENTS];

	one->event = *event;
	one->track = *timeline_reader_track(reader, event->track);
	copy(one->name, event->type == TIMELINE_VALUE ? "" : timeline_reader_text(reader, event->name));
	copy(one->track_name, timeline_reader_text(reader, one->track.name));
	copy(one->parent, "");
	if (one->track.parent != TIMELINE_NONE)
		copy(one->parent,
		     timeline_reader_text(reader, timeline_reader_track(reader, one->track.parent)->name));
	for (unsigned i = 0; i < event->args_n; i++) {
		copy(one->keys[i], timeline_reader_text(reader, event->args[i].key));
		if (event->args[i].type == TIMELINE_TEXT)
			copy(one->values[i], timeline_reader_text(reader, (uint32_t)event->args[i].value));
	}
	real_offset_ns = timeline_reader_real_offset(reader);
}

static int read_bytes(const void *data, size_t n)
{
	_cleanup_(timeline_reader_freep) struct timeline_reader *reader = NULL;
	_cleanup_close_ int fd = memfd_create("timeline", MFD_CLOEXEC);
	struct timeline_event event;
	int r;

	assert_true(fd >= 0 && write_all(fd, data, n) == (ssize_t)n);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	told_n = 0;
	assert_int_equal(timeline_reader_new(fd, &reader), 0);
	while ((r = timeline_read_next(reader, &event)) > 0)
		on_event(reader, &event);
	result = *timeline_read_status(reader);
	assert_int_equal(told_n, result.events);
	return r;
}

static int begin(void **state)
{
	(void)state;
	strbuf_init(&file, 0);
	return 0;
}

static int end(void **state)
{
	(void)state;
	strbuf_done(&file);
	return 0;
}

/* ---- what our writer writes ---- */

static int take(struct timeline_block *block, void *userdata)
{
	strbuf_add(userdata, block->data, block->n);
	return 0;
}

static struct timeline *writer(void)
{
	static const struct timeline_ops ops = { .write = take };
	struct timeline *timeline;

	assert_int_equal(timeline_new(TIMELINE_PERFETTO, &ops, &file, &timeline), 0);
	return timeline;
}

static uint32_t text(struct timeline *timeline, const char *string)
{
	uint32_t number = 0;

	assert_int_equal(timeline_text(timeline, string, &number), 0);
	return number;
}

static uint32_t track(struct timeline *timeline, struct timeline_track of, const char *name)
{
	uint32_t number = 0;

	of.name = text(timeline, name);
	assert_int_equal(timeline_track(timeline, &of, &number), 0);
	return number;
}

static void add(struct timeline *timeline, struct timeline_event event)
{
	assert_int_equal(timeline_add(timeline, &event), 0);
}

/* Blocks of a slice with all kinds of arguments, an instant before it, and a counter's value. */
static void write_blocks(unsigned blocks)
{
	static const uint32_t grid[3] = { 4, 2, 1 };
	struct timeline *timeline = writer();
	uint32_t process = track(timeline,
				 (struct timeline_track){
					 .kind = TIMELINE_PROCESS, .parent = TIMELINE_NONE, .pid = 7 },
				 "train"),
		 thread = track(timeline,
				(struct timeline_track){
					.kind = TIMELINE_THREAD, .parent = process, .pid = 7, .tid = 8 },
				"main"),
		 counter =
			 track(timeline,
			       (struct timeline_track){
				       .kind = TIMELINE_COUNTER, .unit = TIMELINE_BYTES, .parent = process },
			       "held");

	for (unsigned i = 0; i < blocks; i++) {
		add(timeline,
		    (struct timeline_event){
			    .type = TIMELINE_SLICE,
			    .category = TIMELINE_NCCL,
			    .track = thread,
			    .name = text(timeline, "ncclAllReduce"),
			    .begin_ns = 1000 + i,
			    .end_ns = 2000 + i,
			    .flow = UINT64_MAX,
			    .args_n = 5,
			    .args = { { text(timeline, "bytes"), TIMELINE_UNSIGNED, UINT64_MAX },
				      { text(timeline, "root"), TIMELINE_SIGNED, (uint64_t)-1 },
				      { text(timeline, "stream"), TIMELINE_POINTER, 255 },
				      { text(timeline, "type"), TIMELINE_TEXT, text(timeline, "float32") },
				      { text(timeline, "grid"), TIMELINE_DIMENSIONS,
					timeline_dimensions(grid) } } });
		add(timeline, (struct timeline_event){ .type = TIMELINE_INSTANT,
						       .category = TIMELINE_TRACING,
						       .track = process,
						       .name = text(timeline, "3 events lost"),
						       .begin_ns = 500 });
		add(timeline,
		    (struct timeline_event){
			    .type = TIMELINE_VALUE, .track = counter, .begin_ns = 600, .value = 0.5 });
		assert_int_equal(timeline_flush(timeline), 0);
	}
	timeline_free(timeline);
}

static void what_is_written_is_read(void **state)
{
	const struct told *slice = &told[0], *instant = &told[1], *value = &told[2];

	(void)state;
	write_blocks(1);
	assert_int_equal(read_bytes(file.data, file.len), 0);
	assert_int_equal(told_n, 3);
	assert_int_equal(result.events, 3);
	assert_int_equal(result.blocks, 1);
	assert_int_equal(result.bytes, file.len);
	assert_int_equal(result.left_out + result.unended + result.cut_bytes, 0);
	assert_int_equal(slice->event.type, TIMELINE_SLICE);
	assert_int_equal(slice->event.category, TIMELINE_NCCL);
	assert_int_equal(slice->event.begin_ns, 1000);
	assert_int_equal(slice->event.end_ns, 2000);
	assert_true(slice->event.flow == UINT64_MAX);
	assert_string_equal(slice->name, "ncclAllReduce");
	assert_string_equal(slice->track_name, "main");
	assert_string_equal(slice->parent, "train");
	assert_int_equal(slice->track.kind, TIMELINE_THREAD);
	assert_int_equal(slice->track.pid, 7);
	assert_int_equal(slice->track.tid, 8);
	assert_int_equal(slice->event.args_n, 5);
	assert_string_equal(slice->keys[0], "bytes");
	assert_true(slice->event.args[0].value == UINT64_MAX);
	assert_int_equal(slice->event.args[1].type, TIMELINE_SIGNED);
	assert_int_equal((int64_t)slice->event.args[1].value, -1);
	assert_int_equal(slice->event.args[2].type, TIMELINE_POINTER);
	assert_string_equal(slice->values[3], "float32");
	assert_string_equal(slice->values[4], "4x2x1");
	assert_int_equal(instant->event.type, TIMELINE_INSTANT);
	assert_int_equal(instant->event.category, TIMELINE_TRACING);
	assert_int_equal(instant->event.begin_ns, 500);
	assert_int_equal(instant->track.kind, TIMELINE_PROCESS);
	assert_int_equal(value->event.type, TIMELINE_VALUE);
	assert_true(value->event.value == 0.5);
	assert_int_equal(value->track.kind, TIMELINE_COUNTER);
	assert_int_equal(value->track.unit, TIMELINE_BYTES);
	assert_string_equal(value->track_name, "held");
	assert_true(real_offset_ns != 0);
}

static void a_file_may_end_anywhere(void **state)
{
	unsigned whole, most = 0;

	(void)state;
	write_blocks(1);
	whole = (unsigned)file.len;
	write_blocks(1);
	for (size_t n = 0; n <= file.len; n++) {
		assert_int_equal(read_bytes(file.data, n), 0);
		assert_int_equal(result.cut_bytes, n < whole ? n : n < file.len ? n - whole : 0);
		assert_int_equal(result.bytes, n);
		assert_true(told_n >= most); /* never fewer than of a shorter one */
		most = told_n;
		assert_true(n < whole || told_n >= 3);
	}
	assert_int_equal(most, 6);
}

/* zlib gives out what it has: of a block that is cut, its first events. */
static void a_cut_block_is_read_as_far_as_it_goes(void **state)
{
	struct timeline *timeline = writer();
	uint32_t process =
		track(timeline,
		      (struct timeline_track){ .kind = TIMELINE_PROCESS, .parent = TIMELINE_NONE, .pid = 7 },
		      "train");

	(void)state;
	for (unsigned i = 0; i < TIMELINE_BLOCK; i++)
		add(timeline, (struct timeline_event){ .type = TIMELINE_SLICE,
						       .track = process,
						       .name = text(timeline, "x"),
						       .begin_ns = i * UINT64_C(7919) % 104729,
						       .end_ns = 104729 + i * UINT64_C(7907) % 104729 });
	timeline_free(timeline);
	assert_int_equal(read_bytes(file.data, file.len / 2), 0);
	assert_int_equal(result.cut_bytes, file.len / 2);
	assert_in_range(told_n, TIMELINE_BLOCK / 4, TIMELINE_BLOCK - 1);
}

/* Nothing that a byte is changed to does harm; what is refused has a reason and a place. */
static void any_byte_may_be_wrong(void **state)
{
	(void)state;
	write_blocks(2);
	for (size_t i = 0; i < file.len; i++) {
		for (unsigned bit = 0; bit < 8; bit++) {
			int r;

			file.data[i] = (char)(file.data[i] ^ 1 << bit);
			r = read_bytes(file.data, file.len);
			file.data[i] = (char)(file.data[i] ^ 1 << bit);
			assert_true(r == 0 || r == -EBADMSG);
			assert_true((r == -EBADMSG) == (result.reason != NULL));
			assert_true(result.offset <= file.len);
		}
	}
}

/* ---- what others write, or somebody hostile ---- */

struct bytes {
	uint8_t at[512], *end;
};

static struct bytes bytes(void)
{
	return (struct bytes){ .end = NULL };
}

static uint8_t *end_of(struct bytes *b)
{
	return b->end ? b->end : b->at;
}

static void number(struct bytes *b, unsigned field, uint64_t value)
{
	b->end = proto_u64(end_of(b), field, value);
}

static void string(struct bytes *b, unsigned field, const char *value)
{
	b->end = proto_text(end_of(b), field, value);
}

static void message(struct bytes *b, unsigned field, struct bytes *inner)
{
	b->end = proto_bytes(end_of(b), field, inner->at, (size_t)(end_of(inner) - inner->at));
}

static void packet(struct bytes *content)
{
	uint8_t whole[1024],
		*to = proto_bytes(whole, TRACE_PACKET, content->at, (size_t)(end_of(content) - content->at));

	strbuf_add(&file, whole, (size_t)(to - whole));
}

static void event_packet(uint64_t time_ns, uint64_t type, uint64_t uuid, const char *name)
{
	struct bytes content = bytes(), event = bytes();

	number(&event, EVENT_TYPE, type);
	number(&event, EVENT_TRACK, uuid);
	if (name)
		string(&event, EVENT_NAME, name);
	number(&content, PACKET_TIMESTAMP, time_ns);
	message(&content, PACKET_TRACK_EVENT, &event);
	packet(&content);
}

static void nested_slices_end_inside_out(void **state)
{
	(void)state;
	event_packet(10, TYPE_BEGIN, 1, "outer");
	event_packet(11, TYPE_BEGIN, 2, "other");
	event_packet(12, TYPE_BEGIN, 1, "inner");
	event_packet(13, TYPE_END, 1, NULL);
	event_packet(14, TYPE_END, 1, NULL);
	event_packet(15, TYPE_END, 1, NULL); /* of none */
	event_packet(16, TYPE_BEGIN, 1, "open");
	event_packet(17, TYPE_BEGIN, 3, "backwards");
	event_packet(16, TYPE_END, 3, NULL);
	assert_int_equal(read_bytes(file.data, file.len), 0);
	assert_int_equal(told_n, 2);
	assert_string_equal(told[0].name, "inner");
	assert_int_equal(told[0].event.end_ns, 13);
	assert_string_equal(told[1].name, "outer");
	assert_int_equal(told[1].event.begin_ns, 10);
	assert_int_equal(told[1].event.category, TIMELINE_PROGRAM);
	assert_int_equal(result.left_out, 2);
	assert_int_equal(result.unended, 2);
}

static void add_clock(struct bytes *snapshot, uint64_t id, uint64_t value, uint64_t multiplier,
		      bool incremental)
{
	struct bytes clock = bytes();

	number(&clock, CLOCK_ID, id);
	number(&clock, CLOCK_TIMESTAMP, value);
	number(&clock, CLOCK_INCREMENTAL, incremental);
	number(&clock, CLOCK_MULTIPLIER, multiplier);
	message(snapshot, SNAPSHOT_CLOCK, &clock);
}

/* A clock of the sequence, in microseconds, with differences; and the boot clock without one. */
static void clocks_are_converted(void **state)
{
	struct bytes snapshot = bytes(), content = bytes();

	(void)state;
	add_clock(&snapshot, CLOCK_MONOTONIC_ID, 1000000, 1, false);
	add_clock(&snapshot, CLOCK_BOOTTIME_ID, 3000000, 1, false);
	add_clock(&snapshot, CLOCK_REALTIME_ID, 9000000, 1, false);
	add_clock(&snapshot, CLOCK_BEGINS, 5000, 1000, true);
	message(&content, PACKET_CLOCK_SNAPSHOT, &snapshot);
	number(&content, PACKET_FLAGS, FLAG_CLEARED);
	packet(&content);
	for (unsigned i = 0; i < 2; i++) {
		struct bytes event = bytes(), timed = bytes();

		number(&event, EVENT_TYPE, TYPE_INSTANT);
		number(&timed, PACKET_TIMESTAMP, 7);
		number(&timed, PACKET_CLOCK, CLOCK_BEGINS);
		message(&timed, PACKET_TRACK_EVENT, &event);
		packet(&timed);
	}
	event_packet(3000005, TYPE_INSTANT, 1, "by the boot clock");
	assert_int_equal(read_bytes(file.data, file.len), 0);
	assert_int_equal(told_n, 3);
	assert_int_equal(told[0].event.begin_ns, 1007000);
	assert_int_equal(told[1].event.begin_ns, 1014000);
	assert_int_equal(told[2].event.begin_ns, 1000005);
	assert_int_equal(real_offset_ns, 8000000);
}

/* What comes before the state of its sequence began cannot be understood. */
static void without_state_it_is_left_out(void **state)
{
	struct bytes event = bytes(), content = bytes();

	(void)state;
	number(&event, EVENT_TYPE, TYPE_INSTANT);
	number(&event, EVENT_NAME_IID, 1);
	number(&content, PACKET_TIMESTAMP, 1);
	number(&content, PACKET_FLAGS, FLAG_NEEDS_STATE);
	message(&content, PACKET_TRACK_EVENT, &event);
	packet(&content);
	assert_int_equal(read_bytes(file.data, file.len), 0);
	assert_int_equal(told_n, 0);
	assert_int_equal(result.left_out, 1);
}

static void refused(const char *reason, uint64_t offset)
{
	assert_int_equal(read_bytes(file.data, file.len), -EBADMSG);
	assert_non_null(result.reason);
	assert_non_null(strstr(result.reason, reason));
	assert_int_equal(result.offset, offset);
}

static void other_files_are_refused(void **state)
{
	static const char *const others[] = { "[\n{\"ph\":\"M\"}]\n", "\177ELF", "\x1f\x8b\x08zzzzzzzzzzzz" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		strbuf_reset(&file);
		strbuf_adds(&file, others[i]);
		refused("no timeline in Perfetto's format", 0);
	}
	strbuf_reset(&file);
	event_packet(1, TYPE_INSTANT, 1, "good");
	strbuf_add(&file, "\0\0\0\0\0\0\0\0", 8);
	refused("no packet of Perfetto's format", file.len - 8);
	assert_int_equal(told_n, 1);
}

static void describe(uint64_t uuid, uint64_t parent)
{
	struct bytes content = bytes(), of = bytes();

	number(&of, TRACK_UUID, uuid);
	number(&of, TRACK_PARENT, parent);
	message(&content, PACKET_TRACK_DESCRIPTOR, &of);
	packet(&content);
}

static void tracks_below_themselves_are_refused(void **state)
{
	uint64_t last;

	(void)state;
	describe(1, 2);
	describe(2, 3);
	last = file.len;
	describe(3, 1);
	refused("below themselves", last);
}

static void too_much_is_refused(void **state)
{
	static const uint8_t large[] = { TRACE_PACKET << 3 | PROTO_BYTES, 0xff, 0xff, 0xff, 0xff, 0x7f };
	struct bytes content;
	size_t last = 0;

	(void)state;
	strbuf_add(&file, large, sizeof(large));
	refused("a packet has more than 16 MiB", 0);
	strbuf_reset(&file);
	for (unsigned i = 0; i <= TIMELINE_SEQUENCES_MAX; i++) {
		content = bytes();
		number(&content, PACKET_SEQUENCE, i);
		last = file.len;
		packet(&content);
	}
	refused("more than 64 writers", last);
	strbuf_reset(&file);
	for (unsigned i = 0; i <= TIMELINE_OPEN_MAX; i++) {
		last = file.len;
		event_packet(i, TYPE_BEGIN, 1, "open");
	}
	refused("slices are open", last);
	strbuf_reset(&file);
	for (unsigned i = 0; i <= TIMELINE_TRACKS_MAX; i++) {
		last = file.len;
		event_packet(i, TYPE_INSTANT, i + 1, "x");
	}
	refused("65536 tracks", last);
}

/* Of two blocks, each of which says the stack again; the innermost frame first. */
static void stacks_are_read(void **state)
{
	struct timeline *timeline = writer();
	struct timeline_track of = { .kind = TIMELINE_THREAD, .parent = TIMELINE_NONE, .pid = 7, .tid = 8 };
	uint32_t thread = track(timeline, of, "main"), frames[2], stack;
	struct timeline_reader *reader;
	struct timeline_event event;
	struct timeline_frame frame;
	int fd = memfd_create("stacks", 0);

	(void)state;
	assert_int_equal(timeline_frame(timeline, "copy", "model.py", 12, true, &frames[0]), 0);
	assert_int_equal(timeline_frame(timeline, "main", "", 0, false, &frames[1]), 0);
	assert_int_equal(timeline_stack(timeline, frames, 2, &stack), 0);
	for (unsigned i = 0; i < 3; i++) {
		add(timeline, (struct timeline_event){ .type = TIMELINE_SLICE,
						       .track = thread,
						       .stack = i < 2 ? stack : 0,
						       .name = text(timeline, "cudaMemcpy"),
						       .begin_ns = 1000 + i,
						       .end_ns = 1001 + i });
		assert_int_equal(timeline_flush(timeline), 0);
	}
	timeline_free(timeline);
	assert_int_equal(write_all(fd, file.data, file.len), file.len);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(timeline_reader_new(fd, &reader), 0);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(timeline_read_next(reader, &event), 1);
		assert_int_equal(event.stack, 1);
		assert_true(timeline_reader_frame(reader, event.stack, 0, &frame));
		assert_string_equal(timeline_reader_text(reader, frame.function), "copy");
		assert_string_equal(timeline_reader_text(reader, frame.file), "model.py");
		assert_true(frame.line == 12 && frame.interpreted);
		assert_true(timeline_reader_frame(reader, event.stack, 1, &frame));
		assert_string_equal(timeline_reader_text(reader, frame.function), "main");
		assert_false(timeline_reader_frame(reader, event.stack, 2, &frame));
	}
	assert_int_equal(timeline_read_next(reader, &event), 1);
	assert_int_equal(event.stack, 0);
	assert_false(timeline_reader_frame(reader, event.stack, 0, &frame));
	assert_int_equal(timeline_read_status(reader)->left_out, 0);
	timeline_reader_free(reader);
	close(fd);
}

/* A stack of another writer, with frames whose lines are these, the outermost first. */
static void intern(uint64_t iid, unsigned kind, const uint64_t *frames, unsigned n)
{
	struct bytes content = bytes(), entry = bytes(), interned = bytes();

	number(&entry, 1, iid);
	if (kind == INTERNED_FRAMES)
		number(&entry, FRAME_LINE, iid);
	for (unsigned i = 0; i < n; i++)
		number(&entry, CALLSTACK_FRAME, frames[i]);
	message(&interned, kind, &entry);
	number(&content, PACKET_SEQUENCE, 1);
	number(&content, PACKET_FLAGS, kind == INTERNED_FRAMES && iid == 1 ? FLAG_CLEARED : FLAG_NEEDS_STATE);
	message(&content, PACKET_INTERNED, &interned);
	packet(&content);
}

static void event_with_stack(uint64_t iid)
{
	struct bytes content = bytes(), event = bytes();

	number(&event, EVENT_TYPE, TYPE_INSTANT);
	number(&event, EVENT_TRACK, 1);
	number(&event, EVENT_CALLSTACK_IID, iid);
	number(&content, PACKET_TIMESTAMP, 1);
	number(&content, PACKET_SEQUENCE, 1);
	number(&content, PACKET_FLAGS, FLAG_NEEDS_STATE);
	message(&content, PACKET_TRACK_EVENT, &event);
	packet(&content);
}

/* Of a stack with more frames than are kept these are the innermost ones. */
static void deep_stacks_are_cut(void **state)
{
	enum { DEPTH = TIMELINE_STACK_FRAMES + 2 };
	_cleanup_(timeline_reader_freep) struct timeline_reader *reader = NULL;
	_cleanup_close_ int fd = memfd_create("stacks", MFD_CLOEXEC);
	struct timeline_event event;
	struct timeline_frame frame;
	uint64_t frames[DEPTH];

	(void)state;
	for (unsigned i = 0; i < DEPTH; i++) {
		frames[i] = i + 1;
		intern(i + 1, INTERNED_FRAMES, NULL, 0);
	}
	intern(1, INTERNED_CALLSTACKS, frames, DEPTH);
	event_with_stack(1);
	assert_int_equal(write_all(fd, file.data, file.len), file.len);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(timeline_reader_new(fd, &reader), 0);
	assert_int_equal(timeline_read_next(reader, &event), 1);
	for (unsigned i = 0; i < TIMELINE_STACK_FRAMES; i++) {
		assert_true(timeline_reader_frame(reader, event.stack, i, &frame));
		assert_int_equal(frame.line, DEPTH - i);
	}
	assert_false(timeline_reader_frame(reader, event.stack, TIMELINE_STACK_FRAMES, &frame));
}

/* The file is read on, and events have no stack. */
static void stacks_beyond_the_limit_are_left_out(void **state)
{
	(void)state;
	for (uint64_t i = 1; i <= 257; i++)
		intern(i, INTERNED_FRAMES, NULL, 0);
	for (uint64_t i = 0; i <= TIMELINE_STACKS_MAX; i++)
		intern(i + 1, INTERNED_CALLSTACKS, (const uint64_t[]){ i / 256 + 1, i % 256 + 1 }, 2);
	event_with_stack(TIMELINE_STACKS_MAX);
	event_with_stack(TIMELINE_STACKS_MAX + 1);
	assert_int_equal(read_bytes(file.data, file.len), 0);
	assert_int_equal(told_n, 2);
	assert_int_equal(result.left_out, 2);
}

static void add_block(const void *data, size_t n)
{
	uLongf room = compressBound(n);
	uint8_t *deflated = malloc(room + 64), *inner = malloc(room + 64), *whole = malloc(room + 64), *to;

	assert_true(deflated && inner && whole);
	assert_int_equal(compress(deflated, &room, data, n), Z_OK);
	to = proto_bytes(inner, PACKET_COMPRESSED, deflated, room);
	to = proto_bytes(whole, TRACE_PACKET, inner, (size_t)(to - inner));
	strbuf_add(&file, whole, (size_t)(to - whole));
	free(deflated);
	free(inner);
	free(whole);
}

static void bad_blocks_are_refused(void **state)
{
	struct bytes content = bytes();
	char *large = calloc(1, TIMELINE_PACKET_MAX + 1), *inner;
	size_t n;

	(void)state;
	assert_non_null(large);
	add_block(large, TIMELINE_PACKET_MAX + 1);
	free(large);
	assert_in_range(file.len, 1, 1 << 16);
	refused("a deflated block has more than 16 MiB", 0);
	strbuf_reset(&file);
	string(&content, PACKET_COMPRESSED, "this is not deflated");
	packet(&content);
	refused("cannot be inflated", 0);
	strbuf_reset(&file);
	event_packet(1, TYPE_INSTANT, 1, "x");
	n = file.len;
	inner = strbuf_take(&file);
	add_block(inner, n - 1);
	refused("ends within a packet", 0);
	assert_int_equal(result.in_block, 0);
	strbuf_reset(&file);
	add_block(inner, n);
	free(inner);
	n = file.len;
	inner = strbuf_take(&file);
	add_block(inner, n);
	free(inner);
	refused("in another one", 0);
}

/* The end of a message within another one is where it is refused, too. */
static void fields_that_do_not_end_are_refused(void **state)
{
	static const uint8_t event[] = { TRACE_PACKET << 3 | PROTO_BYTES, 3,
					 PACKET_TRACK_EVENT << 3 | PROTO_BYTES, 1, 0x80 };

	(void)state;
	strbuf_add(&file, event, sizeof(event));
	refused("does not end within it", 0);
}

#define TEST(name_) cmocka_unit_test_setup_teardown(name_, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_written_is_read),
		TEST(stacks_are_read),
		TEST(deep_stacks_are_cut),
		TEST(stacks_beyond_the_limit_are_left_out),
		TEST(a_file_may_end_anywhere),
		TEST(a_cut_block_is_read_as_far_as_it_goes),
		TEST(any_byte_may_be_wrong),
		TEST(nested_slices_end_inside_out),
		TEST(clocks_are_converted),
		TEST(without_state_it_is_left_out),
		TEST(other_files_are_refused),
		TEST(tracks_below_themselves_are_refused),
		TEST(too_much_is_refused),
		TEST(bad_blocks_are_refused),
		TEST(fields_that_do_not_end_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
