// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <stdlib.h>

#include "base/clock.h"
#include "lab.h"
#include "model/look_back.h"

/* A process that works @busy of each second, and holds 1,000 bytes. */
static void work(struct process *p, struct look_back **b, int64_t *now_ns, unsigned seconds, double busy)
{
	for (unsigned i = 0; i < seconds; i++) {
		*now_ns += NSEC_PER_SEC;
		p->v[PROCESS_BUSY] += busy;
		p->v[PROCESS_OBSERVED] += 1;
		p->v[PROCESS_MEMORY_BYTE_SECONDS] += 1000;
		look_back_take(b, p, *now_ns);
	}
	look_back_fill(*b, p, *now_ns);
}

static struct process present(void)
{
	struct process p = { 0 };

	p.p[PROCESS_BUSY] = p.p[PROCESS_OBSERVED] = p.p[PROCESS_MEMORY_BYTE_SECONDS] = PRESENCE_PRESENT;
	return p;
}

static void windows_of_three_lengths(_unused_ void **state)
{
	struct look_back *b = NULL;
	struct process p = present();
	int64_t now_ns = 1000 * NSEC_PER_SEC;

	work(&p, &b, &now_ns, 300, 0.1);
	work(&p, &b, &now_ns, 60, 0.5);
	work(&p, &b, &now_ns, 10, 1);
	for (unsigned i = 0; i < RECENTS; i++) {
		assert_true(p.recent[i].seconds >= recent_seconds[i]);
		assert_true(p.recent[i].seconds <= recent_seconds[i] + 10);
		assert_int_equal(p.recent[i].p[RECENT_UTILIZATION], PRESENCE_PRESENT);
		assert_near(p.recent[i].v[RECENT_MEMORY], 1000, 1e-6);
	}
	assert_near(p.recent[0].v[RECENT_UTILIZATION], 1, 0.3);
	assert_near(p.recent[1].v[RECENT_UTILIZATION], (10 + 50 * 0.5) / 60, 0.05);
	assert_near(p.recent[2].v[RECENT_UTILIZATION], (10 + 30 + 230 * 0.1) / 300, 0.02);
	free(b);
}

/* Less is covered, and said. */
static void a_young_process(_unused_ void **state)
{
	struct look_back *b = NULL;
	struct process p = present();
	int64_t now_ns = NSEC_PER_SEC;

	look_back_fill(b, &p, now_ns);
	assert_near(p.recent[0].seconds, 0, 0);
	work(&p, &b, &now_ns, 1, 1);
	assert_near(p.recent[2].seconds, 0, 0);
	work(&p, &b, &now_ns, 4, 0.25);
	for (unsigned i = 0; i < RECENTS; i++) {
		assert_near(p.recent[i].seconds, 4, 0);
		assert_near(p.recent[i].v[RECENT_UTILIZATION], 0.25, 1e-9);
	}
	free(b);
}

static void what_is_not_known(_unused_ void **state)
{
	struct look_back *b = NULL;
	struct process p = present();
	int64_t now_ns = NSEC_PER_SEC;

	p.p[PROCESS_BUSY] = PRESENCE_NO_PERMISSION;
	work(&p, &b, &now_ns, 30, 0);
	assert_int_equal(p.recent[0].p[RECENT_UTILIZATION], PRESENCE_ABSENT);
	assert_int_equal(p.recent[0].p[RECENT_MEMORY_UTILIZATION], PRESENCE_ABSENT);
	assert_int_equal(p.recent[0].p[RECENT_MEMORY], PRESENCE_PRESENT);
	free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(windows_of_three_lengths),
		cmocka_unit_test(a_young_process),
		cmocka_unit_test(what_is_not_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
