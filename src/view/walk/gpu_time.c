// SPDX-License-Identifier: Apache-2.0
/*
 * True times of GPUs' work, by process and device. The first TIME_SERIES rows have series of their own, the
 * others are together: how many there are, programs choose.
 */
#include "view/walk/private.h"

#include <math.h>

#include "base/saturated.h"

enum { TIME_SERIES = 1024 };

struct time_row {
	const struct gpu_time *time;
	const struct label_set *device, *process; /* gpu, uuid, as far as known; pid, comm, device */
};

struct time_walk {
	struct walk *walk;
	struct time_row *rows;
	uint32_t n;
	struct gpu_time others;
};

/* Of processes with one PID, the one that connected last; a process may have connected more than once. */
static bool time_is_shown(const struct gpu_times *all, uint32_t i)
{
	for (uint32_t k = i + 1; k < all->n && all->rows[k].pid == all->rows[i].pid; k++)
		if (all->rows[k].since_boot_ns != all->rows[i].since_boot_ns)
			return false;
	return true;
}

/* A program may say the same UUID of two of its devices: their numbers tell them apart. */
static struct time_row time_row_of(struct walk *walk, const struct gpu_time *time)
{
	const char *pid = walk_number(walk, time->pid), *comm = walk_text(walk, time->comm, "");

	return (struct time_row){
		.time = time,
		.device = traced_device_set(walk, time->uuid),
		.process = time->device == GPU_TIME_NO_DEVICE ?
				   WALK_SET(walk, true, { "pid", pid }, { "comm", comm }) :
				   WALK_SET(walk, true, { "pid", pid }, { "comm", comm },
					    { "device", walk_number(walk, time->device) }),
	};
}

static void others_add(struct gpu_time *others, const struct gpu_time *time)
{
	others->kernels = add_saturated(others->kernels, time->kernels);
	others->graphs = add_saturated(others->graphs, time->graphs);
	others->lost = add_saturated(others->lost, time->lost);
	others->dropped = add_saturated(others->dropped, time->dropped);
	others->bad = add_saturated(others->bad, time->bad);
	others->busy_seconds += time->busy_seconds;
	others->observed_seconds += time->observed_seconds;
}

static bool time_walk_init(struct time_walk *tw, struct walk *walk)
{
	const struct gpu_times *all = walk->s->gpu_times;
	bool others = false;

	*tw = (struct time_walk){ .walk = walk };
	tw->rows = walk_zeroes(walk, TIME_SERIES + 1, sizeof(*tw->rows));
	if (!tw->rows)
		return false;
	for (uint32_t i = 0; i < all->n; i++) {
		if (!time_is_shown(all, i))
			continue;
		if (tw->n < TIME_SERIES) {
			tw->rows[tw->n++] = time_row_of(walk, &all->rows[i]);
			continue;
		}
		others = true;
		others_add(&tw->others, &all->rows[i]);
	}
	if (others)
		tw->rows[tw->n++] = (struct time_row){ &tw->others, NULL, walk->other_process };
	return true;
}

static void time_series(struct walk *walk, const struct time_row *row, double value)
{
	if (!isnan(value))
		walk_series(walk, &(struct series){ .sets = { row->device, row->process },
						    .value = value,
						    .presence = PRESENCE_PRESENT,
						    .entity = UINT32_MAX });
}

static void time_family(struct time_walk *tw, const char *name, enum metric_unit unit, const char *help,
			double (*value)(const struct gpu_time *time))
{
	if (!walk_family_named(tw->walk, name, FAMILY_COUNTER, unit, help))
		return;
	for (uint32_t i = 0; i < tw->n; i++)
		time_series(tw->walk, &tw->rows[i], value(tw->rows[i].time));
}

static void plugin_family(struct walk *walk, const char *name, enum family_type type, const char *help,
			  uint64_t number)
{
	if (walk_family_named(walk, name, type, UNIT_NONE, help))
		walk_series(walk, &(struct series){ .value = (double)number,
						    .presence = PRESENCE_PRESENT,
						    .entity = UINT32_MAX });
}

/* Nothing is known of what was not observed. */
static double observed_or_nan(const struct gpu_time *time, double value)
{
	return time->observed_seconds > 0 ? value : NAN;
}

static double time_busy(const struct gpu_time *time)
{
	return observed_or_nan(time, time->busy_seconds);
}

static double time_observed(const struct gpu_time *time)
{
	return observed_or_nan(time, time->observed_seconds);
}

static double time_launches(const struct gpu_time *time)
{
	return observed_or_nan(time, (double)add_saturated(time->kernels, time->graphs));
}

static double time_missing(const struct gpu_time *time)
{
	return (double)add_saturated(add_saturated(time->lost, time->dropped), time->bad);
}

void walk_gpu_time(struct walk *walk)
{
	const struct gpu_times *all = walk->s->gpu_times;
	struct time_walk tw;

	if (!all || !time_walk_init(&tw, walk))
		return;
	time_family(&tw, "process_gpu_measured_seconds_total", UNIT_SECONDS,
		    "Time in which any kernel or graph of the process ran, by CUPTI, of the time that was "
		    "observed.",
		    time_busy);
	time_family(&tw, "process_gpu_measured_observed_seconds_total", UNIT_SECONDS,
		    "Time that was observed, in slices: the rate of the measured seconds by that of these is "
		    "the share.",
		    time_observed);
	time_family(&tw, "process_gpu_measured_launches_total", UNIT_NONE,
		    "Kernels, and graphs as a whole, whose times were measured.", time_launches);
	time_family(&tw, "process_gpu_measured_missing_total", UNIT_NONE,
		    "Records of CUPTI that found no room, have no times or make no sense; in the process's "
		    "first row.",
		    time_missing);
	plugin_family(walk, "cupti_plugin_refused_total", FAMILY_COUNTER,
		      "Connections and messages to cupti.socket that were refused.", all->refused);
	plugin_family(walk, "cupti_plugin_left_out", FAMILY_GAUGE,
		      "Rows of the plugins that found no room: of a user with more than are left for others.",
		      all->left_out);
	plugin_family(walk, "cupti_plugin_lost_total", FAMILY_COUNTER,
		      "Records that plugins had no room for, of all processes.", all->lost);
	plugin_family(walk, "cupti_plugin_dropped_total", FAMILY_COUNTER,
		      "Records that are added up, and are not in timelines and findings: they came too fast, "
		      "or have times that cannot be.",
		      all->dropped);
}
