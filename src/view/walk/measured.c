// SPDX-License-Identifier: Apache-2.0
/*
 * What NCCL's plugin measured, by process. The first MEASURED_SERIES rows have series of their own, the
 * others are together: how many there are, programs choose. And over all processes that ever were, which do
 * not fall when one ends.
 */
#include "view/walk/private.h"

#include <math.h>

#include "view/nccl.h"

enum { MEASURED_SERIES = 1024 };

struct measured_walk {
	struct walk *walk;
	const struct nccl_measured **rows;
	const struct label_set **processes, **sets; /* pid, comm; comm_size, operation, ... */
	uint32_t n;
	struct nccl_measured others;
	const struct label_set *totals[NCCL_TOTALS_MAX]; /* comm_size, operation */
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
	char size[NCCL_SIZE_TEXT];
	bool others = false;

	*mw = (struct measured_walk){ .walk = walk, .others.ranks = NCCL_RANKS_OTHER };
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
	for (uint32_t i = 0; i < all->totals.n; i++) {
		nccl_size_text(all->totals.rows[i].ranks, size);
		mw->totals[i] = WALK_SET(walk, true, { "comm_size", walk_text(walk, size, "") },
					 { "operation", nccl_measured_operation(&all->totals.rows[i]) });
	}
	return true;
}

static void measured_value(struct walk *walk, const struct label_set *first, const struct label_set *second,
			   double value)
{
	if (!isnan(value))
		walk_series(walk, &(struct series){ .sets = { first, second },
						    .value = value,
						    .presence = PRESENCE_PRESENT,
						    .entity = UINT32_MAX });
}

static void measured_family(struct measured_walk *mw, const char *name, enum family_type type,
			    enum metric_unit unit, const char *help,
			    double (*value)(const struct nccl_measured *row))
{
	if (!walk_family_named(mw->walk, name, type, unit, help))
		return;
	for (uint32_t i = 0; i < mw->n; i++)
		measured_value(mw->walk, mw->processes[i], mw->sets[i], value(mw->rows[i]));
}

static void totals_family(struct measured_walk *mw, const char *name, enum metric_unit unit, const char *help,
			  double (*value)(const struct nccl_measured *row))
{
	const struct nccl_totals *totals = &mw->walk->s->measured->totals;

	if (!walk_family_named(mw->walk, name, FAMILY_COUNTER, unit, help))
		return;
	for (uint32_t i = 0; i < totals->n; i++)
		measured_value(mw->walk, mw->totals[i], NULL, value(&totals->rows[i]));
}

static void number_family(struct walk *walk, const char *name, enum family_type type, const char *help,
			  uint64_t number)
{
	if (walk_family_named(walk, name, type, UNIT_NONE, help))
		measured_value(walk, NULL, NULL, (double)number);
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
	return row->ranks == NCCL_RANKS_UNKNOWN ? NAN : (double)row->traffic;
}

static double row_bus_traffic(const struct nccl_measured *row)
{
	return row->ranks == NCCL_RANKS_UNKNOWN ? NAN : row->bus_traffic;
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
			"Their durations on the GPU; of NCCL 2.26 by the host's clock, which is longer.",
			row_seconds);
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
	totals_family(&mw, "nccl_measured_total", UNIT_NONE,
		      "Operations of NCCL whose duration plugins measured, of all processes, those that have "
		      "ended included.",
		      row_timed);
	totals_family(&mw, "nccl_measured_seconds_total", UNIT_SECONDS, "Their durations.", row_seconds);
	totals_family(&mw, "nccl_measured_bytes_total", UNIT_BYTES,
		      "Their traffic, as nccl-tests counts it, where the ranks are known.", row_traffic);
	totals_family(&mw, "nccl_measured_bus_bytes_total", UNIT_BYTES,
		      "The traffic times the operation's factor of the bus.", row_bus_traffic);
	number_family(walk, "nccl_plugin_refused_total", FAMILY_COUNTER,
		      "Connections and messages to nccl.socket that were refused.",
		      walk->s->measured->refused);
	number_family(walk, "nccl_plugin_left_out", FAMILY_GAUGE,
		      "Rows of the plugins that found no room: of a user with more than are left for others. "
		      "They are in the totals.",
		      walk->s->measured->left_out);
	number_family(walk, "nccl_plugin_lost_total", FAMILY_COUNTER,
		      "Operations that plugins had no room for, of all processes.",
		      walk->s->measured->totals.lost);
}
