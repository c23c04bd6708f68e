// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "fixture.h"
#include "view/view.h"

static char *stats(const struct snapshot *s, unsigned version, uint64_t *seq, unsigned *truncated)
{
	struct strbuf out;
	char *text;

	strbuf_init(&out, 0);
	assert_int_equal(view_atop_stats(s, version, *seq, &out, seq, truncated), 0);
	assert_true(out.len <= ATOP_ANSWER_MAX);
	text = strbuf_take(&out);
	assert_non_null(text);
	return text;
}

static char *types(const struct snapshot *s, unsigned version)
{
	struct strbuf out;
	char *text;

	strbuf_init(&out, 0);
	assert_int_equal(view_atop_types(s, version, &out), 0);
	assert_true(out.len <= ATOP_ANSWER_MAX);
	text = strbuf_take(&out);
	assert_non_null(text);
	return text;
}

static unsigned count(const char *text, const char *what)
{
	unsigned n = 0;

	while ((text = strstr(text, what))) {
		n++;
		text += strlen(what);
	}
	return n;
}

/* Reads as atop 2.8.1 does (version 1) and 2.13 (version 2): so many values, of these types. */
static void read_process(const char *at, unsigned version)
{
	long long v[5];
	char state, type;
	int busy, membusy;
	long pid;

	if (version == 1)
		assert_int_equal(sscanf(at, "%c %ld %d %d %lld %lld %lld %lld", &state, &pid, &busy, &membusy,
					&v[0], &v[1], &v[2], &v[3]),
				 8);
	else
		assert_int_equal(sscanf(at, "%c %ld %c %lld %lld %lld %lld %lld", &state, &pid, &type, &v[0],
					&v[1], &v[2], &v[3], &v[4]),
				 8);
	assert_true(state == 'A' || state == 'E');
	assert_true(version == 1 || strchr("CGU", type));
}

static void atop_can_read_it(void **state)
{
	struct snapshot *s = fixture_small();

	(void)state;
	for (unsigned version = 1; version <= 2; version++) {
		uint64_t seq = 0;
		unsigned truncated;
		_cleanup_free_ char *text = stats(s, version, &seq, &truncated);
		const char *at = text;
		unsigned gpus = 0, processes = 0;

		for (; *at; at++) {
			long long v[6];
			int now[2];

			if (*at == '@') {
				gpus++;
				assert_int_equal(sscanf(at + 1, "%d %d %lld %lld %lld %lld %lld %lld",
							&now[0], &now[1], &v[0], &v[1], &v[2], &v[3], &v[4],
							&v[5]),
						 8);
			} else if (*at == '#') {
				processes++;
				read_process(at + 1, version);
			}
		}
		assert_int_equal(gpus, 4);
		assert_int_equal(processes, 7);
		assert_int_equal(truncated, 0);
		assert_int_equal(seq, 2);
	}
	fixture_free(s);
}

/* Position is all that ties statistics to types: as many, and in the same order. */
static void types_go_with_stats(void **state)
{
	struct snapshot *s = fixture_small();
	_cleanup_free_ char *one = types(s, 1), *two = types(s, 2), *zero = types(s, 0), *many = types(s, 99);

	(void)state;
	assert_int_equal(strncmp(one, "4@00000000:1B:00.0 NVIDIA_H100_80GB_HBM3_simulated 3@", 53), 0);
	assert_int_equal(count(one, "@"), 4);
	assert_int_equal(count(one, " "), 8); /* two in each: no name brings its own */
	assert_string_equal(zero, two);
	assert_string_equal(many, two);
	fixture_free(s);
}

/* A process that ended stands under the GPU it ran on, MIG or not, and is delivered once. */
static void ended_processes(void **state)
{
	struct snapshot *s = fixture_small();
	uint64_t seq = 0;
	unsigned truncated;
	_cleanup_free_ char *first = stats(s, 2, &seq, &truncated), *second = stats(s, 2, &seq, &truncated);
	const char *gpu2 = strstr(first, "@-1 -1 83886080 44564480 0 ");

	(void)state;
	assert_int_equal(count(first, "#E "), 2);
	assert_int_equal(count(second, "#E "), 0);
	assert_non_null(gpu2);
	assert_true(strstr(first, "#E 900 ") < gpu2);
	assert_true(strstr(first, "#E 901 ") > gpu2 && strstr(first, "#A 2001 ") > gpu2);
	fixture_free(s);
}

static void undelivered_is_minus_one(void **state)
{
	struct snapshot *s = fixture_small();
	uint64_t seq = 2;
	unsigned truncated;
	_cleanup_free_ char *text = stats(s, 2, &seq, &truncated);

	(void)state;
	/* Stale: the sums stay, or atop would see them fall and take the rest for work. */
	assert_int_equal(count(text, "@-1 -1 83886080 44564480 86400 4924800 2505600 "), 1);
	/* MIG: never delivered, so the sums are not either. */
	assert_int_equal(count(text, "@-1 -1 83886080 44564480 0 -1 -1 "), 1);
	/* Lost. */
	assert_int_equal(count(text, "@-1 -1 0 0 86400 4924800 2505600 "), 1);
	assert_int_equal(count(text, "#A 1004 C -1 -1 262144 "), 1);
	fixture_free(s);
}

/*
 * Version 1: lifetime average in percent; version 2: percent-seconds. atop divides the second by time or
 * samples.
 */
static void busy_figures(void **state)
{
	struct snapshot *s = fixture_small();
	uint64_t seq = 2;
	unsigned truncated;
	_cleanup_free_ char *one = stats(s, 1, &seq, &truncated), *two = stats(s, 2, &seq, &truncated);

	(void)state;
	assert_int_equal(count(one, "#A 1001 25 8 0 8388608 629145600 600"), 1);
	assert_int_equal(count(two, "#A 1001 C 15000 4500 8388608 629145600 600"), 1);
	fixture_free(s);
}

static void busiest_come_first(void **state)
{
	struct snapshot *s = fixture_busy(1000, 0);
	uint64_t seq = 0;
	unsigned truncated;
	_cleanup_free_ char *text = stats(s, 2, &seq, &truncated);
	unsigned shown = count(text, "#A ");

	(void)state;
	assert_true(shown > 100);
	assert_int_equal(shown + truncated, 1000);
	assert_non_null(strstr(text, "#A 100999 ")); /* the busiest */
	assert_null(strstr(text, "#A 100000 ")); /* the idlest */
	assert_true(strlen(text) > ATOP_ANSWER_MAX - 100);
	fixture_free(s);
}

/* However many ended: none is lost, none comes twice, and live ones still have room. */
static void ended_come_in_batches(void **state)
{
	struct snapshot *s = fixture_busy(1000, 700);
	uint64_t seq = 0;
	unsigned truncated, delivered = 0, answers = 0;

	(void)state;
	while (seq < 700) {
		uint64_t before = seq;
		_cleanup_free_ char *text = stats(s, 1, &seq, &truncated);
		unsigned n = count(text, "#E ");
		char first[32];

		assert_true(n > 0 && n == seq - before);
		assert_true(count(text, "#A ") > 50);
		snprintf(first, sizeof(first), "#E %u ", (unsigned)(5000 + before));
		assert_int_equal(count(text, first), 1);
		delivered += n;
		answers++;
		assert_true(answers < 100);
	}
	assert_int_equal(delivered, 700);
	fixture_free(s);
}

/* What live ones do not need, ended ones may use. */
static void ended_use_what_is_free(void **state)
{
	struct snapshot *s = fixture_busy(1, 700);
	uint64_t seq = 0;
	unsigned truncated;
	_cleanup_free_ char *text = stats(s, 1, &seq, &truncated);

	(void)state;
	assert_true(strlen(text) > ATOP_ANSWER_MAX - 100);
	assert_int_equal(count(text, "#A "), 1);
	assert_int_equal(truncated, 0);
	fixture_free(s);
}

static void no_gpu(void **state)
{
	struct snapshot *s = fixture_empty();
	uint64_t seq = 0;
	unsigned truncated;
	_cleanup_free_ char *t = types(s, 1), *text = stats(s, 1, &seq, &truncated);

	(void)state;
	assert_string_equal(t, "0");
	assert_string_equal(text, "");
	fixture_free(s);
}

/* atop has room for 32 GPUs and no more. */
static void too_many_gpus(void **state)
{
	struct snapshot *s = fixture_busy(0, 0);
	struct entity *gpus = calloc(40, sizeof(*gpus));
	uint64_t seq = 0;
	unsigned truncated;
	_cleanup_free_ char *t = NULL, *text = NULL;

	(void)state;
	assert_non_null(gpus);
	for (int i = 0; i < 40; i++) {
		gpus[i] = s->entities[0];
		gpus[i].id.index = (uint32_t)i;
		gpus[i].percent_sum[0] = gpus[i].percent_sum[1] = gpus[i].memory_kib_sum = 1e18;
	}
	free(s->entities);
	s->entities = gpus;
	s->entities_n = 40;
	t = types(s, 2);
	text = stats(s, 2, &seq, &truncated);
	assert_int_equal(strncmp(t, "32@", 3), 0);
	assert_int_equal(count(t, "@"), 32);
	assert_int_equal(count(text, "@"), 32);
	fixture_free(s);
}

static void layout_follows_the_gpus(void **state)
{
	struct snapshot *s = fixture_small(), *empty = fixture_empty();
	uint64_t before = view_atop_layout(s);

	(void)state;
	s->entities[0].id.v[SLOT_POWER] = 1;
	s->entities[0].present = false;
	assert_true(view_atop_layout(s) == before);
	assert_true(view_atop_layout(empty) != before);
	strcpy(s->entities[1].id.uuid, "GPU-another");
	assert_true(view_atop_layout(s) != before);
	fixture_free(empty);
	fixture_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(atop_can_read_it),
		cmocka_unit_test(types_go_with_stats),
		cmocka_unit_test(ended_processes),
		cmocka_unit_test(undelivered_is_minus_one),
		cmocka_unit_test(busy_figures),
		cmocka_unit_test(busiest_come_first),
		cmocka_unit_test(ended_come_in_batches),
		cmocka_unit_test(ended_use_what_is_free),
		cmocka_unit_test(no_gpu),
		cmocka_unit_test(too_many_gpus),
		cmocka_unit_test(layout_follows_the_gpus),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
