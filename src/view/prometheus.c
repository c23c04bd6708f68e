// SPDX-License-Identifier: Apache-2.0
#include "view/prometheus.h"

#include <errno.h>
#include <string.h>

#include "config.h"
#include "view/names.h"
#include "view/number.h"
#include "view/shown.h"
#include "view/view.h"

#define PREFIX "gpusonde_"

const char *row_labels(const struct metric *metric, struct strbuf *out)
{
	strbuf_reset(out);
	if (metric->label)
		label_add(out, metric->label, metric->value);
	if (metric->label2)
		label_add(out, metric->label2, metric->value2);
	return out->data;
}

void family_of(const struct metric *metric, const char *prefix, const char *name, struct family *ret_family)
{
	*ret_family = (struct family){
		.prefix = prefix,
		.name = name,
		.help = metric->help,
		.type = metric_is_counter(metric) ? FAMILY_COUNTER : FAMILY_GAUGE,
		.unit = metric->unit,
	};
}

unsigned family_end(const struct metric *rows, unsigned n, unsigned i)
{
	const char *family = rows[i].family;

	while (i < n && strcmp(rows[i].family, family) == 0)
		i++;
	return i;
}

static void begin(struct exposition_page *p, const char *name, enum family_type type, enum metric_unit unit,
		  const char *help)
{
	page_family(&p->page, &(struct family){ PREFIX, name, help, NULL, type, unit });
}

static int make_entity_labels(struct exposition_page *p)
{
	struct strbuf entry;
	int r = labels_init(&p->entities, p->s->entities_n);

	if (r < 0)
		return r;
	strbuf_init(&entry, 0);
	for (uint32_t i = 0; i < p->s->entities_n; i++) {
		const struct entity *e = &p->s->entities[i];
		const struct entity *gpu = snapshot_gpu(p->s, e);

		strbuf_reset(&entry);
		label_add_u64(&entry, "gpu", gpu->id.index);
		label_add(&entry, "uuid", gpu->id.uuid);
		if (entity_is_mig(e)) {
			label_add_u64(&entry, "gi", e->id.gi);
			label_add_u64(&entry, "ci", e->id.ci);
		}
		labels_add(&p->entities, &entry);
	}
	strbuf_done(&entry);
	return labels_check(&p->entities);
}

static void add_gpu_info(struct exposition_page *p, struct strbuf *tail)
{
	begin(p, "gpu_info", FAMILY_INFO, UNIT_NONE,
	      "What the GPU is; join other series with it on gpu and uuid.");
	for (uint32_t i = 0; i < p->s->entities_n; i++) {
		const struct reading_entity *id = &p->s->entities[i].id;

		if (entity_is_mig(&p->s->entities[i]))
			continue;
		strbuf_reset(tail);
		label_add(tail, "pci_bus_id", id->pci_bus_id);
		label_add(tail, "model", id->name);
		label_add(tail, "driver", snapshot_driver(p->s)->driver_version);
		label_add(tail, "vbios", id->vbios);
		label_add(tail, "serial", id->serial);
		label_add(tail, "architecture", id->architecture);
		label_add(tail, "compute_capability", id->compute_capability);
		label_add(tail, "simulated", p->s->simulated ? "true" : "false");
		page_sample(&p->page, labels_get(&p->entities, i), tail->data, 1);
	}
	begin(p, "mig_info", FAMILY_INFO, UNIT_NONE,
	      "What the MIG instance is; join other series with it on uuid, gi and ci.");
	for (uint32_t i = 0; i < p->s->entities_n; i++) {
		const struct entity *e = &p->s->entities[i];

		if (!entity_is_mig(e) || !entity_shown(e))
			continue;
		strbuf_reset(tail);
		label_add(tail, "mig_uuid", e->id.mig_uuid);
		label_add(tail, "profile", e->id.mig_profile);
		page_sample(&p->page, labels_get(&p->entities, i), tail->data, 1);
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

/*
 * Whether the numbers that follow are to be believed; for whole GPUs, as an instance shares its GPU's fate
 * and readings.
 */
static void add_gpu_state(struct exposition_page *p)
{
	static const struct {
		const char *name;
		enum metric_unit unit;
		const char *help;
		double (*value)(const struct snapshot *s, const struct entity *e);
	} families[] = {
		{ "gpu_present", UNIT_NONE,
		  "1 while the driver lists the GPU, 0 since it was lost or removed.", entity_present },
		{ "gpu_stale", UNIT_NONE, "1 while the newest values of the GPU are too old to be current.",
		  entity_stale },
		{ "gpu_sample_age_seconds", UNIT_SECONDS, "Time since the newest good reading of the GPU.",
		  entity_age_seconds },
	};

	for (size_t f = 0; f < ARRAY_SIZE(families); f++) {
		begin(p, families[f].name, FAMILY_GAUGE, families[f].unit, families[f].help);
		for (uint32_t i = 0; i < p->s->entities_n; i++) {
			const struct entity *e = &p->s->entities[i];
			double value = families[f].value(p->s, e);

			if (!entity_is_mig(e) && value >= 0)
				page_sample(&p->page, labels_get(&p->entities, i), "", value);
		}
	}
}

static void add_gpu_row(struct exposition_page *p, const struct metric *m, const char *tail)
{
	for (uint32_t i = 0; i < p->s->entities_n; i++) {
		const struct entity *e = &p->s->entities[i];

		if (!entity_shows(e, m))
			continue;
		for (unsigned k = 0; k < m->count; k++) {
			unsigned slot = m->slot + k;

			if (!presence_is(e->id.p[slot]))
				continue;
			page_labels(&p->page, labels_get(&p->entities, i), tail, m->index, k);
			number_add(p->page.out, e->id.v[slot]);
			strbuf_addc(p->page.out, '\n');
		}
	}
}

static void add_gpu_rows(struct exposition_page *p, struct strbuf *tail)
{
	for (unsigned first = 0, end; first < GPU_METRICS; first = end) {
		struct family family;

		end = family_end(gpu_metrics, GPU_METRICS, first);
		family_of(&gpu_metrics[first], PREFIX, gpu_metrics[first].family, &family);
		page_family(&p->page, &family);
		for (unsigned i = first; i < end; i++)
			add_gpu_row(p, &gpu_metrics[i], row_labels(&gpu_metrics[i], tail));
	}
}

static bool row_estimated(const struct entity *e, const struct metric *m)
{
	for (unsigned k = 0; k < m->count; k++) {
		uint8_t presence = e->id.p[m->slot + k];

		if (presence_is(presence) && (presence & PRESENCE_ESTIMATED))
			return true;
	}
	return false;
}

static void add_estimated(struct exposition_page *p, struct strbuf *tail, struct strbuf *name)
{
	begin(p, "gpu_estimated", FAMILY_GAUGE, UNIT_NONE,
	      "1 for each metric whose value is computed from something weaker than a measurement of it.");
	for (unsigned row = 0; row < GPU_METRICS; row++) {
		const struct metric *m = &gpu_metrics[row];

		for (uint32_t i = 0; i < p->s->entities_n; i++) {
			const struct entity *e = &p->s->entities[i];

			if (!entity_shows(e, m) || !row_estimated(e, m))
				continue;
			strbuf_reset(name);
			strbuf_adds(name, PREFIX);
			strbuf_adds(name, m->family);
			row_labels(m, tail);
			label_add(tail, "metric", name->data);
			page_sample(&p->page, labels_get(&p->entities, i), tail->data, 1);
		}
	}
}

/* To the millisecond: more digits than that are not meant. */
static double unix_seconds(int64_t real_ns)
{
	int64_t ms = real_ns / 1000000;

	return (double)ms * 1e-3;
}

/* XIDs of a GPU that NVML has never shown carry its PCI address: it is all that is known of it. */
static void add_xids(struct exposition_page *p, struct strbuf *tail)
{
	for (int pass = 0; pass < 2; pass++) {
		if (pass == 0)
			begin(p, "gpu_xid_errors_total", FAMILY_COUNTER, UNIT_NONE,
			      "XID reports since boot, by code.");
		else
			begin(p, "gpu_xid_last_timestamp_seconds", FAMILY_GAUGE, UNIT_SECONDS,
			      "When the XID was last reported, as Unix time.");
		for (uint32_t i = 0; i < p->s->xids_n; i++) {
			const struct xid *xid = &p->s->xids[i];
			bool known = xid->entity < p->s->entities_n;

			strbuf_reset(tail);
			if (!known)
				label_add(tail, "pci_bus_id", xid->pci_bus_id);
			label_add_u64(tail, "xid", xid->code);
			page_sample(&p->page, known ? labels_get(&p->entities, xid->entity) : "", tail->data,
				    pass == 0 ? (double)xid->count : unix_seconds(xid->last_real_ns));
		}
	}
}

static void add_node(struct exposition_page *p, struct strbuf *tail)
{
	const struct snapshot *s = p->s;
	const struct source *driver = snapshot_driver(s);
	char cuda[16];
	unsigned present = 0, absent = 0;

	begin(p, "build_info", FAMILY_INFO, UNIT_NONE, "Version of gpusonde.");
	strbuf_reset(tail);
	label_add(tail, "version", GPUSONDE_VERSION);
	page_sample(&p->page, "", tail->data, 1);
	cuda_version_text(driver->cuda_version, cuda);
	begin(p, "node_info", FAMILY_INFO, UNIT_NONE, "What drives the GPUs of this node.");
	strbuf_reset(tail);
	label_add(tail, "driver", driver->driver_version);
	label_add(tail, "nvml", driver->library_version);
	label_add(tail, "cuda", cuda);
	label_add(tail, "simulated", s->simulated ? "true" : "false");
	page_sample(&p->page, "", tail->data, 1);
	begin(p, "driver_state", FAMILY_GAUGE, UNIT_NONE, DRIVER_STATE_HELP);
	strbuf_reset(tail);
	label_add(tail, "state", driver_state_name(s));
	label_add(tail, "reason", driver_state_reason(s));
	page_sample(&p->page, "", tail->data, 1);
	begin(p, "up", FAMILY_GAUGE, UNIT_NONE,
	      "1 while the agent's data are fresh, on a node without GPUs too.");
	page_sample(&p->page, "", "", s->fresh);
	for (uint32_t i = 0; i < s->entities_n; i++)
		if (!entity_is_mig(&s->entities[i])) {
			present += s->entities[i].present;
			absent += !s->entities[i].present;
		}
	begin(p, "node_gpus", FAMILY_GAUGE, UNIT_NONE,
	      "GPUs of the node that this agent has seen, by state.");
	page_sample(&p->page, "", "state=\"present\"", present);
	page_sample(&p->page, "", "state=\"absent\"", absent);
}

static void add_agent(struct exposition_page *p, struct strbuf *tail)
{
	for (unsigned first = 0, end; first < AGENT_METRICS; first = end) {
		struct family family;

		end = family_end(agent_metrics, AGENT_METRICS, first);
		family_of(&agent_metrics[first], PREFIX, agent_metrics[first].family, &family);
		page_family(&p->page, &family);
		for (unsigned i = first; i < end; i++)
			if (presence_is(p->s->agent_p[i]))
				page_sample(&p->page, "", row_labels(&agent_metrics[i], tail),
					    p->s->agent[i]);
	}
}

static void add_rejected_rows(struct exposition_page *p, struct strbuf *tail, const struct metric *rows,
			      const uint64_t *rejected, unsigned n, bool process)
{
	char field[FIELD_NAME_MAX];

	for (unsigned i = 0; i < n; i++) {
		if (rejected[i] == 0)
			continue;
		rejected_field_name(&rows[i], process, field);
		strbuf_reset(tail);
		label_add(tail, "field", field);
		page_sample(&p->page, "", tail->data, (double)rejected[i]);
	}
}

static void add_rejected(struct exposition_page *p, struct strbuf *tail)
{
	begin(p, "rejected_samples_total", FAMILY_COUNTER, UNIT_NONE,
	      "Values from the driver that cannot be true and were left out, by field.");
	add_rejected_rows(p, tail, gpu_metrics, p->s->rejected, GPU_METRICS, false);
	add_rejected_rows(p, tail, process_metrics, p->s->rejected_process, PROCESS_METRICS, true);
}

int view_prometheus(const struct snapshot *snapshot, enum exposition format, struct strbuf *out)
{
	struct exposition_page p = { .s = snapshot };
	struct strbuf tail, name;
	int r;

	page_init(&p.page, format, out);
	strbuf_init(&tail, 0);
	strbuf_init(&name, 0);
	r = make_entity_labels(&p);
	if (r < 0)
		goto finish;
	add_gpu_info(&p, &tail);
	add_gpu_state(&p);
	add_gpu_rows(&p, &tail);
	add_estimated(&p, &tail, &name);
	add_xids(&p, &tail);
	r = prometheus_processes(&p);
	if (r < 0)
		goto finish;
	r = prometheus_workloads(&p);
	if (r < 0)
		goto finish;
	r = prometheus_trace(&p);
	if (r < 0)
		goto finish;
	r = prometheus_kernels(&p);
	if (r < 0)
		goto finish;
	r = prometheus_calls(&p);
	if (r < 0)
		goto finish;
	add_node(&p, &tail);
	add_agent(&p, &tail);
	add_rejected(&p, &tail);
	r = page_end(&p.page);
finish:
	if (r >= 0 && (tail.failed || name.failed))
		r = -ENOMEM;
	strbuf_done(&name);
	strbuf_done(&tail);
	labels_done(&p.entities);
	return r;
}
