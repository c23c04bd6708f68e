// SPDX-License-Identifier: Apache-2.0
#include "cmd/recording/film.h"

#include "base/clock.h"

#define GAP_NS (90 * NSEC_PER_SEC)

void film_begin(struct film *film, struct store_reader *reader, int64_t since_ns, double speed)
{
	*film = (struct film){ .speed = speed };
	store_walk_begin(&film->walk, reader, store_best_tier(reader, since_ns), since_ns, INT64_MAX);
}

int film_next(struct film *film, struct snapshot **ret_snapshot, int64_t *ret_pause_ns)
{
	struct snapshot *snapshot;
	int r = store_walk_next(&film->walk, &snapshot);
	int64_t step_ns;

	if (r <= 0)
		return r;
	step_ns = film->before_ns ? snapshot->boot_ns - film->before_ns : 0;
	film->before_ns = snapshot->boot_ns;
	*ret_pause_ns = step_ns > 0 && step_ns <= GAP_NS ? (int64_t)((double)step_ns / film->speed) : 0;
	*ret_snapshot = snapshot;
	return 1;
}
