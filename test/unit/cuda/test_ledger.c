// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "cuda/private.h"
#include "scene.h"

enum { MIB = 1 << 20 };

static struct cuda_stats stats_of(const struct scene *s)
{
	struct cuda_stats stats;

	cuda_stats(s->cuda, &stats);
	return stats;
}

static void kinds_and_peak(void **state)
{
	struct scene *s = *state;

	for (unsigned kind = 0; kind < TRACE_MEMORIES; kind++)
		allocate(s, kind, 0x1000 + kind, (uint64_t)(kind + 1) * MIB);
	window(s);
	for (unsigned kind = 0; kind < TRACE_MEMORIES; kind++)
		assert_value(s, UUID0, TRACED_LIVE_DEVICE + kind, (kind + 1.0) * MIB);
	/* All but pinned memory: kinds 3 and 4. */
	assert_value(s, UUID0, TRACED_PEAK, (1 + 2 + 3 + 6 + 7) * (double)MIB);
	for (unsigned kind = 0; kind < TRACE_MEMORIES; kind++)
		release(s, kind, 0x1000 + kind);
	window(s);
	for (unsigned kind = 0; kind < TRACE_MEMORIES; kind++) {
		assert_value(s, UUID0, TRACED_LIVE_DEVICE + kind, 0);
		assert_value(s, UUID0, TRACED_WINDOW_DEVICE + kind, (kind + 1.0) * MIB);
	}
	assert_value(s, UUID0, TRACED_PEAK, 19.0 * MIB);
	window(s);
	for (unsigned kind = 0; kind < TRACE_MEMORIES; kind++)
		assert_value(s, UUID0, TRACED_WINDOW_DEVICE + kind, 0);
	assert_value(s, UUID0, TRACED_ALLOCATIONS, 7);
	assert_value(s, UUID0, TRACED_FREES, 7);
}

/* The scene's devices have 1 GiB: what its processes had at most, at different times, is more than that. */
static void peaks_of_processes_fit_the_device(void **state)
{
	const uint8_t estimated = PRESENCE_PRESENT | PRESENCE_ESTIMATED;
	struct scene *s = *state;

	scene_process(s, PID + 1, 2);
	for (uint32_t i = 0; i < 2; i++) {
		s->tgid = PID + i;
		allocate(s, TRACE_MEMORY_DEVICE, 0x1000, (i + 1) * 512 * (uint64_t)MIB);
		allocate(s, TRACE_MEMORY_HOST, 0x2000, 4096 * (uint64_t)MIB);
		release(s, TRACE_MEMORY_DEVICE, 0x1000);
	}
	window(s);
	for (uint32_t i = 0; i < 2; i++) {
		const struct traced_device *d = shown(s, PID + i, UUID0);

		assert_near(d->v[TRACED_WINDOW_DEVICE], (i + 1) * 512.0 * MIB / 1.5, 1);
		assert_int_equal(d->p[TRACED_WINDOW_DEVICE], estimated);
		assert_near(d->v[TRACED_WINDOW_HOST], 4096.0 * MIB, 0);
		assert_int_equal(d->p[TRACED_WINDOW_HOST], PRESENCE_PRESENT);
		assert_near(d->v[TRACED_PEAK], (i + 1) * 512.0 * MIB, 0);
	}
	assert_near(device_total(s, UUID0)->v[TRACED_WINDOW_DEVICE], 1024.0 * MIB, 1);
	assert_int_equal(device_total(s, UUID0)->p[TRACED_WINDOW_DEVICE], estimated);
	/* Never both at once. */
	assert_near(device_total(s, UUID0)->v[TRACED_PEAK], 1024.0 * MIB, 0);
	assert_int_equal(device_total(s, UUID0)->p[TRACED_PEAK], PRESENCE_PRESENT);
	window(s);
	assert_near(device_total(s, UUID0)->v[TRACED_WINDOW_DEVICE], 0, 0);
	assert_int_equal(device_total(s, UUID0)->p[TRACED_WINDOW_DEVICE], PRESENCE_PRESENT);
}

static void what_is_never_freed_is_told_by_size(void **state)
{
	struct scene *s = *state;
	const struct traced_process *p;

	for (uint64_t i = 0; i < 5; i++)
		allocate(s, TRACE_MEMORY_DEVICE, 0x1000 + i, i < 3 ? MIB : 2 * MIB);
	allocate(s, TRACE_MEMORY_HOST, 0x2000, 512);
	allocate(s, TRACE_MEMORY_REGISTERED, 0x3000, MIB);
	release(s, TRACE_MEMORY_DEVICE, 0x1000);
	window(s);
	assert_int_equal(s->view->processes[0].leaked_allocations, 0);
	scene_end(s, TRACE_EVENT_EXIT);
	window(s);
	p = &s->view->processes[0];
	assert_true(p->exited);
	assert_int_equal(p->leaked_p, PRESENCE_PRESENT);
	assert_int_equal(p->leaked_allocations, 5);
	assert_int_equal(p->leaked_bytes, 6 * MIB + 512);
	assert_int_equal(p->leaked_n, 3);
	assert_int_equal(p->leaked[0].bytes, 2 * MIB);
	assert_int_equal(p->leaked[0].allocations, 2);
	assert_int_equal(p->leaked[1].bytes, MIB);
	assert_int_equal(p->leaked[1].allocations, 2);
	assert_int_equal(p->leaked[2].bytes, 512);
	assert_near(device_total(s, UUID0)->v[TRACED_LEAKED_ALLOCATIONS], 5, 0);
	assert_near(device_total(s, UUID0)->v[TRACED_LEAKED_BYTES], 6.0 * MIB + 512, 0);
}

/* More sizes than are told apart: the sums stay right. */
static void many_sizes_are_never_freed(void **state)
{
	struct scene *s = *state;
	const struct traced_process *p;

	for (uint64_t i = 1; i <= 1000; i++)
		allocate(s, TRACE_MEMORY_DEVICE, 0x1000 + i, i);
	scene_end(s, TRACE_EVENT_EXIT);
	window(s);
	p = &s->view->processes[0];
	assert_int_equal(p->leaked_allocations, 1000);
	assert_int_equal(p->leaked_bytes, 500500);
	assert_int_equal(p->leaked_n, TRACED_SIZES_MAX);
	for (uint32_t i = 0; i < p->leaked_n; i++)
		assert_int_equal(p->leaked[i].allocations, 1);
}

/* Nothing is said of a process whose frees were not seen. */
static void unseen_frees_are_no_leaks(void **state)
{
	struct scene *s = *state;

	allocate(s, TRACE_MEMORY_DEVICE, 0x1000, MIB);
	cuda_mark(s->cuda, PID, 1, TRACED_INCOMPLETE_GIVEN_UP);
	scene_end(s, TRACE_EVENT_EXIT);
	window(s);
	assert_int_equal(s->view->processes[0].leaked_p, PRESENCE_ABSENT);
}

static void frees_from_other_threads_and_devices(void **state)
{
	struct scene *s = *state;

	allocate(s, TRACE_MEMORY_DEVICE, 0x1000, MIB);
	s->tid = 2;
	CALL(s, DEVICE_SET, .kind = 1);
	release(s, TRACE_MEMORY_DEVICE, 0x1000);
	window(s);
	assert_value(s, UUID0, TRACED_LIVE_DEVICE, 0);
	assert_int_equal(stats_of(s).unknown_frees, 0);
	/* cudaFree() of stream-ordered memory. */
	allocate(s, TRACE_MEMORY_ASYNC, 0x2000, MIB);
	release(s, TRACE_MEMORY_DEVICE, 0x2000);
	window(s);
	assert_value(s, UUID1, TRACED_LIVE_ASYNC, 0);
}

static void failures_and_nothings(void **state)
{
	struct scene *s = *state;

	s->result = 2;
	allocate(s, TRACE_MEMORY_DEVICE, 0x1000, MIB);
	allocate(s, TRACE_MEMORY_DEVICE, 0x2000, MIB);
	s->result = 1;
	release(s, TRACE_MEMORY_DEVICE, 0x2000);
	release(s, TRACE_MEMORY_DEVICE, 0);
	release(s, TRACE_MEMORY_DEVICE, 0x9999);
	release(s, 99, 0x9999);
	window(s);
	assert_value(s, UUID0, TRACED_LIVE_DEVICE, MIB);
	assert_value(s, UUID0, TRACED_ALLOCATIONS, 1);
	assert_value(s, UUID0, TRACED_ALLOCATION_FAILURES, 1);
	assert_value(s, UUID0, TRACED_ERRORS, 2);
	assert_value(s, UUID0, TRACED_FREES, 1);
	assert_int_equal(stats_of(s).unknown_frees, 1);
}

/* A free that was lost: the address tells. */
static void an_address_given_out_again(void **state)
{
	struct scene *s = *state;

	allocate(s, TRACE_MEMORY_DEVICE, 0x1000, MIB);
	allocate(s, TRACE_MEMORY_DEVICE, 0x1000, 3 * MIB);
	window(s);
	assert_value(s, UUID0, TRACED_LIVE_DEVICE, 3.0 * MIB);
	assert_int_equal(stats_of(s).replaced_allocations, 1);
}

static void physical_memory_lives_while_it_is_mapped(void **state)
{
	struct scene *s = *state;

	allocate(s, TRACE_MEMORY_PHYSICAL, 7, 2 * MIB);
	CALL(s, MAP, .addr = 0x700000, .size = MIB, .handle = 7);
	CALL(s, MAP, .addr = 0x800000, .size = MIB, .handle = 7);
	window(s);
	assert_value(s, UUID0, TRACED_LIVE_PHYSICAL, 2.0 * MIB);
	release(s, TRACE_MEMORY_PHYSICAL, 7);
	window(s);
	assert_value(s, UUID0, TRACED_LIVE_PHYSICAL, 2.0 * MIB);
	CALL(s, UNMAP, .addr = 0x700000, .size = MIB);
	window(s);
	assert_value(s, UUID0, TRACED_LIVE_PHYSICAL, 2.0 * MIB);
	CALL(s, UNMAP, .addr = 0x800000, .size = MIB);
	window(s);
	assert_value(s, UUID0, TRACED_LIVE_PHYSICAL, 0);
	/* Neighbours end in one call; unmapping first changes no bytes. */
	for (uint64_t i = 0; i < 4; i++) {
		allocate(s, TRACE_MEMORY_PHYSICAL, 10 + i, MIB);
		CALL(s, MAP, .addr = i * MIB, .size = MIB, .handle = 10 + i);
	}
	CALL(s, UNMAP, .addr = 0, .size = 4 * MIB);
	window(s);
	assert_value(s, UUID0, TRACED_LIVE_PHYSICAL, 4.0 * MIB);
	for (uint64_t i = 0; i < 4; i++)
		release(s, TRACE_MEMORY_PHYSICAL, 10 + i);
	window(s);
	assert_value(s, UUID0, TRACED_LIVE_PHYSICAL, 0);
}

static void contexts_take_theirs_along(void **state)
{
	struct scene *s = *state;

	s->flags = 0;
	CALL(s, CONTEXT_CREATE, .handle = 0xc0, .kind = 0);
	allocate(s, TRACE_MEMORY_DEVICE, 0x1000, MIB);
	allocate(s, TRACE_MEMORY_ASYNC, 0x2000, MIB);
	allocate(s, TRACE_MEMORY_PHYSICAL, 0x3000, MIB);
	CALL(s, CONTEXT_CREATE, .handle = 0xc1, .kind = 0);
	allocate(s, TRACE_MEMORY_DEVICE, 0x4000, MIB);
	CALL(s, CONTEXT_DESTROY, .handle = 0xc0);
	window(s);
	assert_value(s, UUID0, TRACED_LIVE_DEVICE, MIB);
	assert_value(s, UUID0, TRACED_LIVE_ASYNC, MIB);
	assert_value(s, UUID0, TRACED_LIVE_PHYSICAL, MIB);
	assert_int_equal(stats_of(s).implicit_frees, 1);
}

static void a_reset_takes_pools_along(void **state)
{
	struct scene *s = *state;

	allocate(s, TRACE_MEMORY_DEVICE, 0x1000, MIB);
	allocate(s, TRACE_MEMORY_ASYNC, 0x2000, MIB);
	CALL(s, DEVICE_SET, .kind = 1);
	allocate(s, TRACE_MEMORY_DEVICE, 0x3000, MIB);
	CALL(s, DEVICE_SET, .kind = 0);
	CALL(s, DEVICE_RESET, .size = 0);
	window(s);
	assert_value(s, UUID0, TRACED_LIVE_DEVICE, 0);
	assert_value(s, UUID0, TRACED_LIVE_ASYNC, 0);
	assert_value(s, UUID1, TRACED_LIVE_DEVICE, MIB);
}

static void arrays_of_unknown_size(void **state)
{
	struct scene *s = *state;

	allocate(s, TRACE_MEMORY_DEVICE, 0x1000, MIB);
	allocate(s, TRACE_MEMORY_ARRAY, 0x2000, 0);
	window(s);
	assert_int_equal(shown(s, PID, UUID0)->p[TRACED_LIVE_ARRAY], PRESENCE_ABSENT);
	assert_int_equal(shown(s, PID, UUID0)->p[TRACED_PEAK], PRESENCE_PRESENT | PRESENCE_ESTIMATED);
	release(s, TRACE_MEMORY_ARRAY, 0x2000);
	window(s);
	assert_value(s, UUID0, TRACED_LIVE_ARRAY, 0);
}

static void beyond_the_limit(void **state)
{
	struct cuda_limits limits = { .allocations = 100 };
	struct scene *s = scene_new(&limits);

	(void)state;
	for (uint64_t i = 1; i <= 150; i++)
		allocate(s, TRACE_MEMORY_DEVICE, i, MIB);
	window(s);
	assert_value(s, UUID0, TRACED_LIVE_DEVICE, 100.0 * MIB);
	assert_int_equal(shown(s, PID, UUID0)->p[TRACED_LIVE_DEVICE], PRESENCE_PRESENT | PRESENCE_ESTIMATED);
	assert_int_equal(stats_of(s).overflow[CUDA_LIMIT_ALLOCATIONS], 50);
	for (uint64_t i = 1; i <= 150; i++)
		release(s, TRACE_MEMORY_DEVICE, i);
	window(s);
	assert_value(s, UUID0, TRACED_LIVE_DEVICE, 0);
	assert_int_equal(stats_of(s).unknown_frees, 50);
	allocate(s, TRACE_MEMORY_DEVICE, 1, UINT64_MAX); /* cannot be */
	window(s);
	assert_value(s, UUID0, TRACED_LIVE_DEVICE, 0);
	scene_free(s);
}

/* What was needed once is given back. */
static void memory_is_given_back(void **state)
{
	struct scene *s = *state;
	const struct hashmap *map = &s->cuda->processes[0]->memory[SPACE_ADDRESS];

	for (uint64_t i = 1; i <= 100000; i++)
		allocate(s, TRACE_MEMORY_DEVICE, i, 1);
	assert_true(map->mask > 100000);
	for (uint64_t i = 2; i <= 100000; i++)
		release(s, TRACE_MEMORY_DEVICE, i);
	assert_true(map->mask < 1000);
	window(s);
	assert_value(s, UUID0, TRACED_LIVE_DEVICE, 1);
	release(s, TRACE_MEMORY_DEVICE, 1);
	assert_int_equal(stats_of(s).unknown_frees, 0);
}

/* By the five threads that there are: there are no others. */
static uint64_t held(const struct scene *s, uint32_t tgid)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < s->view->processes_n; i++) {
		const struct traced_process *p = &s->view->processes[i];

		if (p->id.pid != tgid)
			continue;
		assert_int_equal(p->other_threads_bytes, 0);
		for (uint32_t k = 0; k < p->threads_n; k++)
			sum += p->threads[k].bytes;
	}
	return sum;
}

/* Whichever thread frees it, it was the thread's that allocated it; pinned memory is on no device. */
static void threads_hold_what_they_allocated(void **state)
{
	struct scene *s = *state;
	const struct traced_process *p;

	for (uint32_t tid = 1; tid <= 10; tid++) {
		s->tid = tid;
		allocate(s, TRACE_MEMORY_DEVICE, 0x1000 + tid, tid * MIB);
		allocate(s, TRACE_MEMORY_HOST, 0x2000 + tid, 100 * MIB);
	}
	allocate(s, TRACE_MEMORY_ASYNC, 0x3000, MIB); /* 10's as well */
	window(s);
	p = &s->view->processes[0];
	assert_int_equal(p->threads_p, PRESENCE_PRESENT);
	assert_int_equal(p->threads_n, TRACED_THREADS_MAX);
	assert_int_equal(p->threads[0].bytes, 11 * MIB);
	for (uint32_t i = 0; i < TRACED_THREADS_MAX; i++)
		assert_int_equal(p->threads[i].tid, 10 - i);
	assert_int_equal(p->other_threads_bytes, 3 * MIB); /* 1's and 2's */
	s->tid = 1;
	for (uint32_t tid = 2; tid <= 10; tid++)
		release(s, TRACE_MEMORY_DEVICE, 0x1000 + tid);
	window(s);
	p = &s->view->processes[0];
	assert_int_equal(p->threads_n, 2);
	assert_int_equal(p->threads[0].tid, 1); /* as much as 10, which comes later */
	assert_int_equal(p->threads[1].tid, 10);
	assert_int_equal(p->threads[1].bytes, MIB);
	assert_int_equal(p->other_threads_bytes, 0);
	cuda_mark(s->cuda, PID, 1, TRACED_INCOMPLETE_LOST);
	window(s);
	assert_int_equal(s->view->processes[0].threads_p, PRESENCE_PRESENT | PRESENCE_ESTIMATED);
	cuda_mark(s->cuda, PID, 1, TRACED_INCOMPLETE_LATE);
	window(s);
	assert_int_equal(s->view->processes[0].threads_p, PRESENCE_ABSENT);
}

/* Beyond the limit only the sum is kept; a thread that holds nothing makes room. */
static void more_threads_than_there_is_room_for(void **state)
{
	struct cuda_limits limits = { .threads = 4 };
	struct scene *s = scene_new(&limits);

	(void)state;
	for (uint32_t round = 0; round < 2; round++) {
		uint64_t before = stats_of(s).overflow[CUDA_LIMIT_THREADS];

		for (uint32_t tid = 1; tid <= 6; tid++) {
			s->tid = 10 * round + tid;
			allocate(s, TRACE_MEMORY_DEVICE, 0x1000 + tid, tid * MIB);
		}
		assert_true(stats_of(s).overflow[CUDA_LIMIT_THREADS] >= before + 2);
		window(s);
		assert_int_equal(s->view->processes[0].threads_n, 4);
		assert_int_equal(s->view->processes[0].threads[0].tid, 10 * round + 4);
		assert_int_equal(s->view->processes[0].other_threads_bytes, (5 + 6) * MIB);
		for (uint32_t tid = 1; tid <= 6; tid++)
			release(s, TRACE_MEMORY_DEVICE, 0x1000 + tid);
	}
	assert_int_equal(s->cuda->processes[0]->holders.used, 0);
	assert_int_equal(s->cuda->processes[0]->holder_map.count, 0);
	scene_free(s);
}

/* Random calls of three processes against a table of all addresses. */
static void against_brute_force(void **state)
{
	enum { ADDRESSES = 64, PROCESSES = 3, STEPS = 200000 };
	static uint64_t size[PROCESSES][ADDRESSES];
	static uint8_t kind[PROCESSES][ADDRESSES];
	struct scene *s = *state;
	uint64_t unknown = 0, replaced = 0;

	memset(size, 0, sizeof(size));
	srandom(2);
	scene_process(s, PID + 1, 2);
	scene_process(s, PID + 2, 3);
	for (int step = 0; step < STEPS; step++) {
		uint32_t p = (uint32_t)(random() % PROCESSES), a = (uint32_t)(random() % ADDRESSES);

		s->tgid = PID + p;
		s->tid = (uint32_t)(random() % 5) + 1;
		if (random() % 2) {
			uint8_t k = (uint8_t)(random() % (TRACE_MEMORY_REGISTERED + 1));

			replaced += size[p][a] != 0;
			size[p][a] = 1 + (uint64_t)(random() % 1000);
			kind[p][a] = k;
			allocate(s, k, 0x7000 + a, size[p][a]);
		} else {
			unknown += size[p][a] == 0;
			size[p][a] = 0;
			release(s, TRACE_MEMORY_DEVICE, 0x7000 + a);
		}
		if (step % 10000 != 0)
			continue;
		window(s);
		for (p = 0; p < PROCESSES; p++) {
			uint64_t live[TRACE_MEMORIES] = { 0 };

			s->tgid = PID + p;
			for (a = 0; a < ADDRESSES; a++)
				live[kind[p][a]] += size[p][a];
			if (!shown(s, s->tgid, UUID0))
				continue;
			for (unsigned k = 0; k <= TRACE_MEMORY_REGISTERED; k++)
				assert_value(s, UUID0, TRACED_LIVE_DEVICE + k, (double)live[k]);
			assert_int_equal(held(s, s->tgid), live[TRACE_MEMORY_DEVICE] +
								   live[TRACE_MEMORY_ASYNC] +
								   live[TRACE_MEMORY_MANAGED]);
		}
	}
	assert_int_equal(stats_of(s).unknown_frees, unknown);
	assert_int_equal(stats_of(s).replaced_allocations, replaced);
}

/* Both rise for 30 windows of 10 s, and not one less; a pause begins again. */
static void leaks(void **state)
{
	struct scene *s = *state;
	double memory = 1e9;

	for (int i = 0; i < 100; i++) {
		bool pause = i == 40;

		s->now_us += 10000000;
		if (!pause)
			allocate(s, TRACE_MEMORY_DEVICE, 0x1000 + (uint64_t)i, MIB);
		memory += MIB;
		cuda_nvml(s->cuda, (struct process_id){ .pid = PID }, UUID0, 0, i * 10, memory);
		window(s);
		/* What NVML does not know is no figure: neither a fall nor, later, a rise. */
		cuda_nvml(s->cuda, (struct process_id){ .pid = PID }, UUID0, 0, i * 10, -1);
		s->now_us += 10000000;
		window(s);
		assert_int_equal(value(s, UUID0, TRACED_LEAK) > 0, (i >= 30 && i < 40) || i >= 70);
	}
	s->now_us += 10000000;
	allocate(s, TRACE_MEMORY_DEVICE, 0x5000, MIB);
	cuda_nvml(s->cuda, (struct process_id){ .pid = PID }, UUID0, 0, 2000,
		  memory); /* NVML's does not rise */
	window(s);
	assert_value(s, UUID0, TRACED_LEAK, 0);
}

/* What was allocated before is not known, and so is what there is; that it rises is. */
static void late_ones_have_no_memory_but_may_leak(void **state)
{
	const uint8_t estimated = PRESENCE_PRESENT | PRESENCE_ESTIMATED;
	struct scene *s = *state;
	const struct traced_device *d;

	cuda_mark(s->cuda, PID, 1, TRACED_INCOMPLETE_LATE);
	for (int i = 0; i <= 30; i++) {
		s->now_us += 10000000;
		allocate(s, TRACE_MEMORY_DEVICE, 0x1000 + (uint64_t)i, MIB);
		cuda_nvml(s->cuda, (struct process_id){ .pid = PID }, UUID0, 0, i * 10, (i + 1.0) * MIB);
		window(s);
	}
	d = shown(s, PID, UUID0);
	for (unsigned row = TRACED_LIVE_DEVICE; row <= TRACED_LIVE_ARRAY; row++)
		assert_int_equal(d->p[row], PRESENCE_ABSENT);
	assert_int_equal(d->p[TRACED_PEAK], PRESENCE_ABSENT);
	assert_int_equal(d->p[TRACED_ALLOCATIONS], PRESENCE_PRESENT);
	assert_int_equal(d->p[TRACED_LEAK], estimated);
	assert_value(s, UUID0, TRACED_LEAK, 1);
	for (uint32_t i = 0; i < s->view->totals_n; i++)
		assert_int_equal(s->view->totals[i].p[TRACED_LIVE_DEVICE], PRESENCE_ABSENT);
}

static void no_verdict_without_nvml(void **state)
{
	struct scene *s = *state;

	allocate(s, TRACE_MEMORY_DEVICE, 0x1000, MIB);
	window(s);
	assert_true(isnan(value(s, UUID0, TRACED_LEAK)));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, scene_setup, scene_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(kinds_and_peak),
		CASE(peaks_of_processes_fit_the_device),
		CASE(what_is_never_freed_is_told_by_size),
		CASE(many_sizes_are_never_freed),
		CASE(unseen_frees_are_no_leaks),
		CASE(frees_from_other_threads_and_devices),
		CASE(failures_and_nothings),
		CASE(an_address_given_out_again),
		CASE(physical_memory_lives_while_it_is_mapped),
		CASE(contexts_take_theirs_along),
		CASE(a_reset_takes_pools_along),
		CASE(arrays_of_unknown_size),
		cmocka_unit_test(beyond_the_limit),
		CASE(memory_is_given_back),
		CASE(threads_hold_what_they_allocated),
		cmocka_unit_test(more_threads_than_there_is_room_for),
		CASE(against_brute_force),
		CASE(leaks),
		CASE(no_verdict_without_nvml),
		CASE(late_ones_have_no_memory_but_may_leak),
	};

	return cmocka_run_group_tests_name("ledger", tests, NULL, NULL);
}
