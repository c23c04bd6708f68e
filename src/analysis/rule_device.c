// SPDX-License-Identifier: Apache-2.0
/* Rules of what the driver says of a device: its clocks, its PCIe link, its memory that nobody works with. */
#include <string.h>

#include "analysis/private.h"
#include "base/clock.h"

#define THROTTLED_SHARE 0.20 /* of a window */
#define IN_USE 0.50 /* of utilisation: below, low clocks cost little */
#define CLOCK_RATIO 0.90 /* of the highest: a power limit that costs less is what it is for */
#define LINK_IN_USE 0.10 /* idle GPUs lower their link's speed to save power */
#define IDLE_NS (300 * (uint64_t)NSEC_PER_SEC)
#define HELD_MIN (1ULL << 30)
#define HELD_SHARE 0.10
#define UNACCOUNTED_MIN (2ULL << 30) /* driver, ECC and reserves take less */
enum { UNACCOUNTED_WINDOWS = 3 };

static bool names_any(const char *reason, const char *const words[], size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcasestr(reason, words[i]))
			return true;
	return false;
}

/* Not those that somebody chose, nor idleness. */
static bool is_harm(const char *reason, bool *ret_power_cap)
{
	static const char *const words[] = {
		"power", "thermal", "slowdown", "brake", "reliability", "board"
	};
	static const char *const caps[] = { "power_cap", "power cap" };

	*ret_power_cap = names_any(reason, caps, ARRAY_SIZE(caps));
	return names_any(reason, words, ARRAY_SIZE(words));
}

static void put_figure(struct analysis_finding *finding, const struct device_usage *usage,
		       enum analysis_counter counter, const char *name, enum analysis_unit unit)
{
	double value;

	if (usage_figure(usage, counter, &value))
		finding_value(finding, name, unit, value);
}

static bool clocks_ratio(const struct device_usage *usage, double *ret_ratio)
{
	double now, most;

	if (!usage_figure(usage, ANALYSIS_COUNTER_CLOCK_SM, &now) ||
	    !usage_figure(usage, ANALYSIS_COUNTER_CLOCK_SM_MAX, &most) || most <= 0)
		return false;
	*ret_ratio = now / most;
	return true;
}

bool rule_clocks_throttled(const struct judgement *judgement, struct device_usage *usage)
{
	struct analysis_finding *finding = judgement->finding;
	double utilization = 1, ratio = 0, most = 0;
	bool used_known = usage_figure(usage, ANALYSIS_COUNTER_UTILIZATION, &utilization),
	     ratio_known = clocks_ratio(usage, &ratio);

	for (uint32_t i = 0; i < usage->reasons_n; i++) {
		bool cap, harm = is_harm(analysis_text_get(judgement->analysis, usage->reasons[i].reason),
					 &cap);

		if (harm && usage->reasons[i].seconds > most &&
		    !(cap && (!ratio_known || ratio > CLOCK_RATIO))) {
			most = usage->reasons[i].seconds;
			finding->subject = usage->reasons[i].reason;
		}
	}
	if (most < THROTTLED_SHARE * judgement->window->seconds || utilization < IN_USE)
		return false;
	finding->confidence = 0.6 + (used_known ? 0.15 : 0) + (ratio_known && ratio <= CLOCK_RATIO ? 0.2 : 0);
	finding->without =
		(used_known ? 0 : 1U << EVIDENCE_UTILIZATION) | (ratio_known ? 0 : 1U << EVIDENCE_CLOCKS);
	finding_value(finding, "time_share", ANALYSIS_RATIO, most / judgement->window->seconds);
	if (ratio_known)
		finding_value(finding, "clock_ratio", ANALYSIS_RATIO, ratio);
	put_figure(finding, usage, ANALYSIS_COUNTER_POWER, "power", ANALYSIS_WATTS);
	put_figure(finding, usage, ANALYSIS_COUNTER_POWER_LIMIT, "power_limit", ANALYSIS_WATTS);
	return true;
}

bool rule_pcie_degraded(const struct judgement *judgement, struct device_usage *usage)
{
	struct analysis_finding *finding = judgement->finding;
	double width, width_max, generation = 0, generation_max = 0, utilization;
	bool narrow = usage_figure(usage, ANALYSIS_COUNTER_PCIE_WIDTH, &width) &&
		      usage_figure(usage, ANALYSIS_COUNTER_PCIE_WIDTH_MAX, &width_max) && width < width_max;
	bool slow = usage_figure(usage, ANALYSIS_COUNTER_PCIE_GENERATION, &generation) &&
		    usage_figure(usage, ANALYSIS_COUNTER_PCIE_GENERATION_MAX, &generation_max) &&
		    generation < generation_max &&
		    usage_figure(usage, ANALYSIS_COUNTER_UTILIZATION, &utilization) &&
		    utilization >= LINK_IN_USE;

	if (!narrow && !slow)
		return false;
	finding->confidence = narrow ? 0.95 : 0.8;
	put_figure(finding, usage, ANALYSIS_COUNTER_PCIE_WIDTH, "width", ANALYSIS_NUMBER);
	put_figure(finding, usage, ANALYSIS_COUNTER_PCIE_WIDTH_MAX, "width_max", ANALYSIS_NUMBER);
	put_figure(finding, usage, ANALYSIS_COUNTER_PCIE_GENERATION, "generation", ANALYSIS_NUMBER);
	put_figure(finding, usage, ANALYSIS_COUNTER_PCIE_GENERATION_MAX, "generation_max", ANALYSIS_NUMBER);
	return true;
}

/* At least so many bytes, and a tenth of all if that is known. */
static bool is_much(const struct device_usage *usage, double bytes, double least)
{
	double total;

	return bytes >= least &&
	       (!usage_figure(usage, ANALYSIS_COUNTER_MEMORY_TOTAL, &total) || bytes >= HELD_SHARE * total);
}

bool rule_idle_allocated(const struct judgement *judgement, struct device_usage *usage)
{
	struct analysis_finding *finding = judgement->finding;
	double used, idle_s = (double)(judgement->window->end_ns - usage->used_ns) / (double)NSEC_PER_SEC;

	if (judgement->window->end_ns < usage->used_ns + IDLE_NS ||
	    usage->counters[ANALYSIS_COUNTER_UTILIZATION].n == 0 ||
	    !usage_figure(usage, ANALYSIS_COUNTER_MEMORY_USED, &used) ||
	    !is_much(usage, used, (double)HELD_MIN))
		return false;
	finding->begin_ns = usage->used_ns;
	finding->confidence = 0.9;
	finding_value(finding, "idle", ANALYSIS_SECONDS, idle_s);
	finding_value(finding, "memory_used", ANALYSIS_BYTES, used);
	put_figure(finding, usage, ANALYSIS_COUNTER_POWER, "power", ANALYSIS_WATTS);
	return true;
}

bool rule_memory_unaccounted(const struct judgement *judgement, struct device_usage *usage)
{
	struct analysis_finding *finding = judgement->finding;
	double used = 0, held = usage_held(judgement->analysis, usage);
	bool much = usage->counters[ANALYSIS_COUNTER_MEMORY_USED].n > 0 &&
		    usage_figure(usage, ANALYSIS_COUNTER_MEMORY_USED, &used) &&
		    is_much(usage, used - held, (double)UNACCOUNTED_MIN);

	usage->unaccounted = much ? usage->unaccounted + 1 : 0;
	if (usage->unaccounted < UNACCOUNTED_WINDOWS)
		return false;
	finding->confidence = 0.7; /* processes of another PID namespace may not be listed */
	finding_value(finding, "memory_used", ANALYSIS_BYTES, used);
	finding_value(finding, "of_processes", ANALYSIS_BYTES, held);
	finding_value(finding, "unaccounted", ANALYSIS_BYTES, used - held);
	return true;
}
