// SPDX-License-Identifier: Apache-2.0
/* Hangs in NCCL: for each rule a stream that shows it, and one that nearly does. */
#include <math.h>
#include <string.h>

#include "analysis/stream.h"

enum { RANKS = 4, COLLECTIVES = 200 };
#define SECOND (1000 * MS)

struct job {
	struct stream s;
	uint32_t name;
	uint64_t sequence[RANKS];
};

static void enqueue(struct job *job, int rank, uint64_t count)
{
	const struct analysis_event event = { .kind = ANALYSIS_COLLECTIVE,
					      .name = job->name,
					      .pid = 100 + (uint32_t)rank,
					      .tid = 200 + (uint32_t)rank,
					      .device = job->s.device,
					      .communicator = 0xabc,
					      .sequence = ++job->sequence[rank],
					      .count = count,
					      .rank = rank,
					      .ranks = RANKS };

	stream_put(&job->s, event, job->s.now_ns, job->s.now_ns + 10 * US);
}

/* A step of 100 ms. */
static void step(struct job *job)
{
	for (int rank = 0; rank < RANKS; rank++)
		enqueue(job, rank, 1000);
	job->s.now_ns += 100 * MS;
}

static struct job healthy(void)
{
	struct job job = { .s = stream_begin(0) };

	job.name = stream_text(&job.s, "ncclAllReduce");
	for (unsigned i = 0; i < COLLECTIVES; i++)
		step(&job);
	return job;
}

/* Seconds in which nothing comes, as it is live. */
static void wait_for(struct job *job, unsigned seconds)
{
	for (unsigned i = 0; i < seconds; i++) {
		job->s.now_ns += SECOND;
		analysis_tick(job->s.analysis, job->s.now_ns);
	}
}

/* Is it told, of this process and for this reason? */
static void hangs(const struct job *job, uint32_t pid, const char *why)
{
	const struct analysis_finding *finding = stream_finding(&job->s, FINDING_HANG);

	assert_non_null(finding);
	assert_true(finding->active);
	assert_int_equal(finding->pid, pid);
	assert_int_equal(finding->communicator, 0xabc);
	assert_string_equal(analysis_text_get(job->s.analysis, finding->subject), why);
	assert_true(finding_get(finding, "quiet") >= finding_get(finding, "threshold"));
}

static void goes_on(struct job *job)
{
	assert_null(stream_finding(&job->s, FINDING_HANG));
	stream_end(&job->s);
}

/* (a), within 15 s of 30. */
static void a_missing_rank(void **state)
{
	struct job job = healthy();

	(void)state;
	for (int rank = 0; rank < RANKS; rank++)
		if (rank != 2)
			enqueue(&job, rank, 1000);
	wait_for(&job, 29);
	assert_null(stream_finding(&job.s, FINDING_HANG));
	wait_for(&job, 15);
	hangs(&job, 102, "missing rank");
	assert_true(fabs(finding_get(stream_finding(&job.s, FINDING_HANG), "threshold") - 30) < 0.1);
	assert_true(finding_get(stream_finding(&job.s, FINDING_HANG), "rank") == 2);
	/* It comes after all. */
	enqueue(&job, 2, 1000);
	for (unsigned i = 0; i < COLLECTIVES + 100; i++)
		step(&job);
	assert_false(stream_finding(&job.s, FINDING_HANG)->active);
	stream_end(&job.s);
}

/* One rank is a collective behind all the time, and nobody stands still. */
static void a_rank_that_is_behind(void **state)
{
	struct job job = healthy();

	(void)state;
	for (int rank = 0; rank < RANKS; rank++)
		if (rank != 2)
			enqueue(&job, rank, 1000);
	for (unsigned i = 0; i < 600; i++)
		step(&job);
	goes_on(&job);
}

/* What it enqueues last is what the others had enqueued before: it is behind nevertheless. */
static void a_rank_that_stops_behind(void **state)
{
	struct job job = healthy();

	(void)state;
	for (unsigned i = 0; i < 2; i++)
		for (int rank = 0; rank < RANKS; rank++)
			if (rank != 2)
				enqueue(&job, rank, 1000);
	job.s.now_ns += 100 * MS;
	enqueue(&job, 2, 1000);
	wait_for(&job, 60);
	hangs(&job, 102, "missing rank");
	stream_end(&job.s);
}

/* 20 steps of 4 s are longer than 30 s. */
static void long_steps_are_waited_for(void **state)
{
	struct job job = healthy();

	(void)state;
	for (unsigned i = 0; i < 300; i++) {
		step(&job);
		job.s.now_ns += 4 * SECOND;
	}
	enqueue(&job, 0, 1000);
	wait_for(&job, 75);
	assert_null(stream_finding(&job.s, FINDING_HANG));
	wait_for(&job, 25);
	hangs(&job, 101, "missing rank");
	stream_end(&job.s);
}

/* (b) is told at once, and a hang when nothing goes on. */
static void operations_that_do_not_match(void **state)
{
	struct job job = healthy();
	const struct analysis_finding *mismatch;

	(void)state;
	for (int rank = 0; rank < RANKS; rank++)
		enqueue(&job, rank, rank == 3 ? 999 : 1000);
	wait_for(&job, 12);
	mismatch = stream_finding(&job.s, FINDING_COLLECTIVE_MISMATCH);
	assert_non_null(mismatch);
	assert_int_equal(mismatch->pid, 103);
	assert_true(finding_get(mismatch, "count") == 999 && finding_get(mismatch, "count_expected") == 1000);
	wait_for(&job, 33);
	hangs(&job, 100, "operations do not match");
	stream_end(&job.s);
}

/* Another count at another sequence, on all ranks, is a program's right. */
static void operations_that_match(void **state)
{
	struct job job = healthy();

	(void)state;
	for (unsigned i = 0; i < 50; i++)
		for (int rank = 0; rank < RANKS; rank++)
			enqueue(&job, rank, 1000 + i);
	wait_for(&job, 12);
	assert_null(stream_finding(&job.s, FINDING_COLLECTIVE_MISMATCH));
	wait_for(&job, 60);
	goes_on(&job);
}

static void gpu_is(struct job *job, double watts, unsigned seconds)
{
	for (unsigned i = 0; i < seconds; i++) {
		job->s.now_ns += SECOND;
		stream_counter(&job->s, ANALYSIS_COUNTER_UTILIZATION, 1);
		stream_counter(&job->s, ANALYSIS_COUNTER_POWER_LIMIT, 700);
		stream_counter(&job->s, ANALYSIS_COUNTER_POWER, watts);
		analysis_tick(job->s.analysis, job->s.now_ns);
	}
}

/* (c) */
static void a_gpu_that_spins(void **state)
{
	struct job job = healthy();

	(void)state;
	gpu_is(&job, 130, 45);
	assert_non_null(stream_finding(&job.s, FINDING_HANG));
	hangs(&job, 100, "no progress");
	stream_end(&job.s);
}

static void a_gpu_that_works(void **state)
{
	struct job job = healthy();

	(void)state;
	gpu_is(&job, 600, 120);
	goes_on(&job);
}

static void tell(struct job *job, int rank, enum analysis_kind kind)
{
	stream_put(&job->s, (struct analysis_event){ .kind = (uint8_t)kind, .pid = 100 + (uint32_t)rank },
		   job->s.now_ns, job->s.now_ns);
}

/* (d) */
static void a_rank_that_is_gone(void **state)
{
	struct job job = healthy();

	(void)state;
	tell(&job, 1, ANALYSIS_EXIT);
	for (int rank = 0; rank < RANKS; rank++)
		if (rank != 1)
			enqueue(&job, rank, 1000);
	wait_for(&job, 45);
	hangs(&job, 101, "its process has ended");
	stream_end(&job.s);
}

static void a_rank_in_the_kernel(void **state)
{
	struct job job = healthy();

	(void)state;
	for (int rank = 0; rank < RANKS; rank++)
		if (rank != 3)
			enqueue(&job, rank, 1000);
	for (unsigned i = 0; i < 45; i++) {
		wait_for(&job, 1);
		tell(&job, 3, ANALYSIS_BLOCKED);
	}
	hangs(&job, 103, "its process waits in the kernel (state D)");
	stream_end(&job.s);
}

/* It was in state D, and is no more. */
static void a_rank_that_was_in_the_kernel(void **state)
{
	struct job job = healthy();

	(void)state;
	for (int rank = 0; rank < RANKS; rank++)
		if (rank != 3)
			enqueue(&job, rank, 1000);
	tell(&job, 3, ANALYSIS_BLOCKED);
	wait_for(&job, 45);
	hangs(&job, 103, "missing rank");
	stream_end(&job.s);
}

/* A checkpoint on a slow disk: all have enqueued all, and nobody waits. */
static void in_the_kernel_with_nothing_to_wait_for(void **state)
{
	struct job job = healthy();

	(void)state;
	for (unsigned i = 0; i < 60; i++) {
		wait_for(&job, 1);
		tell(&job, 3, ANALYSIS_BLOCKED);
	}
	goes_on(&job);
}

/* The PID is another process's now, which is a rank, too, and falls behind. */
static void a_pid_that_comes_again(void **state)
{
	struct job job = healthy();

	(void)state;
	tell(&job, 1, ANALYSIS_EXIT);
	step(&job);
	for (int rank = 0; rank < RANKS; rank++)
		if (rank != 1)
			enqueue(&job, rank, 1000);
	wait_for(&job, 45);
	hangs(&job, 101, "missing rank");
	stream_end(&job.s);
}

/* A rank that is late by nearly a step: steps are as long as without it. */
static void late_ranks_make_steps_no_shorter(void **state)
{
	struct job job = { .s = stream_begin(0) };

	(void)state;
	job.name = stream_text(&job.s, "ncclAllReduce");
	for (unsigned i = 0; i < 300; i++) {
		for (int rank = 0; rank < RANKS; rank++) {
			job.s.now_ns += rank == 3 ? 3900 * MS : 0;
			enqueue(&job, rank, 1000);
		}
		job.s.now_ns += 100 * MS;
	}
	enqueue(&job, 0, 1000);
	wait_for(&job, 75);
	assert_null(stream_finding(&job.s, FINDING_HANG));
	wait_for(&job, 25);
	hangs(&job, 101, "missing rank");
	stream_end(&job.s);
}

static void begin_step(struct job *job, uint32_t pid)
{
	stream_put(&job->s, (struct analysis_event){ .kind = ANALYSIS_STEP, .pid = pid }, job->s.now_ns,
		   job->s.now_ns);
}

/* Steps of one of the ranks are waited for, those of another program are not. */
static void whose_steps_count(void **state)
{
	(void)state;
	for (int own = 0; own <= 1; own++) {
		struct job job = healthy();

		for (unsigned i = 0; i < 3; i++) {
			begin_step(&job, own ? 102 : 999);
			wait_for(&job, 10);
		}
		enqueue(&job, 0, 1000);
		wait_for(&job, 60);
		if (own)
			assert_null(stream_finding(&job.s, FINDING_HANG));
		else
			hangs(&job, 101, "missing rank");
		stream_end(&job.s);
	}
}

/* Another communicator of a rank goes on for so many seconds. */
static void goes_on_elsewhere(struct job *job, unsigned seconds)
{
	for (unsigned i = 0; i < seconds; i++) {
		const struct analysis_event event = { .kind = ANALYSIS_COLLECTIVE,
						      .name = job->name,
						      .pid = 100,
						      .communicator = 0xdef,
						      .sequence = i + 1,
						      .rank = 0,
						      .ranks = 2 };

		wait_for(job, 1);
		stream_put(&job->s, event, job->s.now_ns, job->s.now_ns);
	}
}

/* Ranks that have made another communicator do not wait in the old one; those that run ahead a little do. */
static void a_communicator_that_was_given_up(void **state)
{
	(void)state;
	for (unsigned seconds = 5; seconds <= 60; seconds += 55) {
		struct job job = healthy();

		enqueue(&job, 0, 1000);
		goes_on_elsewhere(&job, seconds);
		if (seconds > 30) {
			assert_null(stream_finding(&job.s, FINDING_HANG));
		} else {
			wait_for(&job, 45);
			hangs(&job, 101, "missing rank");
		}
		stream_end(&job.s);
	}
}

static void enqueue_of_one_process(struct job *job, int rank, int known)
{
	stream_put(&job->s,
		   (struct analysis_event){ .kind = ANALYSIS_COLLECTIVE,
					    .name = job->name,
					    .pid = 100,
					    .communicator = 0xabc,
					    .sequence = ++job->sequence[rank],
					    .rank = known,
					    .ranks = 2 },
		   job->s.now_ns, job->s.now_ns);
}

/* A process may have several ranks; a rank that becomes known is no other one. */
static void ranks_of_one_process(void **state)
{
	struct job job = { .s = stream_begin(0) };

	(void)state;
	job.name = stream_text(&job.s, "ncclAllReduce");
	enqueue_of_one_process(&job, 0, -1);
	job.s.now_ns += SECOND;
	enqueue_of_one_process(&job, 0, 0);
	wait_for(&job, 60);
	assert_null(stream_finding(&job.s, FINDING_HANG));
	for (unsigned i = 0; i < 2; i++)
		enqueue_of_one_process(&job, 1, 1);
	enqueue_of_one_process(&job, 0, 0);
	wait_for(&job, 45);
	hangs(&job, 100, "missing rank");
	assert_true(finding_get(stream_finding(&job.s, FINDING_HANG), "rank") == 1);
	stream_end(&job.s);
}

/* Who may keep the others waiting, once it is quiet. */
static void suspects(void **state)
{
	struct job job = healthy();
	struct analysis_thread threads[RANKS];

	(void)state;
	for (int rank = 0; rank < RANKS; rank++)
		if (rank != 2)
			enqueue(&job, rank, 1000);
	wait_for(&job, 9);
	assert_int_equal(analysis_suspects(job.s.analysis, 10 * SECOND, threads, RANKS), 0);
	wait_for(&job, 2);
	assert_int_equal(analysis_suspects(job.s.analysis, 10 * SECOND, threads, RANKS), 1);
	assert_true(threads[0].pid == 102 && threads[0].tid == 202);
	enqueue(&job, 2, 1000);
	wait_for(&job, 11);
	assert_int_equal(analysis_suspects(job.s.analysis, 10 * SECOND, threads, RANKS - 1), RANKS - 1);
	tell(&job, 1, ANALYSIS_EXIT);
	assert_int_equal(analysis_suspects(job.s.analysis, 10 * SECOND, threads, RANKS), RANKS - 1);
	wait_for(&job, 700);
	assert_int_equal(analysis_suspects(job.s.analysis, 10 * SECOND, threads, RANKS), 0);
	stream_end(&job.s);
}

/* Communicators of which nothing comes any more give their places. */
static void communicators_are_forgotten(void **state)
{
	struct job job = { .s = stream_begin(0) };

	(void)state;
	job.name = stream_text(&job.s, "ncclAllReduce");
	for (uint64_t i = 0; i < 300; i++) {
		const struct analysis_event event = { .kind = ANALYSIS_COLLECTIVE,
						      .pid = 50,
						      .communicator = 1000 + i,
						      .sequence = 1,
						      .rank = 0,
						      .ranks = 1 };

		stream_put(&job.s, event, job.s.now_ns, job.s.now_ns);
		job.s.now_ns += 10 * SECOND;
	}
	for (unsigned i = 0; i < COLLECTIVES; i++)
		step(&job);
	enqueue(&job, 0, 1000);
	wait_for(&job, 45);
	hangs(&job, 101, "missing rank");
	stream_end(&job.s);
}

/* Communicators of one process each, one after the other. */
static void others_begin(struct stream *s, uint32_t processes, uint32_t n, uint64_t ns, uint64_t user)
{
	for (uint32_t i = 0; i < n * processes; i++) {
		const struct analysis_event event = { .kind = ANALYSIS_COLLECTIVE,
						      .user = user,
						      .pid = 50 + i % processes,
						      .communicator = 1000 + i / processes,
						      .sequence = 1,
						      .rank = -1,
						      .begin_ns = s->now_ns,
						      .end_ns = s->now_ns };

		analysis_add(s->analysis, &event);
		if (i % processes == processes - 1)
			s->now_ns += ns;
	}
}

static void those_in_use_are_not_forgotten(void **state)
{
	struct stream s = stream_begin(0);

	(void)state;
	others_begin(&s, 1, 256, MS, 0);
	assert_int_equal(analysis_counts(s.analysis)->beyond, 0);
	others_begin(&s, 1, 257, MS, 0);
	assert_int_equal(analysis_counts(s.analysis)->beyond, 1);
	stream_end(&s);
}

static void where_ranks_wait_is_not_forgotten(void **state)
{
	struct job job = healthy();

	(void)state;
	for (int rank = 0; rank < RANKS; rank++)
		if (rank != 2)
			enqueue(&job, rank, 1000);
	others_begin(&job.s, 1, 300, 10 * SECOND, 0);
	hangs(&job, 102, "missing rank");
	stream_end(&job.s);
}

/* What a user gives back he may have again. */
static void users_have_what_was_forgotten(void **state)
{
	struct stream s = stream_begin(0);

	(void)state;
	others_begin(&s, 16, 300, 10 * SECOND, 7);
	assert_int_equal(analysis_counts(s.analysis)->beyond, 0);
	stream_end(&s);
}

/* A collective of the device's times is not one that a rank enqueues. */
static void times_of_devices_enqueue_nothing(void **state)
{
	struct job job = healthy();

	(void)state;
	for (int rank = 0; rank < RANKS; rank++)
		if (rank != 2)
			enqueue(&job, rank, 1000);
	stream_put(&job.s,
		   (struct analysis_event){ .kind = ANALYSIS_COLLECTIVE,
					    .flags = ANALYSIS_TRUE,
					    .pid = 102,
					    .communicator = 0xabc,
					    .sequence = job.sequence[0],
					    .rank = 2,
					    .ranks = RANKS },
		   job.s.now_ns, job.s.now_ns + MS);
	wait_for(&job, 45);
	hangs(&job, 102, "missing rank");
	stream_end(&job.s);
}

/* The job ends, rank by rank: nobody waits for anybody. */
static void a_job_that_ends(void **state)
{
	struct job job = healthy();

	(void)state;
	for (int rank = 1; rank < RANKS; rank++)
		tell(&job, rank, ANALYSIS_EXIT);
	wait_for(&job, 60);
	assert_null(stream_finding(&job.s, FINDING_HANG));
	tell(&job, 0, ANALYSIS_EXIT);
	wait_for(&job, 60);
	goes_on(&job);
}

static void ranks_have_a_limit(void **state)
{
	struct stream s = stream_begin(0);

	(void)state;
	for (uint32_t i = 1; i < 20000; i++)
		analysis_add(s.analysis, &(struct analysis_event){ .kind = ANALYSIS_COLLECTIVE,
								   .pid = i,
								   .communicator = 1 + i % 4,
								   .sequence = UINT64_MAX - i,
								   .rank = -1,
								   .begin_ns = s.now_ns,
								   .end_ns = s.now_ns });
	/* 4096 ranks, and what the lists' growth rounds that up to; and 1024 processes of all rules */
	assert_true(analysis_counts(s.analysis)->beyond >= 19999 - 1024 + 19999 - 2 * 4096);
	stream_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_missing_rank),
		cmocka_unit_test(a_rank_that_is_behind),
		cmocka_unit_test(a_rank_that_stops_behind),
		cmocka_unit_test(long_steps_are_waited_for),
		cmocka_unit_test(operations_that_do_not_match),
		cmocka_unit_test(operations_that_match),
		cmocka_unit_test(a_gpu_that_spins),
		cmocka_unit_test(a_gpu_that_works),
		cmocka_unit_test(a_rank_that_is_gone),
		cmocka_unit_test(a_rank_in_the_kernel),
		cmocka_unit_test(a_rank_that_was_in_the_kernel),
		cmocka_unit_test(in_the_kernel_with_nothing_to_wait_for),
		cmocka_unit_test(a_pid_that_comes_again),
		cmocka_unit_test(late_ranks_make_steps_no_shorter),
		cmocka_unit_test(whose_steps_count),
		cmocka_unit_test(a_communicator_that_was_given_up),
		cmocka_unit_test(ranks_of_one_process),
		cmocka_unit_test(suspects),
		cmocka_unit_test(communicators_are_forgotten),
		cmocka_unit_test(those_in_use_are_not_forgotten),
		cmocka_unit_test(where_ranks_wait_is_not_forgotten),
		cmocka_unit_test(users_have_what_was_forgotten),
		cmocka_unit_test(times_of_devices_enqueue_nothing),
		cmocka_unit_test(a_job_that_ends),
		cmocka_unit_test(ranks_have_a_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
