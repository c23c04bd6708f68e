// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <zlib.h>

#include "base/strbuf.h"
#include "timeline/timeline.h"

static struct strbuf written;
static unsigned writes;
static int fails; /* -errno of the next writes */
static struct timeline *timeline;

static int take(struct timeline_block *block, void *userdata)
{
	assert_ptr_equal(userdata, &written);
	assert_true(block->events > 0 && block->begin_ns <= block->end_ns);
	writes++;
	if (fails)
		return fails;
	strbuf_add(&written, block->data, block->n);
	return 0;
}

static void open_as(enum timeline_format format)
{
	static const struct timeline_ops ops = { .write = take };

	writes = 0;
	fails = 0;
	strbuf_init(&written, 0);
	assert_int_equal(timeline_new(format, &ops, &written, &timeline), 0);
}

static int close_it(void **state)
{
	(void)state;
	timeline_free(timeline);
	strbuf_done(&written);
	return 0;
}

static uint32_t text(const char *string)
{
	uint32_t number = 0;

	assert_int_equal(timeline_text(timeline, string, &number), 0);
	return number;
}

static uint32_t track(struct timeline_track track, const char *name)
{
	uint32_t number = 0;

	track.name = text(name);
	assert_int_equal(timeline_track(timeline, &track, &number), 0);
	return number;
}

static uint32_t process(void)
{
	return track((struct timeline_track){ .kind = TIMELINE_PROCESS, .parent = TIMELINE_NONE, .pid = 7 },
		     "train \"x\\");
}

static struct timeline_event slice(uint32_t on, const char *name, uint64_t begin_ns, uint64_t end_ns)
{
	return (struct timeline_event){ .type = TIMELINE_SLICE,
					.category = TIMELINE_CUDA,
					.track = on,
					.name = text(name),
					.begin_ns = begin_ns,
					.end_ns = end_ns };
}

static void texts_are_numbered_once_and_cleaned(void **state)
{
	char longer[2 * TIMELINE_TEXT_MAX];
	uint32_t first;

	(void)state;
	open_as(TIMELINE_CHROME);
	first = text("a");
	assert_int_not_equal(text("b"), first);
	assert_int_equal(text("a"), first);
	assert_int_equal(text("\x1b["), text("?["));
	memset(longer, 'x', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	first = text(longer);
	longer[TIMELINE_TEXT_MAX - 1] = '\0';
	assert_int_equal(text(longer), first);
}

static void tracks_have_a_limit(void **state)
{
	const struct timeline_track one = { .kind = TIMELINE_GROUP, .parent = TIMELINE_NONE };
	uint32_t number;

	(void)state;
	open_as(TIMELINE_CHROME);
	for (unsigned i = 0; i < TIMELINE_TRACKS_MAX; i++)
		assert_int_equal(timeline_track(timeline, &one, &number), 0);
	assert_int_equal(timeline_track(timeline, &one, &number), -ENOBUFS);
}

static void texts_have_a_limit(void **state)
{
	char name[TIMELINE_TEXT_MAX];
	uint32_t number = 0, n = 0;
	int r = 0;

	(void)state;
	open_as(TIMELINE_CHROME);
	while (r == 0 && n <= TIMELINE_TEXT_BYTES / TIMELINE_TEXT_MAX + 1) {
		snprintf(name, sizeof(name), "%0*u", TIMELINE_TEXT_MAX - 1, n++);
		r = timeline_text(timeline, name, &number);
	}
	assert_int_equal(r, -ENOBUFS);
	/* Those that are there stay usable. */
	snprintf(name, sizeof(name), "%0*u", TIMELINE_TEXT_MAX - 1, 0);
	assert_int_equal(timeline_text(timeline, name, &number), 0);
	assert_int_equal(number, 0);
}

static void chrome_has_complete_events(void **state)
{
	static const uint32_t grid[3] = { 4, 2, UINT32_MAX };
	struct timeline_event event;
	uint32_t of, thread, stream, counter;

	(void)state;
	open_as(TIMELINE_CHROME);
	of = process();
	thread = track((struct timeline_track){ .kind = TIMELINE_THREAD, .parent = of, .pid = 7, .tid = 8 },
		       "t");
	stream = track((struct timeline_track){ .kind = TIMELINE_CHILD, .parent = of }, "s");
	counter = track((struct timeline_track){ .kind = TIMELINE_COUNTER, .parent = of }, "power");
	event = slice(thread, "launch", 1500, 2001);
	event.flow = 3;
	event.args_n = 4;
	event.args[0] = (struct timeline_arg){ text("grid"), TIMELINE_DIMENSIONS, timeline_dimensions(grid) };
	event.args[1] = (struct timeline_arg){ text("addr"), TIMELINE_POINTER, 255 };
	event.args[2] = (struct timeline_arg){ text("root"), TIMELINE_SIGNED, (uint64_t)-1 };
	event.args[3] = (struct timeline_arg){ text("kernel"), TIMELINE_TEXT, text("k\"") };
	assert_int_equal(timeline_add(timeline, &event), 0);
	event = slice(stream, "kernels", 1500, 1500);
	event.flow = 3;
	assert_int_equal(timeline_add(timeline, &event), 0);
	event = (struct timeline_event){
		.type = TIMELINE_VALUE, .track = counter, .begin_ns = 9000, .value = 0.5
	};
	assert_int_equal(timeline_add(timeline, &event), 0);
	assert_int_equal(writes, 0);
	assert_int_equal(timeline_flush(timeline), 0);
	assert_string_equal(
		written.data,
		"{\"ph\":\"M\",\"pid\":7,\"tid\":0,\"name\":\"process_name\","
		"\"args\":{\"name\":\"train \\\"x\\\\\"}},\n"
		"{\"ph\":\"M\",\"pid\":7,\"tid\":8,\"name\":\"thread_name\",\"args\":{\"name\":\"t\"}},\n"
		"{\"ph\":\"X\",\"pid\":7,\"tid\":8,\"ts\":1.500,\"cat\":\"cuda\",\"name\":\"launch\","
		"\"dur\":0.501,"
		"\"args\":{\"grid\":\"4x2x2097151\",\"addr\":\"0xff\",\"root\":-1,\"kernel\":\"k\\\"\"}},\n"
		"{\"ph\":\"s\",\"pid\":7,\"tid\":8,\"ts\":1.500,\"cat\":\"cuda\",\"name\":\"launch\","
		"\"id\":3},\n"
		"{\"ph\":\"M\",\"pid\":7,\"tid\":1073741826,\"name\":\"thread_name\","
		"\"args\":{\"name\":\"s\"}},\n"
		"{\"ph\":\"X\",\"pid\":7,\"tid\":1073741826,\"ts\":1.500,\"cat\":\"cuda\","
		"\"name\":\"kernels\","
		"\"dur\":0.000,\"args\":{}},\n"
		"{\"ph\":\"f\",\"pid\":7,\"tid\":1073741826,\"ts\":1.500,\"cat\":\"cuda\","
		"\"name\":\"launch\","
		"\"id\":3,\"bp\":\"e\"},\n"
		"{\"ph\":\"C\",\"pid\":7,\"tid\":0,\"ts\":9.000,\"cat\":\"cuda\",\"name\":\"power\","
		"\"args\":{\"value\":0.5}}");
}

static void what_is_forgotten_is_never_meant_again(void **state)
{
	struct timeline_event event;

	(void)state;
	open_as(TIMELINE_CHROME);
	event = slice(track((struct timeline_track){ .kind = TIMELINE_GROUP, .parent = TIMELINE_NONE }, "a"),
		      "x", 1, 2);
	assert_int_equal(timeline_add(timeline, &event), 0);
	assert_true(timeline_fill(timeline) > 0);
	assert_int_equal(timeline_forget(timeline), 0);
	assert_int_equal(writes, 1);
	assert_true(timeline_fill(timeline) <= 0);
	event = slice(track((struct timeline_track){ .kind = TIMELINE_GROUP, .parent = TIMELINE_NONE }, "b"),
		      "y", 3, 4);
	assert_int_equal(timeline_add(timeline, &event), 0);
	assert_int_equal(timeline_flush(timeline), 0);
	assert_non_null(
		strstr(written.data,
		       "\"pid\":1073741824,\"tid\":0,\"name\":\"process_name\",\"args\":{\"name\":\"a\"}"));
	assert_non_null(
		strstr(written.data,
		       "\"pid\":1073741825,\"tid\":0,\"name\":\"process_name\",\"args\":{\"name\":\"b\"}"));
}

/* A packet of deflated packets, from @at on; returns what is in it, and moves @at behind it. */
static uint8_t *inflate_block(size_t *at, size_t *ret_n)
{
	const uint8_t *data = (const uint8_t *)written.data;
	uLongf n = 4 << 20;
	uint8_t *block = malloc(n);
	size_t length[2] = { 0 };

	for (unsigned i = 0; i < 2; i++) {
		/* field 1, then 50, whose number takes two bytes */
		*at += i == 0 ? 1 : 2;
		for (unsigned shift = 0;; shift += 7) {
			uint8_t byte = data[(*at)++];

			length[i] |= (size_t)(byte & 0x7f) << shift;
			if (byte < 0x80)
				break;
		}
	}
	assert_non_null(block);
	assert_int_equal(uncompress(block, &n, data + *at, length[1]), Z_OK);
	*at += length[1];
	*ret_n = n;
	return block;
}

static bool block_has(const uint8_t *block, size_t n, const char *wanted)
{
	return memmem(block, n, wanted, strlen(wanted));
}

/* Each block opens by itself: it has all names that it uses, and none that it does not. */
static void perfetto_blocks_stand_alone(void **state)
{
	struct timeline_event event;
	uint32_t of;
	size_t at = 0, n;
	uint8_t *block;

	(void)state;
	open_as(TIMELINE_PERFETTO);
	of = process();
	event = slice(of, "first", 1, 2);
	assert_int_equal(timeline_add(timeline, &event), 0);
	assert_int_equal(timeline_flush(timeline), 0);
	event = slice(of, "second", 3, 4);
	assert_int_equal(timeline_add(timeline, &event), 0);
	event = slice(of, "third", 5, 6);
	assert_int_equal(timeline_add(timeline, &event), 0);
	assert_int_equal(timeline_flush(timeline), 0);
	block = inflate_block(&at, &n);
	assert_true(block_has(block, n, "first") && block_has(block, n, "train"));
	assert_false(block_has(block, n, "second"));
	free(block);
	block = inflate_block(&at, &n);
	assert_true(block_has(block, n, "second") && block_has(block, n, "third") &&
		    block_has(block, n, "train"));
	assert_false(block_has(block, n, "first"));
	free(block);
	assert_int_equal(at, written.len);
}

static void stacks_are_told_once_in_a_block(void **state)
{
	struct timeline_event event;
	uint32_t frames[2], again, stack, other, of;
	size_t at = 0, sizes[4];
	uint8_t *block;

	(void)state;
	open_as(TIMELINE_PERFETTO);
	of = process();
	assert_int_equal(timeline_frame(timeline, "inner_fn", "a.py", 7, true, &frames[0]), 0);
	assert_int_equal(timeline_frame(timeline, "outer_fn", "", 0, false, &frames[1]), 0);
	assert_int_equal(timeline_frame(timeline, "inner_fn", "a.py", 7, true, &again), 0);
	assert_int_equal(again, frames[0]);
	assert_int_equal(timeline_stack(timeline, frames, 2, &stack), 0);
	assert_int_equal(timeline_stack(timeline, frames, 2, &again), 0);
	assert_int_equal(timeline_stack(timeline, frames, 1, &other), 0);
	assert_int_equal(again, stack);
	assert_int_not_equal(other, stack);
	assert_int_not_equal(stack, 0);
	event = slice(of, "x", 1, 2);
	/* Blocks of one and of two events, without a stack and with one. */
	for (unsigned i = 0; i < 4; i++) {
		event.stack = i < 2 ? 0 : stack;
		assert_int_equal(timeline_add(timeline, &event), 0);
		if (i % 2 == 1)
			assert_int_equal(timeline_add(timeline, &event), 0);
		assert_int_equal(timeline_flush(timeline), 0);
	}
	for (unsigned i = 0; i < 4; i++) {
		block = inflate_block(&at, &sizes[i]);
		assert_int_equal(block_has(block, sizes[i], "inner_fn"), i >= 2);
		assert_int_equal(block_has(block, sizes[i], "a.py"), i >= 2);
		free(block);
	}
	assert_int_equal(at, written.len);
	/* The second event only names the stack: a field's number and the stack's. */
	assert_int_equal((sizes[3] - sizes[2]) - (sizes[1] - sizes[0]), 3);
	/* What is forgotten is told anew. */
	assert_int_equal(timeline_forget(timeline), 0);
	assert_true(timeline_fill(timeline) <= 0);
}

static uint32_t random_text(char *name, size_t size)
{
	static uint32_t random = 1;

	for (size_t c = 0; c < size - 1; c++)
		name[c] = (char)(' ' + ((random = random * 1103515245 + 12345) >> 16) % 95);
	name[size - 1] = '\0';
	return text(name);
}

/* The deepest stack of the longest names, where the block is nearly full. */
static void a_deep_stack_begins_another_block(void **state)
{
	enum { NEARLY_FULL = 110 };
	char name[TIMELINE_TEXT_MAX], function[TIMELINE_FRAME_TEXT];
	uint32_t frames[TIMELINE_STACK_FRAMES];
	struct timeline_event event;
	size_t at = 0, n, blocks = 0;

	(void)state;
	open_as(TIMELINE_PERFETTO);
	event = slice(process(), "x", 1, 2);
	for (unsigned i = 0; i < NEARLY_FULL; i++) {
		event.name = random_text(name, sizeof(name));
		assert_int_equal(timeline_add(timeline, &event), 0);
	}
	for (unsigned f = 0; f < TIMELINE_STACK_FRAMES; f++) {
		random_text(function, sizeof(function));
		random_text(name, sizeof(function));
		assert_int_equal(timeline_frame(timeline, function, name, f, false, &frames[f]), 0);
	}
	assert_int_equal(timeline_stack(timeline, frames, TIMELINE_STACK_FRAMES, &event.stack), 0);
	assert_int_equal(timeline_add(timeline, &event), 0);
	assert_int_equal(timeline_flush(timeline), 0);
	for (; at < written.len; blocks++) {
		free(inflate_block(&at, &n));
		assert_in_range(n, 1, (512 << 10) - 1);
	}
	assert_int_equal(blocks, 2);
}

/* Perfetto allows a packet 512 KB: what is longer is several. */
static void long_texts_are_several_blocks(void **state)
{
	enum { LONG = 64 };
	struct timeline_event event;
	char name[TIMELINE_TEXT_MAX];
	uint32_t key, random = 1;
	size_t at = 0, before = 0, n, sum = 0;

	(void)state;
	open_as(TIMELINE_PERFETTO);
	key = text("key");
	event = slice(process(), "worst", 1, UINT64_MAX);
	event.args_n = TIMELINE_ARGS;
	for (unsigned i = 0; i < LONG; i++) {
		for (unsigned arg = 0; arg < TIMELINE_ARGS; arg++) {
			/* zlib finds little in it */
			for (unsigned c = 0; c < sizeof(name) - 1; c++)
				name[c] = (char)(' ' + ((random = random * 1103515245 + 12345) >> 16) % 95);
			name[sizeof(name) - 1] = '\0';
			event.args[arg] = (struct timeline_arg){ key, TIMELINE_TEXT, text(name) };
		}
		assert_int_equal(timeline_add(timeline, &event), 0);
	}
	assert_int_equal(timeline_flush(timeline), 0);
	for (; at < written.len; before = at) {
		free(inflate_block(&at, &n));
		assert_in_range(at - before, 1, (512 << 10) - 1);
		sum += n;
	}
	assert_in_range(sum, LONG * TIMELINE_ARGS * (TIMELINE_TEXT_MAX - 1),
			2 * LONG * TIMELINE_ARGS * TIMELINE_TEXT_MAX);
}

static void full_blocks_are_written(void **state)
{
	struct timeline_event event;

	(void)state;
	open_as(TIMELINE_PERFETTO);
	event = slice(process(), "x", 1, 2);
	for (unsigned i = 0; i < TIMELINE_BLOCK - 1; i++)
		assert_int_equal(timeline_add(timeline, &event), 0);
	assert_int_equal(writes, 0);
	assert_int_equal(timeline_add(timeline, &event), 0);
	assert_int_equal(writes, 1);
}

static void a_failed_write_is_told_and_ends_it(void **state)
{
	struct timeline_event event;

	(void)state;
	open_as(TIMELINE_CHROME);
	event = slice(process(), "x", 1, 2);
	assert_int_equal(timeline_add(timeline, &event), 0);
	fails = -ENOSPC;
	assert_int_equal(timeline_flush(timeline), -ENOSPC);
	fails = 0;
	assert_int_equal(timeline_add(timeline, &event), -ENOSPC);
	assert_int_equal(timeline_flush(timeline), -ENOSPC);
	assert_int_equal(written.len, 0);
}

static void what_is_no_number_is_no_value(void **state)
{
	struct timeline_event event = { .type = TIMELINE_VALUE, .value = (double)NAN };

	(void)state;
	open_as(TIMELINE_CHROME);
	event.track = process();
	assert_int_equal(timeline_add(timeline, &event), -EINVAL);
	event.value = (double)INFINITY;
	assert_int_equal(timeline_add(timeline, &event), -EINVAL);
}

#define TEST(name_) cmocka_unit_test_teardown(name_, close_it)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(texts_are_numbered_once_and_cleaned),
		TEST(tracks_have_a_limit),
		TEST(texts_have_a_limit),
		TEST(chrome_has_complete_events),
		TEST(what_is_forgotten_is_never_meant_again),
		TEST(perfetto_blocks_stand_alone),
		TEST(stacks_are_told_once_in_a_block),
		TEST(a_deep_stack_begins_another_block),
		TEST(long_texts_are_several_blocks),
		TEST(full_blocks_are_written),
		TEST(a_failed_write_is_told_and_ends_it),
		TEST(what_is_no_number_is_no_value),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
