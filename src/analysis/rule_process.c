// SPDX-License-Identifier: Apache-2.0
/* Rules of processes among others: memory held by dead work, the wrong device, uneven ranks, NCCL's path. */
#include "analysis/private.h"
#include "base/clock.h"

#define QUIET_NS (600 * (uint64_t)NSEC_PER_SEC)
#define QUIET_MEMORY 256e6 /* bytes: a context alone takes about as much */
#define CONTEXT_MEMORY 100e6
#define WAIT_DIFFERENCE 0.20 /* of a step */
#define TRAFFIC_MIN 100e6 /* bytes a second of collectives */
#define NVLINK_SHARE 0.10 /* of that, over NVLink */
#define PCIE_SHARE 0.30
enum { UNEVEN_WINDOWS = 2, LAUNCHES_ELSEWHERE = 100 };

/* No call, no CPU time: it waits for something that will not come, or is stopped. */
bool rule_memory_held(const struct judgement *judgement, struct process_usage *usage)
{
	struct analysis_finding *finding = judgement->finding;
	const struct process_device *most = NULL;

	for (uint32_t i = 0; i < usage->devices_n; i++)
		if (usage->devices[i].memory_known && (!most || usage->devices[i].memory > most->memory))
			most = &usage->devices[i];
	if (!most || most->memory < QUIET_MEMORY || !usage->cpu_known || usage->ended ||
	    judgement->window->end_ns < usage->active_ns + QUIET_NS)
		return false;
	finding->device = most->device;
	finding->begin_ns = usage->active_ns;
	finding->confidence = 0.85;
	finding_value(finding, "memory", ANALYSIS_BYTES, most->memory);
	finding_value(finding, "quiet", ANALYSIS_SECONDS,
		      (double)(judgement->window->end_ns - usage->active_ns) / (double)NSEC_PER_SEC);
	return true;
}

/* Memory on a device for which it never launched anything, while it works with another one. */
bool rule_wrong_device(const struct judgement *judgement, struct process_usage *usage)
{
	struct analysis_finding *finding = judgement->finding;
	const struct process_device *unused = NULL;
	uint64_t elsewhere = 0;

	for (uint32_t i = 0; i < usage->devices_n; i++) {
		const struct process_device *device = &usage->devices[i];

		elsewhere += device->launches;
		if (device->launches == 0 && device->memory_known && device->memory >= CONTEXT_MEMORY)
			unused = device;
	}
	if (!unused || elsewhere < LAUNCHES_ELSEWHERE || usage->devices_n == PROCESS_DEVICES)
		return false;
	finding->device = unused->device;
	finding->confidence = 0.8;
	finding_value(finding, "memory", ANALYSIS_BYTES, unused->memory);
	finding_value(finding, "launches_elsewhere", ANALYSIS_NUMBER, (double)elsewhere);
	return true;
}

/* The one that waits the least is the one for which the others wait. */
bool rule_uneven_ranks(const struct judgement *judgement, struct process_usage *usage)
{
	struct analysis_finding *finding = judgement->finding;
	double own, others = 1;
	uint32_t n, known = 0;
	const struct process_usage *all = usage_processes(judgement->analysis, &n);

	if (usage->communicator == 0 || !usage_waits(usage, &own))
		return false;
	for (uint32_t i = 0; i < n; i++) {
		double wait;

		if (&all[i] == usage || all[i].communicator != usage->communicator ||
		    !usage_waits(&all[i], &wait))
			continue;
		others = MIN(others, wait);
		known++;
	}
	usage->uneven = known > 0 && others - own >= WAIT_DIFFERENCE ? usage->uneven + 1 : 0;
	if (usage->uneven < UNEVEN_WINDOWS)
		return false;
	finding->communicator = usage->communicator;
	finding->confidence = known + 1 == usage->ranks ? 0.85 : 0.7;
	finding_value(finding, "waits_share", ANALYSIS_RATIO, own);
	finding_value(finding, "others_wait_share_at_least", ANALYSIS_RATIO, others);
	finding_value(finding, "ranks_known", ANALYSIS_NUMBER, known + 1);
	finding_value(finding, "ranks", ANALYSIS_NUMBER, usage->ranks);
	return true;
}

/* Both directions. */
static bool traffic_of(const struct device_usage *device, enum analysis_counter sent,
		       enum analysis_counter received, double *ret_rate)
{
	double tx, rx;

	if (!usage_figure(device, sent, &tx) || !usage_figure(device, received, &rx))
		return false;
	*ret_rate = tx + rx;
	return true;
}

static uint32_t ranks_here(const struct judgement *judgement, const struct process_usage *usage)
{
	uint32_t n, here = 0;
	const struct process_usage *all = usage_processes(judgement->analysis, &n);

	for (uint32_t i = 0; i < n; i++)
		here += all[i].node == usage->node && all[i].communicator == usage->communicator;
	return here;
}

/* The device has NVLinks, of which figures tell, and its ranks are on one node; yet they talk over PCIe. */
bool rule_nccl_slow_path(const struct judgement *judgement, struct process_usage *usage)
{
	const struct device_usage *device = usage_device(judgement->analysis, usage->node, usage->device);
	struct analysis_finding *finding = judgement->finding;
	double nvlink, pcie,
		rate = (double)usage->kinds[ANALYSIS_COLLECTIVE].bytes / judgement->window->seconds;
	uint32_t here = usage->communicator != 0 ? ranks_here(judgement, usage) : 0;

	if (here < 2 || rate < TRAFFIC_MIN ||
	    !traffic_of(device, ANALYSIS_COUNTER_NVLINK_TX, ANALYSIS_COUNTER_NVLINK_RX, &nvlink) ||
	    !traffic_of(device, ANALYSIS_COUNTER_PCIE_TX, ANALYSIS_COUNTER_PCIE_RX, &pcie) ||
	    nvlink >= NVLINK_SHARE * rate || pcie < PCIE_SHARE * rate)
		return false;
	finding->communicator = usage->communicator;
	finding->confidence = here == usage->ranks ? 0.9 : 0.6;
	finding_value(finding, "collectives", ANALYSIS_BYTES_PER_SECOND, rate);
	finding_value(finding, "nvlink", ANALYSIS_BYTES_PER_SECOND, nvlink);
	finding_value(finding, "pcie", ANALYSIS_BYTES_PER_SECOND, pcie);
	finding_value(finding, "ranks_here", ANALYSIS_NUMBER, here);
	finding_value(finding, "ranks", ANALYSIS_NUMBER, usage->ranks);
	return true;
}
