// SPDX-License-Identifier: Apache-2.0
/* Stacks of events: each once, merged by frame, and shared by users. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/private.h"
#include "analysis/stream.h"

enum { RANKS = 6 };
#define SECOND (1000 * MS)

static uint64_t stack_with(struct stream *s, uint64_t user, const char *innermost, unsigned line)
{
	const struct analysis_place places[] = {
		{ innermost, "/srv/app/model.py", line },
		{ "step", "/srv/app/train.py", 20 },
		{ "<module>", "/srv/app/train.py", 7 },
	};
	uint64_t stack;

	analysis_stack(s->analysis, user, hash_bytes(innermost, strlen(innermost)) + line, places,
		       ARRAY_SIZE(places), &stack);
	return stack;
}

static void the_same_key_has_one_number(_unused_ void **state)
{
	struct stream s = stream_begin(0);
	uint64_t first = stack_with(&s, 0, "forward", 3), other = stack_with(&s, 0, "forward", 4), known;

	assert_true(first != 0 && other != 0 && first != other);
	assert_int_equal(stack_with(&s, 5, "forward", 3), first);
	assert_true(analysis_stack_known(s.analysis, hash_bytes("forward", 7) + 3, &known));
	assert_int_equal(known, first);
	assert_false(analysis_stack_known(s.analysis, 0, &known));
	stream_end(&s);
}

static void is_frame(const struct analysis_frames *frames, uint32_t i, uint32_t depth, const char *frame,
		     const char *ranks)
{
	assert_true(i < frames->n);
	assert_int_equal(frames->list[i].depth, depth);
	assert_string_equal(frames->list[i].frame, frame);
	assert_string_equal(frames->list[i].ranks, ranks);
}

static void names_may_come_later(_unused_ void **state)
{
	struct stream s = stream_begin(0);
	const struct analysis_place before = { "[not named yet]", "", 0 }, now = { "forward", "", 0 };
	struct ranked_stack one = { .rank = -1 };
	struct analysis_frames *frames;
	uint64_t again;

	assert_int_equal(analysis_stack(s.analysis, 0, 1, &before, 1, &one.stack), 0);
	assert_int_equal(analysis_stack(s.analysis, 0, 1, &now, 1, &again), 0);
	assert_int_equal(again, one.stack);
	frames = stacks_merge(s.analysis, &one, 1);
	assert_non_null(frames);
	is_frame(frames, 0, 0, "forward", "");
	free(frames);
	stream_end(&s);
}

/* Ranks 0, 1, 2 and 4 are in one function, 3 in another; of 5 no rank is known; 6 has no stack. */
static void stacks_are_merged_by_frame(_unused_ void **state)
{
	struct stream s = stream_begin(0);
	uint64_t waits = stack_with(&s, 0, "all_reduce", 31), loads = stack_with(&s, 0, "load", 9);
	struct ranked_stack list[] = { { waits, 4, 104 }, { loads, 3, 103 }, { waits, 0, 100 },
				       { waits, 1, 101 }, { loads, -1, 77 }, { waits, 2, 102 },
				       { 999, 6, 106 } };
	struct analysis_frames *frames = stacks_merge(s.analysis, list, ARRAY_SIZE(list));
	bool first;

	assert_non_null(frames);
	assert_int_equal(frames->n, 4);
	is_frame(frames, 0, 0, "<module> (train.py:7)", "0-4, PID 77");
	is_frame(frames, 1, 1, "step (train.py:20)", "0-4, PID 77");
	first = strcmp(frames->list[2].frame, "all_reduce (model.py:31)") == 0;
	is_frame(frames, first ? 2 : 3, 2, "all_reduce (model.py:31)", "0-2, 4");
	is_frame(frames, first ? 3 : 2, 2, "load (model.py:9)", "3, PID 77");
	free(frames);
	stream_end(&s);
}

/* One that is longer is cut; so is what has too many ranks to print. */
static void what_is_long_is_cut(_unused_ void **state)
{
	struct stream s = stream_begin(0);
	struct analysis_place places[200];
	struct ranked_stack list[100];
	struct analysis_frames *frames;
	uint64_t stack;

	for (unsigned i = 0; i < ARRAY_SIZE(places); i++)
		places[i] = (struct analysis_place){ "recurse", "", 0 };
	assert_int_equal(analysis_stack(s.analysis, 0, 1, places, ARRAY_SIZE(places), &stack), 0);
	for (unsigned i = 0; i < ARRAY_SIZE(list); i++)
		list[i] = (struct ranked_stack){ stack, (int32_t)(2 * i), i };
	frames = stacks_merge(s.analysis, list, ARRAY_SIZE(list));
	assert_non_null(frames);
	assert_int_equal(frames->n, ANALYSIS_STACK_FRAMES);
	assert_non_null(strstr(frames->list[0].ranks, "0, 2, 4, "));
	assert_string_equal(frames->list[0].ranks + strlen(frames->list[0].ranks) - 3, "...");
	free(frames);
	assert_int_equal(analysis_stack(s.analysis, 0, 2, places, 0, &stack), -EINVAL);
	stream_end(&s);
}

/* One who makes up functions does not take the others' room; what is full begins anew after a while. */
static void users_share_the_table(_unused_ void **state)
{
	struct stream s = stream_begin(0);
	uint64_t refused = 0, of_other;
	unsigned line;

	for (line = 1; line < 20000; line++)
		refused += stack_with(&s, 7, "made up", line) == 0;
	assert_true(refused > 0 && analysis_counts(s.analysis)->beyond >= refused);
	of_other = stack_with(&s, 8, "forward", 1);
	assert_true(of_other != 0);
	assert_int_equal(stack_with(&s, 7, "made up", line++), 0);
	stream_add(&s, (struct analysis_event){ .kind = ANALYSIS_CALL }, 1);
	analysis_tick(s.analysis, s.now_ns + 601 * SECOND);
	assert_true(stack_with(&s, 7, "made up", line) != 0);
	assert_null(stack_numbers(s.analysis, of_other, &line));
	assert_true(stack_with(&s, 8, "forward", 1) != 0);
	stream_end(&s);
}

static void collective(struct stream *s, uint64_t user, uint32_t rank, uint64_t communicator,
		       uint64_t sequence, uint64_t stack)
{
	const struct analysis_event event = { .kind = ANALYSIS_COLLECTIVE,
					      .node = s->node,
					      .user = user,
					      .pid = 100 + rank,
					      .tid = 100 + rank,
					      .communicator = communicator,
					      .sequence = sequence,
					      .rank = (int32_t)rank,
					      .ranks = RANKS,
					      .stack = stack,
					      .begin_ns = s->now_ns,
					      .end_ns = s->now_ns + 10 * US };

	analysis_add(s->analysis, &event); /* may be beyond a limit */
}

/* Each rank's newest call says where it is; what was known when it hung stays. */
static void a_hang_has_the_stacks_of_all_ranks(_unused_ void **state)
{
	struct stream s = stream_begin(0);
	uint64_t reduces = stack_with(&s, 0, "all_reduce", 31), waits = stack_with(&s, 0, "synchronize", 32),
		 loads = stack_with(&s, 0, "load", 9);
	const struct analysis_finding *hang;
	struct analysis_event call = { .kind = ANALYSIS_SYNC, .pid = 102, .tid = 102, .stack = loads };

	for (uint64_t i = 1; i <= 100; i++, s.now_ns += 100 * MS)
		for (uint32_t rank = 0; rank < RANKS; rank++)
			if (rank != 2 || i < 100)
				collective(&s, 0, rank, 0xabc, i, reduces);
	stream_put(&s, call, s.now_ns, s.now_ns + 1);
	call.pid = call.tid = 105;
	call.stack = waits;
	stream_put(&s, call, s.now_ns, s.now_ns + 1);
	for (unsigned i = 0; i < 45; i++)
		analysis_tick(s.analysis, s.now_ns += SECOND);
	hang = stream_finding(&s, FINDING_HANG);
	assert_non_null(hang);
	assert_true(finding_get(hang, "ranks_with_stacks") == RANKS);
	assert_non_null(hang->frames);
	assert_int_equal(hang->frames->n, 5);
	is_frame(hang->frames, 0, 0, "<module> (train.py:7)", "0-5");
	for (uint32_t i = 2; i < 5; i++)
		is_frame(hang->frames, i, 2, hang->frames->list[i].frame,
			 strstr(hang->frames->list[i].frame, "all_reduce") ? "0-1, 3-4" :
			 strstr(hang->frames->list[i].frame, "load")       ? "2" :
									     "5");
	stream_end(&s);
}

/* One user's communicators are many; another's ranks are seen all the same. */
static void users_share_communicators(_unused_ void **state)
{
	struct stream s = stream_begin(0);

	for (uint64_t i = 1; i < 1000; i++)
		for (uint32_t rank = 0; rank < RANKS; rank++)
			collective(&s, 7, rank, i, 1, 0);
	assert_true(analysis_counts(s.analysis)->beyond > 0);
	for (uint64_t i = 1; i <= 200; i++, s.now_ns += 100 * MS)
		for (uint32_t rank = 0; rank < RANKS; rank++)
			if (rank != 2 || i < 200)
				collective(&s, 8, rank, 0xabcd, i, 0);
	for (unsigned i = 0; i < 45; i++)
		analysis_tick(s.analysis, s.now_ns += SECOND);
	assert_int_equal(stream_findings(&s, FINDING_HANG), 1);
	assert_int_equal(stream_finding(&s, FINDING_HANG)->communicator, 0xabcd);
	stream_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_key_has_one_number),
		cmocka_unit_test(names_may_come_later),
		cmocka_unit_test(stacks_are_merged_by_frame),
		cmocka_unit_test(what_is_long_is_cut),
		cmocka_unit_test(users_share_the_table),
		cmocka_unit_test(a_hang_has_the_stacks_of_all_ranks),
		cmocka_unit_test(users_share_communicators),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
