// SPDX-License-Identifier: Apache-2.0
#include "model/look_back.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/macro.h"

#define EVERY_NS (10 * NSEC_PER_SEC)
#define EARLY_NS (NSEC_PER_SEC / 2) /* readings do not come at exact intervals */
enum { LOOKS = 31 }; /* the oldest is 5 minutes before the newest */

enum { BUSY, BUSY_MEMORY, OBSERVED, BYTE_SECONDS, SUMS };
static const unsigned rows[SUMS] = {
	[BUSY] = PROCESS_BUSY,
	[BUSY_MEMORY] = PROCESS_BUSY_MEMORY,
	[OBSERVED] = PROCESS_OBSERVED,
	[BYTE_SECONDS] = PROCESS_MEMORY_BYTE_SECONDS,
};

const unsigned recent_seconds[RECENTS] = { 10, 60, 300 };

struct look {
	int64_t ns;
	double sums[SUMS];
};

struct look_back {
	unsigned n, newest;
	struct look looks[LOOKS];
};

static const struct look *look_at(const struct look_back *b, unsigned age)
{
	return &b->looks[(b->newest + LOOKS - age) % LOOKS];
}

void look_back_take(struct look_back **look_back, const struct process *process, int64_t now_ns)
{
	struct look_back *b = *look_back;
	struct look *look;

	if (!b)
		b = *look_back = calloc(1, sizeof(*b));
	if (!b || (b->n > 0 && now_ns - look_at(b, 0)->ns < EVERY_NS - EARLY_NS))
		return;
	b->newest = (b->newest + 1) % LOOKS;
	b->n = MIN(b->n + 1, (unsigned)LOOKS);
	look = &b->looks[b->newest];
	look->ns = now_ns;
	for (unsigned i = 0; i < SUMS; i++)
		look->sums[i] = process->v[rows[i]];
}

/* The newest that is old enough, else the oldest. */
static const struct look *look_before(const struct look_back *b, int64_t ns)
{
	unsigned age = 0;

	while (age + 1 < b->n && look_at(b, age)->ns > ns)
		age++;
	return look_at(b, age);
}

static struct recent recent_since(const struct process *p, const struct look *look, int64_t now_ns)
{
	struct recent recent = { .seconds = (double)(now_ns - look->ns) / NSEC_PER_SEC };
	double by[SUMS];

	for (unsigned i = 0; i < SUMS; i++)
		by[i] = p->v[rows[i]] - look->sums[i];
	if (recent.seconds <= 0)
		return (struct recent){ 0 };
	if (by[OBSERVED] > 0 && presence_is(p->p[PROCESS_BUSY])) {
		recent.v[RECENT_UTILIZATION] = CLAMP(by[BUSY] / by[OBSERVED], 0.0, 1.0);
		recent.p[RECENT_UTILIZATION] = p->p[PROCESS_BUSY];
	}
	if (by[OBSERVED] > 0 && presence_is(p->p[PROCESS_BUSY_MEMORY])) {
		recent.v[RECENT_MEMORY_UTILIZATION] = CLAMP(by[BUSY_MEMORY] / by[OBSERVED], 0.0, 1.0);
		recent.p[RECENT_MEMORY_UTILIZATION] = p->p[PROCESS_BUSY_MEMORY];
	}
	if (presence_is(p->p[PROCESS_MEMORY_BYTE_SECONDS])) {
		recent.v[RECENT_MEMORY] = by[BYTE_SECONDS] / recent.seconds;
		recent.p[RECENT_MEMORY] = p->p[PROCESS_MEMORY_BYTE_SECONDS];
	}
	return recent;
}

void look_back_fill(const struct look_back *look_back, struct process *process, int64_t now_ns)
{
	for (unsigned i = 0; look_back && look_back->n > 0 && i < RECENTS; i++)
		process->recent[i] = recent_since(
			process, look_before(look_back, now_ns - recent_seconds[i] * NSEC_PER_SEC + EARLY_NS),
			now_ns);
}
