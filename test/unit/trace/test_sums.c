// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <string.h>

#include "trace/sums.h"

/* The kernel's maps, small, and what was called back. */
struct lab {
	struct {
		bool used;
		struct trace_stat_key key;
		struct trace_stat stat;
	} stats[16];
	struct {
		bool used;
		struct trace_error_key key;
		uint64_t count;
	} errors[64];
	struct trace_proc procs[64]; /* by tgid; incarnation 0: none */
	unsigned reads, walks, overs;
	uint64_t hits;
	struct sums sums;
};

static int read_stat(void *maps, const struct trace_stat_key *key, struct trace_stat *ret_stat)
{
	struct lab *lab = maps;

	lab->reads++;
	for (size_t i = 0; i < ARRAY_SIZE(lab->stats); i++)
		if (lab->stats[i].used && memcmp(&lab->stats[i].key, key, sizeof(*key)) == 0) {
			*ret_stat = lab->stats[i].stat;
			return 0;
		}
	return -ENOENT;
}

static int read_proc(void *maps, uint32_t tgid, struct trace_proc *ret_proc)
{
	struct lab *lab = maps;

	if (lab->procs[tgid].incarnation == 0)
		return -ENOENT;
	*ret_proc = lab->procs[tgid];
	return 0;
}

static int set_flags(void *maps, uint32_t tgid, uint64_t incarnation, uint32_t flags)
{
	struct lab *lab = maps;

	if (lab->procs[tgid].incarnation != incarnation)
		return -ENOENT;
	lab->procs[tgid].flags = flags;
	return 0;
}

static int each_stat(void *maps, void (*fn)(const struct trace_stat_key *key, void *userdata), void *userdata)
{
	struct lab *lab = maps;

	for (size_t i = 0; i < ARRAY_SIZE(lab->stats); i++)
		if (lab->stats[i].used)
			fn(&lab->stats[i].key, userdata);
	return 0;
}

static int each_error(void *maps,
		      void (*fn)(const struct trace_error_key *key, uint64_t count, void *userdata),
		      void *userdata)
{
	struct lab *lab = maps;

	lab->walks++;
	for (size_t i = 0; i < ARRAY_SIZE(lab->errors); i++)
		if (lab->errors[i].used)
			fn(&lab->errors[i].key, lab->errors[i].count, userdata);
	return 0;
}

static void delete_stat(void *maps, const struct trace_stat_key *key)
{
	struct lab *lab = maps;

	for (size_t i = 0; i < ARRAY_SIZE(lab->stats); i++)
		if (memcmp(&lab->stats[i].key, key, sizeof(*key)) == 0)
			lab->stats[i].used = false;
}

static void delete_error(void *maps, const struct trace_error_key *key)
{
	struct lab *lab = maps;

	for (size_t i = 0; i < ARRAY_SIZE(lab->errors); i++)
		if (memcmp(&lab->errors[i].key, key, sizeof(*key)) == 0)
			lab->errors[i].used = false;
}

static const struct sums_maps maps = {
	.stat = read_stat,
	.proc = read_proc,
	.set_flags = set_flags,
	.each_stat = each_stat,
	.each_error = each_error,
	.delete_stat = delete_stat,
	.delete_error = delete_error,
};

static void on_hits(_unused_ struct sums_process *process, _unused_ uint16_t call, uint64_t counted,
		    uint64_t nested, void *userdata)
{
	((struct lab *)userdata)->hits += counted + nested;
}

static void on_over(_unused_ struct sums_process *process, void *userdata)
{
	((struct lab *)userdata)->overs++;
}

static const struct sums_ops ops = { on_hits, on_over };

static int set_up(void **state)
{
	static struct lab lab;

	memset(&lab, 0, sizeof(lab));
	assert_int_equal(sums_init(&lab.sums, 3, &maps, &lab, &ops, &lab), 0);
	*state = &lab;
	return 0;
}

static int tear_down(void **state)
{
	struct lab *lab = *state;

	sums_done(&lab->sums);
	return 0;
}

static struct trace_stat *stat(struct lab *lab, uint32_t tgid, uint32_t call, uint64_t incarnation)
{
	struct trace_stat_key key = { tgid, call, incarnation };

	for (size_t i = 0; i < ARRAY_SIZE(lab->stats); i++) {
		if (lab->stats[i].used && memcmp(&lab->stats[i].key, &key, sizeof(key)) == 0)
			return &lab->stats[i].stat;
		if (!lab->stats[i].used) {
			memset(&lab->stats[i], 0, sizeof(lab->stats[i]));
			lab->stats[i].used = true;
			lab->stats[i].key = key;
			lab->procs[tgid].incarnation = incarnation;
			return &lab->stats[i].stat;
		}
	}
	fail_msg("no room");
	return NULL;
}

static void error(struct lab *lab, uint32_t tgid, uint32_t call, uint64_t incarnation, int32_t result,
		  uint64_t count)
{
	struct trace_error_key key = {
		.tgid = tgid, .call = call, .incarnation = incarnation, .result = result
	};

	for (size_t i = 0; i < ARRAY_SIZE(lab->errors); i++)
		if (!lab->errors[i].used || memcmp(&lab->errors[i].key, &key, sizeof(key)) == 0) {
			lab->errors[i].used = true;
			lab->errors[i].key = key;
			lab->errors[i].count = count;
			return;
		}
}

static struct sums_process *hear(struct lab *lab, uint32_t tgid, uint64_t incarnation, uint16_t call)
{
	struct sums_process *process;
	bool made;

	assert_int_equal(sums_process_seen(&lab->sums, tgid, incarnation, &process, &made), 0);
	assert_int_equal(sums_call_seen(&lab->sums, process, call), 0);
	return process;
}

static void differences(void **state)
{
	struct lab *lab = *state;
	struct trace_stat *s = stat(lab, 5, 3, 100);
	struct sums_process *process = hear(lab, 5, 100, 3);
	uint8_t active[TRACE_ACTIVE] = { 0 };
	struct trace_sum sum;

	s->count = 10;
	s->buckets[40] = 10;
	s->bytes = 4096;
	sums_collect(&lab->sums, active); /* nobody says that it was active */
	assert_int_equal(lab->reads, 0);
	active[5] = 1;
	sums_collect(&lab->sums, active);
	assert_int_equal(process->calls[0].count, 10);
	/* 32 bits of the kernel's go round. */
	for (int i = 0; i < 3; i++) {
		s->count += UINT32_MAX;
		s->buckets[40] += UINT32_MAX;
		sums_collect(&lab->sums, NULL);
	}
	s->nested = 7;
	s->buckets[2] = 1;
	s->buckets[311] = 2;
	sums_collect(&lab->sums, NULL);
	sums_expand(&process->calls[0], &sum);
	assert_int_equal(sum.count, 10 + 3 * (uint64_t)UINT32_MAX);
	assert_int_equal(sum.buckets[40], 10 + 3 * (uint64_t)UINT32_MAX);
	assert_int_equal(sum.buckets[2], 1);
	assert_int_equal(sum.buckets[311], 2);
	assert_int_equal(sum.bytes, 4096);
	assert_memory_equal(sum.buckets, lab->sums.totals[3]->buckets, sizeof(sum.buckets));
	assert_int_equal(lab->sums.totals[3]->count, sum.count);
	assert_int_equal(lab->hits, sum.count + 7);
}

static uint64_t code_count(const struct trace_sum *sum, int32_t code)
{
	for (int i = 0; i < TRACE_ERROR_CODES_MAX && sum->codes[i].count; i++)
		if (sum->codes[i].code == code)
			return sum->codes[i].count;
	return 0;
}

static void codes(void **state)
{
	struct lab *lab = *state;
	struct trace_stat *s = stat(lab, 5, 3, 100);
	struct sums_process *process = hear(lab, 5, 100, 3);
	struct trace_sum sum;

	s->count = 5;
	sums_collect(&lab->sums, NULL);
	assert_int_equal(lab->walks, 0);
	s->count = s->errors = 8;
	error(lab, 5, 3, 100, 35, 6);
	error(lab, 5, 3, 100, 2, 2);
	error(lab, 5, 3, 99, 1, 77); /* of an earlier one */
	sums_collect(&lab->sums, NULL);
	assert_int_equal(lab->walks, 1);
	sums_expand(&process->calls[0], &sum);
	assert_int_equal(code_count(&sum, 35), 6);
	assert_int_equal(code_count(&sum, 2), 2);
	assert_int_equal(code_count(&sum, 1), 0);
	sums_collect(&lab->sums, NULL);
	assert_int_equal(lab->walks, 1); /* they did not grow */
	/* The kernel side counts further ones together. */
	for (int32_t code = 100; code < 100 + TRACE_CODES_MAX - 2; code++)
		error(lab, 5, 3, 100, code, 10);
	s->errors += 200;
	s->other_codes = 70;
	sums_collect(&lab->sums, NULL);
	sums_expand(&process->calls[0], &sum);
	assert_int_equal(code_count(&sum, 35), 6);
	assert_int_equal(code_count(&sum, 100 + TRACE_CODES_MAX - 3), 10);
	assert_int_equal(code_count(&sum, INT32_MIN), 70);
	assert_int_equal(code_count(lab->sums.totals[3], INT32_MIN), 70);
}

static void codes_too_many(void **state)
{
	struct lab *lab = *state;
	struct trace_stat *s = stat(lab, 5, 3, 100);
	struct sums_process *process = hear(lab, 5, 100, 3);
	struct trace_sum sum;

	/* Several CPUs have each added the last one that there was room for. */
	for (int32_t code = 100; code < 100 + TRACE_CODES_MAX + 2; code++)
		error(lab, 5, 3, 100, code, 10);
	s->errors = 10 * (TRACE_CODES_MAX + 2) + 1;
	s->other_codes = 1;
	sums_collect(&lab->sums, NULL);
	sums_expand(&process->calls[0], &sum);
	assert_int_equal(code_count(&sum, 100 + TRACE_CODES_MAX - 1), 10);
	assert_int_equal(code_count(&sum, INT32_MIN), 1);
	/* One may just be counted: which are missing is known at the end. */
	sums_process_ended(&lab->sums, process);
	lab->walks = 0;
	sums_collect(&lab->sums, NULL);
	assert_int_equal(lab->walks, 1);
	sums_expand(&process->calls[0], &sum);
	assert_int_equal(code_count(&sum, INT32_MIN), 21);
	assert_int_equal(code_count(lab->sums.totals[3], INT32_MIN), 21);
	assert_int_equal(code_count(lab->sums.totals[3], 100), 10);
	for (size_t i = 0; i < ARRAY_SIZE(lab->errors); i++)
		assert_false(lab->errors[i].used);
}

static void lives(void **state)
{
	struct lab *lab = *state;
	struct trace_stat *s = stat(lab, 5, 3, 100);
	struct sums_process *process = hear(lab, 5, 100, 3), *later;
	bool made;

	s->count = 4;
	error(lab, 5, 3, 100, 1, 1);
	s->errors = 1;
	sums_process_ended(&lab->sums, process); /* read a last time, and deleted */
	assert_int_equal(process->calls[0].count, 4);
	assert_int_equal(lab->overs, 1);
	assert_false(lab->stats[0].used);
	assert_int_equal(lab->walks, 0); /* a thousand may end at once: their codes are read in one walk */
	assert_null(sums_find(&lab->sums, 5));
	sums_process_ended(&lab->sums, process);
	assert_int_equal(lab->overs, 1);
	/* The PID comes again. */
	s = stat(lab, 5, 3, 200);
	s->count = 2;
	later = hear(lab, 5, 200, 3);
	sums_collect(&lab->sums, NULL);
	assert_int_equal(lab->sums.processes_n, 2); /* the ended one is shown */
	assert_int_equal(lab->walks, 1);
	assert_false(lab->errors[0].used);
	assert_int_equal(process->calls[0].codes_n, 1);
	assert_int_equal(lab->sums.totals[3]->count, 6);
	sums_collect(&lab->sums, NULL);
	assert_int_equal(lab->sums.processes_n, 1);
	assert_ptr_equal(sums_find(&lab->sums, 5), later);
	/* What is told of the earlier one late does not count. */
	assert_int_equal(sums_process_seen(&lab->sums, 5, 100, &process, &made), -ESTALE);
	/* Exec: a newer one is heard, the end of the older was not. */
	stat(lab, 5, 3, 300);
	hear(lab, 5, 300, 3);
	assert_int_equal(lab->overs, 2);
}

static void limit(void **state)
{
	struct lab *lab = *state;
	struct sums_process *process;
	bool made;

	for (uint32_t tgid = 1; tgid <= 3; tgid++)
		hear(lab, tgid, 10 + tgid, 1);
	assert_int_equal(sums_process_seen(&lab->sums, 4, 50, &process, &made), -ENOSPC);
	assert_int_equal(lab->sums.refused, 1);
	sums_process_ended(&lab->sums, sums_find(&lab->sums, 1));
	assert_int_equal(sums_process_seen(&lab->sums, 4, 50, &process, &made), 0);
	/* Ends of those that moved. */
	sums_collect(&lab->sums, NULL);
	sums_collect(&lab->sums, NULL);
	for (uint32_t tgid = 2; tgid <= 4; tgid++)
		assert_int_equal(sums_find(&lab->sums, tgid)->tgid, tgid);
	assert_null(sums_find(&lab->sums, 1));
}

static void after_losses(void **state)
{
	struct lab *lab = *state;
	struct sums_process *gone = hear(lab, 9, 90, 1), *found;

	stat(lab, 5, 3, 100)->count = 11; /* neither PROCESS nor STAT came */
	stat(lab, 6, 4, 120)->count = 1;
	lab->procs[6].incarnation = 0; /* nor its EXIT */
	sums_reconcile(&lab->sums);
	assert_true(gone->ended); /* the kernel side does not know it */
	found = sums_find(&lab->sums, 5);
	assert_non_null(found);
	assert_true(found->no_event);
	assert_null(sums_find(&lab->sums, 6));
	sums_collect(&lab->sums, NULL);
	assert_int_equal(lab->sums.totals[3]->count, 11);
	assert_int_equal(lab->sums.totals[4]->count, 1);
}

/* A call of a process that has ended, whose event was lost or comes last, makes no second process. */
static void heard_late(void **state)
{
	struct lab *lab = *state;
	struct sums_process *process = hear(lab, 5, 100, 1), *same;
	bool made;

	stat(lab, 5, 1, 100)->count = 7;
	stat(lab, 5, 3, 100)->count = 2; /* its STAT was lost */
	stat(lab, 5, 3, 100)->errors = 2;
	error(lab, 5, 3, 100, 9, 2);
	lab->procs[5].incarnation = 0;
	sums_process_ended(&lab->sums, process);
	assert_null(sums_find(&lab->sums, 5));
	sums_reconcile(&lab->sums);
	assert_int_equal(lab->sums.processes_n, 1);
	assert_int_equal(process->calls_n, 2);
	assert_int_equal(process->calls[1].count, 2);
	sums_collect(&lab->sums, NULL);
	assert_int_equal(process->calls[1].codes[0].code, 9);
	for (size_t i = 0; i < ARRAY_SIZE(lab->stats); i++)
		assert_false(lab->stats[i].used);
	/* The PID begins again, and of the ended one something comes still. */
	hear(lab, 5, 200, 1);
	stat(lab, 5, 4, 100)->count = 1;
	assert_int_equal(sums_process_seen(&lab->sums, 5, 100, &same, &made), 0);
	assert_false(made);
	assert_ptr_equal(same, process);
	assert_int_equal(sums_call_seen(&lab->sums, same, 4), 0);
	assert_int_equal(process->calls[2].count, 1);
	assert_int_equal(lab->sums.processes_n, 2);
	sums_collect(&lab->sums, NULL);
	assert_int_equal(lab->sums.processes_n, 1);
	assert_int_equal(lab->sums.totals[1]->count, 7);
	assert_int_equal(lab->sums.totals[3]->codes[0].count, 2);
	assert_int_equal(lab->sums.totals[4]->count, 1);
	assert_int_equal(lab->overs, 1);
}

/* All events of a program were lost, and the next one in the same process has been seen. */
static void an_exec_is_lost(void **state)
{
	struct lab *lab = *state;
	struct sums_process *later, *ended;

	stat(lab, 5, 3, 100)->count = 1000;
	stat(lab, 5, 3, 100)->errors = 2;
	stat(lab, 5, 4, 100)->count = 5;
	error(lab, 5, 3, 100, 9, 2);
	error(lab, 7, 3, 70, 9, 1); /* nothing else is left of this one */
	stat(lab, 5, 3, 200)->count = 1;
	later = hear(lab, 5, 200, 3);
	assert_int_equal(lab->procs[5].incarnation, 200);
	sums_reconcile(&lab->sums);
	ended = sums_find_exact(&lab->sums, 5, 100);
	assert_non_null(ended);
	assert_true(ended->ended);
	assert_true(ended->incomplete & TRACE_INCOMPLETE_LOST);
	assert_int_equal(ended->calls_n, 2);
	assert_ptr_equal(sums_find(&lab->sums, 5), later);
	sums_collect(&lab->sums, NULL);
	assert_int_equal(lab->sums.totals[3]->count, 1001);
	assert_int_equal(lab->sums.totals[4]->count, 5);
	assert_int_equal(lab->sums.totals[3]->codes[0].count, 2);
	for (size_t i = 0; i < ARRAY_SIZE(lab->errors); i++)
		assert_false(lab->errors[i].used);
	sums_collect(&lab->sums, NULL);
	assert_null(sums_find_exact(&lab->sums, 5, 100));
	assert_int_equal(lab->sums.processes_n, 1);
	assert_int_equal(lab->sums.refused, 0);
}

static void buckets(_unused_ void **state)
{
	struct trace_sum sum = { 0 };
	uint64_t last = 0;

	assert_int_equal(sums_bucket_low(0), 0);
	assert_int_equal(sums_bucket_low(TRACE_BUCKETS_FINE), UINT64_C(4096000000001));
	for (unsigned i = 1; i < TRACE_BUCKETS; i++) {
		uint64_t low = sums_bucket_low(i), width = sums_bucket_end(i) - low;

		assert_int_equal(sums_bucket_end(i - 1), low);
		assert_true(low >= last);
		/* An eighth at most, or a nanosecond. */
		assert_true(i >= TRACE_BUCKETS_FINE || width <= 1 + low / 8);
		last = low;
	}
	assert_true(trace_sum_quantile(&sum, 0.5) == 0);
	sum.total_ns = 1000000;
	sum.buckets[latency_bucket(3)] = 1;
	assert_true(trace_sum_quantile(&sum, 0.5) == 3);
	sum.buckets[latency_bucket(3)] = 50;
	sum.buckets[latency_bucket(270)] = 45;
	sum.buckets[latency_bucket(8500)] = 5;
	assert_true(trace_sum_quantile(&sum, 0.50) == 3);
	assert_in_range((uint64_t)trace_sum_quantile(&sum, 0.51), 270 * 7 / 8, 270 * 9 / 8);
	assert_in_range((uint64_t)trace_sum_quantile(&sum, 0.95), 270 * 7 / 8, 270 * 9 / 8);
	assert_in_range((uint64_t)trace_sum_quantile(&sum, 0.96), 8500 * 7 / 8, 8500 * 9 / 8);
	sum.total_ns = 7900; /* no call took longer than all together */
	assert_true(trace_sum_quantile(&sum, 0.96) == 7900);
	sum.total_ns = UINT64_MAX;
	sum.buckets[latency_bucket(UINT64_MAX)] = 100;
	assert_true(trace_sum_quantile(&sum, 0.96) > 1e19);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(differences, set_up, tear_down),
		cmocka_unit_test_setup_teardown(codes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(codes_too_many, set_up, tear_down),
		cmocka_unit_test_setup_teardown(lives, set_up, tear_down),
		cmocka_unit_test_setup_teardown(limit, set_up, tear_down),
		cmocka_unit_test_setup_teardown(after_losses, set_up, tear_down),
		cmocka_unit_test_setup_teardown(heard_late, set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_exec_is_lost, set_up, tear_down),
		cmocka_unit_test(buckets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
