// SPDX-License-Identifier: Apache-2.0
/*
 * The page of NVIDIA's DCGM exporter, for dashboards and alerts that ask for its names. docs/dcgm.md says
 * what is the same, what is not, and how sure the names of release 4.9 are.
 *
 * That page has no way to call a value old, so a GPU whose values are stale or that is gone has none here,
 * but the XID that may explain why. Under MIG a number stands where it is measured: on the instances if they
 * have it, else once on the GPU, without the instance labels. (The exporter repeats whole-GPU numbers on
 * every instance; sums over them are wrong.)
 */
#include "view/view.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/xid.h"
#include "view/labels.h"
#include "view/names.h"
#include "view/number.h"
#include "view/page.h"
#include "view/shown.h"

struct dcgm_page {
	const struct snapshot *s;
	enum dcgm_names names;
	struct page page;
	struct labels labels; /* of each entity */
};

static const struct {
	const char *hostname, *driver, *xid;
} label_names[DCGM_NAMES] = {
	[DCGM_NAMES_OLD] = { "Hostname", "DCGM_FI_DRIVER_VERSION", "DCGM_FI_DEV_XID_ERRORS" },
	[DCGM_NAMES_49] = { "hostname", "DCGM_FI_SYSTEM_DRIVER_VERSION", "DCGM_FI_DEV_XID_ERROR" },
};

/* The unit, for HELP: ours, and the other one that DCGM uses where the row has a scale. */
static const char *const unit_words[UNIT_MAX][2] = {
	[UNIT_NONE] = { "", "" },
	[UNIT_RATIO] = { " As a ratio.", " In percent." },
	[UNIT_BYTES] = { " In bytes.", " In MiB." },
	[UNIT_BYTES_PER_SECOND] = { " In bytes per second.", " In MB per second." },
	[UNIT_SECONDS] = { " In seconds.", " In nanoseconds." },
	[UNIT_WATTS] = { " In watts.", " In watts." },
	[UNIT_JOULES] = { " In joules.", " In millijoules." },
	[UNIT_CELSIUS] = { " In degrees Celsius.", " In degrees Celsius." },
	[UNIT_HERTZ] = { " In hertz.", " In MHz." },
	[UNIT_BYTE_SECONDS] = { " In byte seconds.", " In byte seconds." },
};

/*
 * NVML names an instance of part of a GPU instance "1c.2g.10gb"; DCGM's entity is the GPU instance,
 * "2g.10gb".
 */
static const char *gpu_instance_profile(const char *profile)
{
	const char *c = profile + strspn(profile, "0123456789");

	return c > profile && strncmp(c, "c.", 2) == 0 ? c + 2 : profile;
}

/* DCGM knows GPU instances, not the compute instances in them: the first one speaks for its GPU instance. */
static bool is_dcgm_entity(const struct snapshot *s, uint32_t i)
{
	const struct entity *e = &s->entities[i];

	for (uint32_t k = 0; entity_is_mig(e) && k < i; k++)
		if (s->entities[k].id.parent == e->id.parent && s->entities[k].id.gi == e->id.gi &&
		    s->entities[k].present)
			return false;
	return true;
}

static int make_labels(struct dcgm_page *d)
{
	struct strbuf entry;
	char device[24];
	int r = labels_init(&d->labels, d->s->entities_n);

	if (r < 0)
		return r;
	strbuf_init(&entry, 0);
	for (uint32_t i = 0; i < d->s->entities_n; i++) {
		const struct entity *e = &d->s->entities[i];
		const struct reading_entity *gpu = &snapshot_gpu(d->s, e)->id;

		strbuf_reset(&entry);
		label_add_u64(&entry, "gpu", gpu->index);
		label_add(&entry, "UUID", gpu->uuid);
		label_add(&entry, "pci_bus_id", gpu->pci_bus_id);
		snprintf(device, sizeof(device), "nvidia%u", gpu->index);
		label_add(&entry, "device", device);
		label_add(&entry, "modelName", gpu->name);
		if (entity_is_mig(e)) {
			label_add(&entry, "GPU_I_PROFILE", gpu_instance_profile(e->id.mig_profile));
			label_add_u64(&entry, "GPU_I_ID", e->id.gi);
		}
		label_add(&entry, label_names[d->names].hostname, d->s->hostname);
		label_add(&entry, label_names[d->names].driver, snapshot_driver(d->s)->driver_version);
		labels_add(&d->labels, &entry);
	}
	strbuf_done(&entry);
	return labels_check(&d->labels);
}

static bool entity_current(const struct entity *e)
{
	return e->present && !e->stale;
}

static bool row_present(const struct entity *e, const struct metric *m)
{
	return entity_current(e) && entity_shows(e, m) && presence_is(e->id.p[m->slot]);
}

/* Has an instance of the GPU at @i this number? */
static bool measured_on_instances(const struct snapshot *s, uint32_t i, const struct metric *m)
{
	for (uint32_t k = 0; k < s->entities_n; k++)
		if (s->entities[k].id.parent == i && row_present(&s->entities[k], m))
			return true;
	return false;
}

static bool printed(const struct snapshot *s, uint32_t i, const struct metric *m)
{
	const struct entity *e = &s->entities[i];

	if (!row_present(e, m))
		return false;
	return entity_is_mig(e) ? is_dcgm_entity(s, i) : !measured_on_instances(s, i, m);
}

/*
 * DCGM cuts to an integer. Our base units come of multiplications (57 percent is 0.57), so what misses an
 * integer by less than a millionth is meant to be it.
 */
static void add_value(struct strbuf *out, double value, bool integer)
{
	if (integer)
		number_add(out, trunc(value + copysign(1e-6, value)));
	else
		number_add_fixed(out, value, 6);
	strbuf_addc(out, '\n');
}

/* OpenMetrics wants counters to end in _total; keeping DCGM's name matters more, and "unknown" allows any. */
static void begin(struct dcgm_page *d, const char *name, const char *help, const char *help_more,
		  bool counter)
{
	enum family_type type = FAMILY_GAUGE;

	if (counter)
		type = d->page.format == EXPOSITION_OPENMETRICS ? FAMILY_UNKNOWN : FAMILY_COUNTER;
	page_family(&d->page, &(struct family){ "", name, help, help_more, type, UNIT_NONE });
}

static void add_row(struct dcgm_page *d, const struct metric *m)
{
	const struct dcgm_name *name = d->names == DCGM_NAMES_49 ? &m->dcgm49 : &m->dcgm;

	if (!name->name)
		return;
	begin(d, name->name, m->help, unit_words[m->unit][name->scale != 1],
	      strcmp(name->type, "counter") == 0);
	for (uint32_t i = 0; i < d->s->entities_n; i++) {
		if (!printed(d->s, i, m))
			continue;
		/* Where our row has several (fans), DCGM has the first. */
		page_labels(&d->page, labels_get(&d->labels, i), "", NULL, 0);
		add_value(d->page.out, d->s->entities[i].id.v[m->slot] * name->scale, name->integer);
	}
}

/*
 * Both directions together: up to 4.8 in DCGM's MB per second, which are 1000 KiB, typed a counter though it
 * is a rate, because dashboards were written for that.
 */
static void add_nvlink(struct dcgm_page *d)
{
	const struct metric *tx = &gpu_metrics[GPU_NVLINK_TX_RATE], *rx = &gpu_metrics[GPU_NVLINK_RX_RATE];
	bool old = d->names == DCGM_NAMES_OLD;

	begin(d,
	      old ? "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL" : "DCGM_FI_DEV_NVLINK_THROUGHPUT_BYTES_PER_SECOND",
	      "NVLink throughput of all links, both directions.", unit_words[UNIT_BYTES_PER_SECOND][old],
	      old);
	for (uint32_t i = 0; i < d->s->entities_n; i++) {
		const struct entity *e = &d->s->entities[i];

		if (!row_present(e, tx) || !row_present(e, rx))
			continue;
		page_labels(&d->page, labels_get(&d->labels, i), "", NULL, 0);
		add_value(d->page.out, (e->id.v[tx->slot] + e->id.v[rx->slot]) * (old ? 1.0 / 1024000 : 1),
			  true);
	}
}

static const struct xid *newest_xid(const struct snapshot *s, uint32_t entity)
{
	const struct xid *newest = NULL;

	for (uint32_t i = 0; i < s->xids_n; i++)
		if (s->xids[i].entity == entity &&
		    (!newest || s->xids[i].last_real_ns > newest->last_real_ns))
			newest = &s->xids[i];
	return newest;
}

/* The last XID stays, as the exporter keeps it; a GPU without any has 0. */
static int add_xids(struct dcgm_page *d)
{
	struct strbuf tail;
	int r;

	strbuf_init(&tail, 0);
	begin(d, label_names[d->names].xid,
	      "Code of the last XID reported for the GPU, 0 when there was none.", NULL, false);
	for (uint32_t i = 0; i < d->s->entities_n; i++) {
		const struct entity *e = &d->s->entities[i];
		const struct xid *xid = newest_xid(d->s, i);

		if (entity_is_mig(e) || (!xid && !entity_current(e)))
			continue;
		strbuf_reset(&tail);
		label_add_u64(&tail, "err_code", xid ? xid->code : 0);
		label_add(&tail, "err_msg", xid ? xid_describe(xid->code)->name : "No Error");
		page_sample(&d->page, labels_get(&d->labels, i), tail.data, xid ? xid->code : 0);
	}
	r = tail.failed ? -ENOMEM : 0;
	strbuf_done(&tail);
	return r;
}

static void begin_ours(struct dcgm_page *d, const char *name, const char *help, enum family_type type)
{
	page_family(&d->page, &(struct family){ "gpusonde_", name, help, NULL, type, UNIT_NONE });
}

/* What DCGM's format has no words for: that nothing of it is real, and which numbers are no measurements. */
static int add_caveats(struct dcgm_page *d)
{
	struct strbuf tail;
	int r;

	strbuf_init(&tail, 0);
	begin_ours(d, "node_info", "What drives the GPUs of this node.", FAMILY_INFO);
	if (d->s->simulated)
		page_sample(&d->page, "", "simulated=\"true\"", 1);
	begin_ours(d, "driver_state", DRIVER_STATE_HELP, FAMILY_GAUGE);
	if (*driver_state_reason(d->s)) {
		label_add(&tail, "state", driver_state_name(d->s));
		label_add(&tail, "reason", driver_state_reason(d->s));
		page_sample(&d->page, "", tail.data, 1);
	}
	begin_ours(d, "gpu_estimated",
		   "1 for a metric of this page that is computed from something weaker than a measurement of "
		   "it.",
		   FAMILY_GAUGE);
	for (uint32_t i = 0; i < d->s->entities_n; i++) {
		for (unsigned row = 0; row < GPU_METRICS; row++) {
			const struct metric *m = &gpu_metrics[row];
			const char *name = d->names == DCGM_NAMES_49 ? m->dcgm49.name : m->dcgm.name;

			if (!name || !printed(d->s, i, m) ||
			    !(d->s->entities[i].id.p[m->slot] & PRESENCE_ESTIMATED))
				continue;
			strbuf_reset(&tail);
			label_add(&tail, "metric", name);
			page_sample(&d->page, labels_get(&d->labels, i), tail.data, 1);
		}
	}
	r = tail.failed ? -ENOMEM : 0;
	strbuf_done(&tail);
	return r;
}

int view_dcgm(const struct snapshot *snapshot, enum dcgm_names names, enum exposition format,
	      struct strbuf *out)
{
	struct dcgm_page d = { .s = snapshot, .names = names };
	int r = make_labels(&d);

	page_init(&d.page, format, out);
	if (r >= 0) {
		for (unsigned row = 0; row < GPU_METRICS; row++)
			add_row(&d, &gpu_metrics[row]);
		add_nvlink(&d);
		r = add_xids(&d);
	}
	if (r >= 0)
		r = add_caveats(&d);
	if (r >= 0)
		r = page_end(&d.page);
	labels_done(&d.labels);
	return r;
}
