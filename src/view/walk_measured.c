// SPDX-License-Identifier: Apache-2.0
/*
 * What NCCL's plugin measured, by process. The first MEASURED_SERIES rows have series of their own, the
 * others are together: how many there are, programs choose.
 */
#include "view/walk_private.h"

#include <math.h>

#include "view/nccl.h"

enum { MEASURED_SERIES = 1024 };

struct measured_walk {
	struct walk *walk;
	const struct nccl_measured **rows;
	const struct label_set **processes, **sets; /* pid, comm; comm_size, operation, ... */
	uint32_t n;
	struct nccl_measured others;
};

static void measured_labels(struct measured_walk *mw, const struct nccl_measured *row)
{
	struct walk *walk = mw->walk;
	char size[NCCL_SIZE_TEXT];

	nccl_size_text(row->ranks, size);
	mw->processes[mw->n] = WALK_SET(walk, true, { "pid", walk_number(walk, row->pid) },
					{ "comm", walk_text(walk, row->comm, "") });
	mw->sets[mw->n] = WALK_SET(walk, true, { "comm_size", walk_text(walk, size, "") },
				   { "operation", nccl_measured_operation(row) },
				   { "algorithm", row->algorithm }, { "protocol", row->protocol });
	mw->rows[mw->n++] = row;
}

static void measured_others(struct measured_walk *mw)
{
	struct walk *walk = mw->walk;

	mw->processes[mw->n] = walk->other_process;
	mw->sets[mw->n] = WALK_SET(walk, true, { "comm_size", WALK_OTHER }, { "operation", WALK_OTHER },
				   { "algorithm", WALK_OTHER }, { "protocol", WALK_OTHER });
	mw->rows[mw->n++] = &mw->others;
}

/* Of processes with one PID, the one that connected last; a process may have connected more than once. */
static bool row_is_shown(const struct nccl_measurements *all, uint32_t i)
{
	for (uint32_t k = i + 1; k < all->n && all->rows[k].pid == all->rows[i].pid; k++)
		if (all->rows[k].since_boot_ns != all->rows[i].since_boot_ns)
			return false;
	return true;
}

static bool measured_walk_init(struct measured_walk *mw, struct walk *walk)
{
	const struct nccl_measurements *all = walk->s->measured;
	bool others = false;

	*mw = (struct measured_walk){ .walk = walk };
	mw->rows = walk_zeroes(walk, MEASURED_SERIES + 1, sizeof(*mw->rows));
	mw->processes = walk_zeroes(walk, MEASURED_SERIES + 1, sizeof(*mw->processes));
	mw->sets = walk_zeroes(walk, MEASURED_SERIES + 1, sizeof(*mw->sets));
	if (!mw->rows || !mw->processes || !mw->sets)
		return false;
	for (uint32_t i = 0; i < all->n; i++) {
		if (!row_is_shown(all, i))
			continue;
		if (mw->n < MEASURED_SERIES) {
			measured_labels(mw, &all->rows[i]);
			continue;
		}
		others = true;
		nccl_measured_add(&mw->others, &all->rows[i]);
	}
	if (others)
		measured_others(mw);
	return true;
}

static void measured_family(struct measured_walk *mw, const char *name, enum family_type type,
			    enum metric_unit unit, const char *help,
			    double (*value)(const struct nccl_measured *row))
{
	if (!walk_family_named(mw->walk, name, type, unit, help))
		return;
	for (uint32_t i = 0; i < mw->n; i++) {
		double number = value(mw->rows[i]);

		if (!isnan(number))
			walk_series(mw->walk, &(struct series){ .sets = { mw->processes[i], mw->sets[i] },
								.value = number,
								.presence = PRESENCE_PRESENT,
								.entity = UINT32_MAX });
	}
}

static double row_timed(const struct nccl_measured *row)
{
	return (double)row->timed;
}

static double row_seconds(const struct nccl_measured *row)
{
	return row->seconds;
}

static double row_traffic(const struct nccl_measured *row)
{
	return (double)row->traffic;
}

static double row_bus_traffic(const struct nccl_measured *row)
{
	return row->bus_traffic;
}

static double row_channels(const struct nccl_measured *row)
{
	return row->channels;
}

void walk_measured(struct walk *walk)
{
	struct measured_walk mw;

	if (!walk->s->measured || !measured_walk_init(&mw, walk))
		return;
	measured_family(&mw, "process_nccl_measured_total", FAMILY_COUNTER, UNIT_NONE,
			"Operations of NCCL whose duration its plugin measured.", row_timed);
	measured_family(&mw, "process_nccl_measured_seconds_total", FAMILY_COUNTER, UNIT_SECONDS,
			"Their durations on the GPU.", row_seconds);
	measured_family(&mw, "process_nccl_measured_bytes_total", FAMILY_COUNTER, UNIT_BYTES,
			"Their traffic, as nccl-tests counts it; by the seconds: algbw.", row_traffic);
	measured_family(&mw, "process_nccl_measured_bus_bytes_total", FAMILY_COUNTER, UNIT_BYTES,
			"The traffic times the operation's factor of the bus; by the seconds: busbw.",
			row_bus_traffic);
	measured_family(&mw, "process_nccl_algorithm_bandwidth_bytes_per_second", FAMILY_GAUGE,
			UNIT_BYTES_PER_SECOND, "algbw, the mean since the program began.",
			nccl_algorithm_bandwidth);
	measured_family(&mw, "process_nccl_bus_bandwidth_bytes_per_second", FAMILY_GAUGE,
			UNIT_BYTES_PER_SECOND, "busbw, the mean since the program began.",
			nccl_bus_bandwidth);
	measured_family(&mw, "process_nccl_channels", FAMILY_GAUGE, UNIT_NONE,
			"Channels that an operation had, at most.", row_channels);
	if (walk_family_named(walk, "nccl_plugin_refused_total", FAMILY_COUNTER, UNIT_NONE,
			      "Connections and messages to nccl.socket that were refused."))
		walk_series(walk, &(struct series){ .value = (double)walk->s->measured->refused,
						    .presence = PRESENCE_PRESENT,
						    .entity = UINT32_MAX });
	if (walk_family_named(walk, "nccl_plugin_left_out", FAMILY_GAUGE, UNIT_NONE,
			      "Rows of the plugins that found no room: of a user with more than are left "
			      "for others."))
		walk_series(walk, &(struct series){ .value = (double)walk->s->measured->left_out,
						    .presence = PRESENCE_PRESENT,
						    .entity = UINT32_MAX });
	if (walk_family_named(walk, "nccl_plugin_lost", FAMILY_GAUGE, UNIT_NONE,
			      "Operations that plugins of running programs had no room for.")) {
		uint64_t lost = 0;

		for (uint32_t i = 0; i < walk->s->measured->n; i++)
			lost += walk->s->measured->rows[i].gone ? 0 : walk->s->measured->rows[i].lost;
		walk_series(walk, &(struct series){ .value = (double)lost,
						    .presence = PRESENCE_PRESENT,
						    .entity = UINT32_MAX });
	}
}
