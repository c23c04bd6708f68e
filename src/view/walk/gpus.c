// SPDX-License-Identifier: Apache-2.0
#include "view/walk/private.h"

#include <errno.h>
#include <string.h>

#include "base/macro.h"
#include "model/xid.h"
#include "view/shown.h"
#include "view/view.h"

static void walk_gpu_info(struct walk *walk)
{
	const struct snapshot *s = walk->s;

	if (!walk_family_named(walk, "gpu_info", FAMILY_INFO, UNIT_NONE,
			       "What the GPU is; join other series with it on gpu and uuid."))
		return;
	for (uint32_t i = 0; i < s->entities_n; i++) {
		const struct reading_entity *id = &s->entities[i].id;
		const struct label_set *set;

		if (entity_is_mig(&s->entities[i]))
			continue;
		set = WALK_SET(walk, false, { "pci_bus_id", id->pci_bus_id }, { "vendor", GPU_VENDOR },
			       { "model", id->name }, { "driver", snapshot_driver(s)->driver_version },
			       { "vbios", id->vbios }, { "serial", id->serial },
			       { "architecture", id->architecture },
			       { "compute_capability", id->compute_capability },
			       { "simulated", s->simulated ? "true" : "false" });
		walk_series(walk, &(struct series){ .sets = { walk->entities[i], set },
						    .value = 1,
						    .presence = PRESENCE_PRESENT,
						    .entity = i });
	}
}

static void walk_mig_info(struct walk *walk)
{
	if (!walk_family_named(walk, "mig_info", FAMILY_INFO, UNIT_NONE,
			       "What the MIG instance is; join other series with it on uuid, gi and ci."))
		return;
	for (uint32_t i = 0; i < walk->s->entities_n; i++) {
		const struct entity *e = &walk->s->entities[i];
		const struct label_set *set;

		if (!entity_is_mig(e) || !entity_shown(e))
			continue;
		set = WALK_SET(walk, false, { "mig_uuid", e->id.mig_uuid }, { "profile", e->id.mig_profile });
		walk_series(walk, &(struct series){ .sets = { walk->entities[i], set },
						    .value = 1,
						    .presence = PRESENCE_PRESENT,
						    .entity = i });
	}
}

static double entity_present(const struct snapshot *s, const struct entity *e)
{
	(void)s;
	return e->present;
}

static double entity_stale(const struct snapshot *s, const struct entity *e)
{
	(void)s;
	return e->stale;
}

/* State of the numbers: for whole GPUs only, since an instance shares its GPU's state and readings. */
static void walk_gpu_state(struct walk *walk)
{
	static const struct {
		const char *name;
		enum metric_unit unit;
		const char *help;
		double (*value)(const struct snapshot *s, const struct entity *e);
	} families[] = {
		{ "gpu_present", UNIT_NONE,
		  "1 while the driver lists the GPU, 0 since it was lost or removed.", entity_present },
		{ "gpu_stale", UNIT_NONE,
		  "1 while the newest values of the GPU are older than 2.5 sampling periods and 3 seconds.",
		  entity_stale },
		{ "gpu_sample_age_seconds", UNIT_SECONDS, "Time since the newest good reading of the GPU.",
		  entity_age_seconds },
	};

	for (size_t f = 0; f < ARRAY_SIZE(families); f++) {
		if (!walk_family_named(walk, families[f].name, FAMILY_GAUGE, families[f].unit,
				       families[f].help))
			continue;
		for (uint32_t i = 0; i < walk->s->entities_n; i++) {
			const struct entity *e = &walk->s->entities[i];
			double value = families[f].value(walk->s, e);

			if (!entity_is_mig(e) && value >= 0)
				walk_series(walk, &(struct series){ .sets = { walk->entities[i] },
								    .value = value,
								    .presence = PRESENCE_PRESENT,
								    .entity = i });
		}
	}
}

enum gpu_status { STATUS_OK, STATUS_DEGRADED, STATUS_FAILED, STATUSES };

/* -ENODATA: it is not known, since its numbers are old. */
static int gpu_status(const struct entity *gpu)
{
	struct gpu_warning warning;
	int status = STATUS_OK;

	if (!gpu->present)
		return STATUS_FAILED;
	if (gpu->stale)
		return -ENODATA;
	for (unsigned i = 0; i < GPU_WARNINGS; i++)
		if (gpu_warning(gpu, i, &warning))
			status = MAX(status, i == GPU_WARNING_RECOVERY || i == GPU_WARNING_ROWS_FAILED ?
						     STATUS_FAILED :
						     STATUS_DEGRADED);
	return status;
}

static void walk_status(struct walk *walk)
{
	static const char *const states[STATUSES] = { "ok", "degraded", "failed" };

	if (!walk_family_named(
		    walk, "gpu_status", FAMILY_GAUGE, UNIT_NONE,
		    "1 for the state that the GPU is in, 0 for the others. failed: it is lost or removed, "
		    "the driver asks for a reset, a reboot or the like, or a row of its memory could not "
		    "be remapped; degraded: hot, links down, memory to be repaired by a reset. "
		    "Absent while its values are stale."))
		return;
	for (uint32_t i = 0; i < walk->s->entities_n; i++) {
		const struct entity *gpu = &walk->s->entities[i];
		int status = entity_is_mig(gpu) ? -ENODATA : gpu_status(gpu);

		for (int k = 0; status >= 0 && k < STATUSES; k++)
			walk_series(walk, &(struct series){
						  .sets = { walk->entities[i],
							    WALK_SET(walk, false, { "state", states[k] }) },
						  .value = k == status,
						  .presence = PRESENCE_PRESENT,
						  .entity = i });
	}
}

/* For instances, too: a device plugin offers these. */
static void walk_health(struct walk *walk)
{
	static const char *const kinds[HEALTH_KINDS] = {
		[HEALTH_ALLOCATABLE] = "allocatable",
		[HEALTH_POD_STATUS] = "pod_status",
	};

	if (!walk_family_named(
		    walk, "gpu_unhealthy", FAMILY_GAUGE, UNIT_NONE,
		    "1 if kubelet could give the device to pods and cannot any more (allocatable), "
		    "or the status of a pod that has it calls it unhealthy (pod_status)."))
		return;
	for (uint32_t i = 0; i < walk->s->entities_n; i++)
		for (unsigned kind = 0; kind < HEALTH_KINDS; kind++) {
			uint8_t health = walk->s->entities[i].health[kind];

			if (health != HEALTH_UNKNOWN)
				walk_series(walk,
					    &(struct series){
						    .sets = { walk->entities[i],
							      WALK_SET(walk, false, { "by", kinds[kind] }) },
						    .value = health == HEALTH_BAD,
						    .presence = PRESENCE_PRESENT,
						    .entity = i });
		}
}

/* link="0" and so on, created once for all rows with this index; NULL for a row without one. */
static const struct label_set *index_set(struct walk *walk, const struct metric *m, unsigned k)
{
	struct walk_index *index = walk->indexes;

	if (!m->index)
		return NULL;
	while (index && !STRV_EQ(index->name, m->index))
		index = index->next;
	if (!index) {
		index = walk_zeroes(walk, 1, sizeof(*index));
		if (!index)
			return NULL;
		*index = (struct walk_index){ .next = walk->indexes, .name = m->index };
		walk->indexes = index;
	}
	if (!index->sets[k])
		index->sets[k] = WALK_SET(walk, true, { m->index, walk_number(walk, k) });
	return index->sets[k];
}

static void walk_gpu_row(struct walk *walk, const struct metric *m)
{
	const struct label_set *row = walk_row_set(walk, m);

	for (uint32_t i = 0; i < walk->s->entities_n; i++) {
		const struct entity *e = &walk->s->entities[i];

		if (!entity_shows(e, m))
			continue;
		for (unsigned k = 0; k < m->count; k++) {
			unsigned slot = m->slot + k;

			if (presence_is(e->id.p[slot]))
				walk_series(walk, &(struct series){ .sets = { walk->entities[i], row,
									      index_set(walk, m, k) },
								    .value = e->id.v[slot],
								    .presence = e->id.p[slot],
								    .row = m,
								    .slot = k,
								    .entity = i });
		}
	}
}

static void walk_gpu_rows(struct walk *walk)
{
	for (unsigned first = 0, end; first < GPU_METRICS; first = end) {
		if (!walk_family_rows(walk, WALK_PREFIX, 0, NULL, gpu_metrics, GPU_METRICS, first, &end))
			continue;
		for (unsigned row = first; row < end; row++)
			walk_gpu_row(walk, &gpu_metrics[row]);
	}
}

static bool row_estimated(const struct entity *e, const struct metric *m)
{
	for (unsigned k = 0; k < m->count; k++)
		if (presence_estimated(e->id.p[m->slot + k]))
			return true;
	return false;
}

static void walk_gpu_estimates(struct walk *walk)
{
	if (!walk_family_named(walk, "gpu_estimated", FAMILY_GAUGE, UNIT_NONE,
			       "1 for each metric whose value is an estimate, not a "
			       "measurement."))
		return;
	for (unsigned row = 0; row < GPU_METRICS; row++) {
		const struct metric *m = &gpu_metrics[row];
		const struct label_set *labels = NULL, *metric = NULL;

		for (uint32_t i = 0; i < walk->s->entities_n; i++) {
			const struct entity *e = &walk->s->entities[i];

			if (!entity_shows(e, m) || !row_estimated(e, m))
				continue;
			if (!metric) {
				labels = walk_row_set(walk, m);
				metric = walk_metric_set(walk, WALK_PREFIX, m->family);
			}
			walk_series(walk, &(struct series){ .sets = { walk->entities[i], labels, metric },
							    .value = 1,
							    .presence = PRESENCE_PRESENT,
							    .entity = i });
		}
	}
}

void walk_gpus(struct walk *walk)
{
	walk_gpu_info(walk);
	walk_mig_info(walk);
	walk_gpu_state(walk);
	walk_status(walk);
	walk_health(walk);
	walk_gpu_rows(walk);
	walk_gpu_estimates(walk);
}

/* Rounded to milliseconds. */
static double unix_seconds(int64_t real_ns)
{
	int64_t ms = real_ns / 1000000;

	return (double)ms * 1e-3;
}

/* XIDs of a GPU that NVML has never listed are labelled with its PCI address only. */
static void walk_xid(struct walk *walk, const struct xid *xid, double value)
{
	bool known = xid->entity < walk->s->entities_n;
	const struct label labels[] = { { "pci_bus_id", xid->pci_bus_id },
					{ "xid", walk_number(walk, xid->code) } };
	const struct label_set *set = walk_set(walk, false, labels + known, 2 - known);

	walk_series(walk, &(struct series){ .sets = { known ? walk->entities[xid->entity] : NULL, set },
					    .value = value,
					    .presence = PRESENCE_PRESENT,
					    .entity = known ? xid->entity : UINT32_MAX,
					    .xid = xid });
}

static bool same_gpu(const struct snapshot *s, const struct xid *a, const struct xid *b)
{
	return a->entity == b->entity &&
	       (a->entity < s->entities_n || strcmp(a->pci_bus_id, b->pci_bus_id) == 0);
}

/* All severities of a GPU, which @xid need not be of. */
static void walk_severities(struct walk *walk, const struct xid *gpu)
{
	bool known = gpu->entity < walk->s->entities_n;

	for (unsigned severity = 0; severity < XID_SEVERITIES; severity++) {
		const struct label labels[] = { { "pci_bus_id", gpu->pci_bus_id },
						{ "severity", xid_severity_name(severity) } };
		uint64_t count = 0;

		for (uint32_t i = 0; i < walk->s->xids_n; i++) {
			const struct xid *xid = &walk->s->xids[i];

			if (same_gpu(walk->s, xid, gpu) && xid_describe(xid->code)->severity == severity)
				count += xid->count;
		}
		walk_series(walk,
			    &(struct series){ .sets = { known ? walk->entities[gpu->entity] : NULL,
							walk_set(walk, false, labels + known, 2 - known) },
					      .value = (double)count,
					      .presence = PRESENCE_PRESENT,
					      .entity = known ? gpu->entity : UINT32_MAX });
	}
}

/*
 * A series by code begins with its first report, which rate() and increase() do not see; these begin with the
 * GPU.
 */
static void walk_xid_totals(struct walk *walk)
{
	const struct snapshot *s = walk->s;

	if (!walk_family_named(walk, "gpu_xid_reports_total", FAMILY_COUNTER, UNIT_NONE,
			       "XID reports since boot, by severity; 0 before the first."))
		return;
	for (uint32_t i = 0; i < s->entities_n; i++)
		if (!entity_is_mig(&s->entities[i]))
			walk_severities(walk, &(struct xid){ .entity = i });
	for (uint32_t i = 0; i < s->xids_n; i++) {
		bool first = s->xids[i].entity >= s->entities_n;

		for (uint32_t j = 0; first && j < i; j++)
			first = !same_gpu(s, &s->xids[j], &s->xids[i]);
		if (first)
			walk_severities(walk, &s->xids[i]);
	}
}

void walk_xids(struct walk *walk)
{
	walk_xid_totals(walk);
	if (walk_family_named(walk, "gpu_xid_errors_total", FAMILY_COUNTER, UNIT_NONE,
			      "XID reports since boot, by code."))
		for (uint32_t i = 0; i < walk->s->xids_n; i++)
			walk_xid(walk, &walk->s->xids[i], (double)walk->s->xids[i].count);
	if (walk_family_named(walk, "gpu_xid_last_timestamp_seconds", FAMILY_GAUGE, UNIT_SECONDS,
			      "When the XID was last reported, as Unix time."))
		for (uint32_t i = 0; i < walk->s->xids_n; i++)
			walk_xid(walk, &walk->s->xids[i], unix_seconds(walk->s->xids[i].last_real_ns));
}
