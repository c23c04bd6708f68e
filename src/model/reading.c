// SPDX-License-Identifier: Apache-2.0
#include "model/reading.h"

#include <errno.h>
#include <string.h>

#include "base/macro.h"
#include "base/text.h"

#define GROUP_SECONDS_MAX 3600 /* a pass that takes longer is ended (nvml.call_timeout) */

/* Strings are used in labels and JSON, which require UTF-8. */
#define END_STRING(s)                      \
	do {                               \
		(s)[sizeof(s) - 1] = '\0'; \
		utf8_sanitize(s);          \
	} while (0)

const struct reading_group_row reading_groups[READING_GROUPS] = {
#define GROUP(id_, name_, help_) [READING_GROUP_##id_] = { name_, help_ },
#include "model/groups.def"
#undef GROUP
};

const struct stamped_row stamped_rows[STAMPED_METRICS] = {
#define STAMPED(metric_, name_) [STAMPED_##metric_] = { SLOT_##metric_, name_ },
#include "model/stamped.def"
#undef STAMPED
};

int reading_groups_parse(const char *names, int64_t *ret_groups)
{
	int64_t groups = 0;

	while (*names) {
		size_t n = strcspn(names, ",");
		unsigned i = 0;

		while (i < READING_GROUPS &&
		       (strlen(reading_groups[i].name) != n || memcmp(reading_groups[i].name, names, n) != 0))
			i++;
		if (i == READING_GROUPS)
			return -EINVAL;
		groups |= INT64_C(1) << i;
		names += n;
		if (*names == ',' && !*++names)
			return -EINVAL;
	}
	*ret_groups = groups;
	return 0;
}

static uint8_t known_presence(uint8_t p)
{
	return p < PRESENCE_MAX ? p : PRESENCE_FAILED;
}

/* Checks one number: an implausible value or unknown presence becomes REJECTED. */
static void check_number(const struct metric *metric, double *v, uint8_t *p, uint32_t *rejected)
{
	if (*p == PRESENCE_ABSENT)
		return;
	if ((*p & PRESENCE_MASK) == PRESENCE_PRESENT && (*p & ~(PRESENCE_MASK | PRESENCE_ESTIMATED)) == 0) {
		/* Most numbers of an idle device are zero; a negative zero would be printed with its sign. */
		if (*v == 0) {
			*v = 0;
			return;
		}
		if (metric_plausible(metric, *v))
			return;
	} else if (*p < PRESENCE_MAX) {
		return;
	}
	*p = PRESENCE_REJECTED;
	*v = 0;
	if (*rejected < UINT32_MAX)
		(*rejected)++;
}

static void check_entity_numbers(struct reading *reading, struct reading_entity *e, unsigned level)
{
	for (unsigned row = 0; row < GPU_METRICS; row++) {
		const struct metric *metric = &gpu_metrics[row];
		unsigned end = metric->slot + metric->count;

		/* A value of the whole GPU must not be repeated for each of its instances. */
		if (!(metric->levels & level)) {
			memset(e->p + metric->slot, PRESENCE_ABSENT, metric->count);
			continue;
		}
		for (unsigned slot = metric->slot; slot < end; slot++)
			check_number(metric, &e->v[slot], &e->p[slot], &reading->rejected[row]);
	}
}

void reading_check_stamps(struct reading_stamps *stamps, int64_t end_ns)
{
	const int64_t offset_max_ns = INT64_C(1) << 62;

	if (stamps->error_ns < 0 || stamps->offset_ns < -offset_max_ns || stamps->offset_ns > offset_max_ns)
		*stamps = (struct reading_stamps){ 0 };
	stamps->unusable = stamps->unusable != 0;
	for (unsigned i = 0; i < STAMPED_METRICS; i++)
		if (stamps->at_ns[i] <= end_ns - STAMP_AGE_MAX_NS || stamps->at_ns[i] > end_ns)
			stamps->at_ns[i] = 0;
}

static int check_entity(struct reading *reading, uint32_t index)
{
	struct reading_entity *e = &reading->entities[index];
	bool mig = e->parent != READING_NONE;

	if (mig && (e->parent >= index || reading->entities[e->parent].parent != READING_NONE))
		return -EBADMSG;
	END_STRING(e->uuid);
	END_STRING(e->mig_uuid);
	END_STRING(e->name);
	END_STRING(e->pci_bus_id);
	END_STRING(e->serial);
	END_STRING(e->vbios);
	END_STRING(e->architecture);
	END_STRING(e->mig_profile);
	END_STRING(e->compute_capability);
	if (!mig)
		e->gi = e->ci = UINT32_MAX;
	e->lost = e->lost != 0;
	e->process_list = known_presence(e->process_list);
	e->process_util = known_presence(e->process_util);
	check_entity_numbers(reading, e, mig ? LEVEL_MIG : LEVEL_GPU);
	reading_check_stamps(&e->stamps, reading->end_ns);
	return 0;
}

static int check_process(struct reading *reading, struct reading_process *process)
{
	if (process->entity >= reading->entities_n)
		return -EBADMSG;
	END_STRING(process->name);
	process->types &= PROCESS_TYPE_COMPUTE | PROCESS_TYPE_GRAPHICS | PROCESS_TYPE_MPS;
	for (unsigned row = 0; row < PROCESS_METRICS; row++)
		check_number(&process_metrics[row], &process->v[row], &process->p[row],
			     &reading->rejected_process[row]);
	return 0;
}

int reading_check(struct reading *reading)
{
	if (reading->state >= READING_STATES || reading->entities_n > READING_ENTITIES_MAX ||
	    reading->processes_n > READING_PROCESSES_MAX || reading->events_n > READING_EVENTS_MAX ||
	    reading->gpus_unidentified > READING_ENTITIES_MAX || reading->topology_n > READING_TOPOLOGY_MAX ||
	    reading->begin_ns < 0 || reading->end_ns < reading->begin_ns)
		return -EBADMSG;

	END_STRING(reading->error);
	END_STRING(reading->driver_version);
	END_STRING(reading->nvml_version);
	END_STRING(reading->library);
	END_STRING(reading->unrecognised);
	reading->simulated = reading->simulated != 0;
	for (unsigned i = 0; i < READING_GROUPS; i++)
		if (!(reading->group_seconds[i] >= 0 && reading->group_seconds[i] <= GROUP_SECONDS_MAX))
			reading->group_seconds[i] = 0;

	for (uint32_t i = 0; i < reading->entities_n; i++)
		if (check_entity(reading, i) < 0)
			return -EBADMSG;
	for (uint32_t i = 0; i < reading->processes_n; i++)
		if (check_process(reading, &reading->processes[i]) < 0)
			return -EBADMSG;
	for (uint32_t i = 0; i < reading->events_n; i++)
		if (reading->events[i].entity >= reading->entities_n)
			return -EBADMSG;
	return 0;
}
