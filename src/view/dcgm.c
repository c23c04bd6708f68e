// SPDX-License-Identifier: Apache-2.0
/*
 * The page of NVIDIA's DCGM exporter, for dashboards and alerts that use its names. docs/dcgm.md describes
 * what is the same, what differs, and how certain the names of release 4.9 are.
 *
 * The format cannot mark a value as old, so a GPU whose values are stale, or that is gone, has no values here
 * except its last XID. Under MIG a number is shown where it is measured: on the instances if they have it,
 * else once on the GPU, without the instance labels. (The exporter repeats whole-GPU numbers on every
 * instance, so sums over them are wrong.)
 */
#include "view/view.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "model/xid.h"
#include "view/dcgm_owners.h"
#include "view/names.h"
#include "view/number.h"
#include "view/page.h"
#include "view/shown.h"
#include "view/tags.h"

enum { DCGM_LABELS = 9 };

/* A GPU or MIG instance: its labels, and the data for the end of the page. */
struct dcgm_entity {
	struct label labels[DCGM_LABELS];
	struct label_set set;
	char index[12], gi[12], device[24]; /* label values */
	double nvlink[2]; /* rates: out, in */
	bool has_nvlink[2];
	const struct xid *xid; /* the newest */
	bool estimated[GPU_METRICS];
};

struct dcgm_page {
	const struct snapshot *s;
	enum dcgm_names names;
	struct page page;
	struct dcgm_entity *entities;
	struct dcgm_owners owners;
	const struct metric *row; /* row of the family being written */
	struct strbuf state, reason; /* of the driver, if it gives no data */
	bool simulated;
};

static const struct {
	const char *hostname, *driver, *xid;
} label_names[DCGM_NAMES] = {
	[DCGM_NAMES_OLD] = { "Hostname", "DCGM_FI_DRIVER_VERSION", DCGM_XID_OLD },
	[DCGM_NAMES_49] = { "hostname", "DCGM_FI_SYSTEM_DRIVER_VERSION", DCGM_XID_49 },
};

/* The unit, for HELP: ours, and DCGM's where the row has a scale. */
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
 * NVML names a compute instance that is part of a GPU instance "1c.2g.10gb"; DCGM's entity is the GPU
 * instance, "2g.10gb".
 */
static const char *gpu_instance_profile(const char *profile)
{
	const char *c = profile + strspn(profile, "0123456789");

	return c > profile && strncmp(c, "c.", 2) == 0 ? c + 2 : profile;
}

/*
 * DCGM has GPU instances, not their compute instances: the first compute instance represents its GPU
 * instance.
 */
static bool is_dcgm_entity(const struct snapshot *s, uint32_t i)
{
	const struct entity *e = &s->entities[i];

	for (uint32_t k = 0; entity_is_mig(e) && k < i; k++)
		if (s->entities[k].id.parent == e->id.parent && s->entities[k].id.gi == e->id.gi &&
		    s->entities[k].present)
			return false;
	return true;
}

static void make_labels(struct dcgm_page *d, uint32_t i)
{
	const struct entity *e = &d->s->entities[i];
	const struct reading_entity *gpu = &snapshot_gpu(d->s, e)->id;
	struct dcgm_entity *to = &d->entities[i];
	uint32_t n = 0;

	snprintf(to->index, sizeof(to->index), "%u", gpu->index);
	snprintf(to->gi, sizeof(to->gi), "%u", e->id.gi);
	snprintf(to->device, sizeof(to->device), "nvidia%u", gpu->index);
	to->labels[n++] = (struct label){ "gpu", to->index };
	to->labels[n++] = (struct label){ "UUID", gpu->uuid };
	to->labels[n++] = (struct label){ "pci_bus_id", gpu->pci_bus_id };
	to->labels[n++] = (struct label){ "device", to->device };
	to->labels[n++] = (struct label){ "modelName", gpu->name };
	if (entity_is_mig(e)) {
		to->labels[n++] = (struct label){ "GPU_I_PROFILE", gpu_instance_profile(e->id.mig_profile) };
		to->labels[n++] = (struct label){ "GPU_I_ID", to->gi };
	}
	to->labels[n++] = (struct label){ label_names[d->names].hostname, d->s->hostname };
	to->labels[n].name = label_names[d->names].driver;
	to->labels[n++].value = snapshot_driver(d->s)->driver_version;
	to->set = (struct label_set){ .id = i + 1, .n = n, .labels = to->labels };
}

static bool entity_current(const struct entity *e)
{
	return e->present && !e->stale;
}

static bool row_present(const struct entity *e, const struct metric *m)
{
	return entity_current(e) && entity_shows(e, m) && presence_is(e->id.p[m->slot]);
}

/* Does an instance of the GPU at index @i have this number? */
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
 * DCGM truncates to an integer. Our base units result from multiplications (57 percent is 0.57), so a value
 * within a millionth of an integer is written as that integer.
 */
static void add_value(struct strbuf *out, double value, bool integer)
{
	if (integer)
		number_add(out, trunc(value + copysign(1e-6, value)));
	else
		number_add_fixed(out, value, 6);
	strbuf_addc(out, '\n');
}

/* OpenMetrics requires counters to end in _total; DCGM's names take precedence, so the type is "unknown". */
static void begin_family(struct dcgm_page *d, const char *name, const char *help, const char *help_more,
			 bool counter)
{
	enum family_type type = FAMILY_GAUGE;

	if (counter)
		type = d->page.format == EXPOSITION_OPENMETRICS ? FAMILY_UNKNOWN : FAMILY_COUNTER;
	page_family(&d->page,
		    &(struct family){
			    .prefix = "", .name = name, .help = help, .help_more = help_more, .type = type });
}

static const struct dcgm_name *name_of(const struct dcgm_page *d, const struct metric *m)
{
	return d->names == DCGM_NAMES_49 ? &m->dcgm49 : &m->dcgm;
}

static void begin_row(struct dcgm_page *d, const struct metric *m)
{
	const struct dcgm_name *name = name_of(d, m);

	d->row = m;
	begin_family(d, name->name, m->help, unit_words[m->unit][name->scale != 1],
		     strcmp(name->type, "counter") == 0);
}

static void add_one(struct dcgm_page *d, uint32_t entity, const struct label_set *owner, double value)
{
	const struct dcgm_name *name = name_of(d, d->row);
	const struct label_set *sets[] = { &d->entities[entity].set, owner };

	page_labels(&d->page, sets, owner ? 2 : 1);
	add_value(d->page.out, value * name->scale, name->integer);
}

/* Of a device that several share: theirs, and what is nobody's. */
static void add_shared(struct dcgm_page *d, uint32_t entity, double value)
{
	const struct dcgm_sharer *list;
	enum process_metric metric;
	uint32_t n = dcgm_sharers(&d->owners, entity, d->row, &list, &metric);
	double rest = value;

	for (uint32_t i = 0; i < n; i++) {
		add_one(d, entity, &list[i].set, list[i].v[metric]);
		rest -= list[i].v[metric];
	}
	add_one(d, entity, n > 0 ? NULL : dcgm_sole_owner(&d->owners, entity), MAX(rest, 0.0));
}

/* ---- the sink ---- */

/* Accepts the families of rows with DCGM names, and those needed for the end of the page. */
static bool dcgm_family(void *userdata, const struct family *family)
{
	const struct dcgm_page *d = userdata;

	for (unsigned i = 0; i < family->rows_n; i++) {
		const struct metric *m = &family->rows[i];

		if (name_of(d, m)->name || m == &gpu_metrics[GPU_NVLINK_TX_RATE] ||
		    m == &gpu_metrics[GPU_NVLINK_RX_RATE])
			return true;
	}
	return STRV_EQ(family->name, "gpu_xid_last_timestamp_seconds") ||
	       STRV_EQ(family->name, "node_info") || STRV_EQ(family->name, "driver_state");
}

/* Where our row has several numbers (fans), DCGM has only the first. */
static void take_row(struct dcgm_page *d, const struct series *series)
{
	const struct metric *m = series->row;
	const struct dcgm_name *name = name_of(d, m);
	struct dcgm_entity *to = &d->entities[series->entity];
	bool rx = m == &gpu_metrics[GPU_NVLINK_RX_RATE];

	if ((rx || m == &gpu_metrics[GPU_NVLINK_TX_RATE]) &&
	    entity_current(&d->s->entities[series->entity])) {
		to->nvlink[rx] = series->value;
		to->has_nvlink[rx] = true;
	}
	if (series->slot != 0 || !name->name || !printed(d->s, series->entity, m))
		return;
	if (d->row != m)
		begin_row(d, m);
	to->estimated[m - gpu_metrics] = (series->presence & PRESENCE_ESTIMATED) != 0;
	add_shared(d, series->entity, series->value);
}

static void take_xid(struct dcgm_page *d, const struct series *series)
{
	const struct xid **newest;

	if (series->entity >= d->s->entities_n)
		return;
	newest = &d->entities[series->entity].xid;
	if (!*newest || series->xid->last_real_ns > (*newest)->last_real_ns)
		*newest = series->xid;
}

static void dcgm_series(void *userdata, const struct series *series)
{
	struct dcgm_page *d = userdata;
	const char *simulated, *reason;

	if (series->row) {
		take_row(d, series);
	} else if (series->xid) {
		take_xid(d, series);
	} else if ((simulated = series_label(series, "simulated"))) {
		d->simulated = STRV_EQ(simulated, "true");
	} else if ((reason = series_label(series, "reason"))) {
		strbuf_adds(&d->reason, reason);
		strbuf_adds(&d->state, series_label(series, "state"));
	}
}

/* ---- the end of the page ---- */

static void add_sample(struct dcgm_page *d, const struct label_set *entity, const struct label_set *owner,
		       const struct label *labels, uint32_t n, double value)
{
	const struct label_set more = { .n = n, .labels = labels };

	page_series(&d->page, &(struct series){ .sets = { entity, owner, &more }, .value = value });
}

/*
 * Sum of both directions. Up to 4.8 in DCGM's MB per second (1000 KiB), with type counter although it is a
 * rate, since dashboards expect that.
 */
static void add_nvlink(struct dcgm_page *d)
{
	bool old = d->names == DCGM_NAMES_OLD;

	begin_family(d,
		     old ? "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL" :
			   "DCGM_FI_DEV_NVLINK_THROUGHPUT_BYTES_PER_SECOND",
		     "NVLink throughput of all links, both directions.",
		     unit_words[UNIT_BYTES_PER_SECOND][old], old);
	for (uint32_t i = 0; i < d->s->entities_n; i++) {
		const struct dcgm_entity *e = &d->entities[i];

		if (!e->has_nvlink[0] || !e->has_nvlink[1])
			continue;
		page_labels(&d->page, (const struct label_set *[]){ &e->set, dcgm_sole_owner(&d->owners, i) },
			    2);
		add_value(d->page.out, (e->nvlink[0] + e->nvlink[1]) * (old ? 1.0 / 1024000 : 1), true);
	}
}

/* The last XID remains shown, as in the exporter; a GPU without any has 0. */
static void add_xids(struct dcgm_page *d)
{
	begin_family(d, label_names[d->names].xid,
		     "Code of the last XID reported for the GPU, 0 when there was none.", NULL, false);
	for (uint32_t i = 0; i < d->s->entities_n; i++) {
		const struct entity *e = &d->s->entities[i];
		const struct xid *xid = d->entities[i].xid;
		char code[12];

		if (entity_is_mig(e) || (!xid && !entity_current(e)))
			continue;
		snprintf(code, sizeof(code), "%u", xid ? xid->code : 0);
		add_sample(d, &d->entities[i].set, dcgm_sole_owner(&d->owners, i),
			   (const struct label[]){
				   { "err_code", code },
				   { "err_msg", xid ? xid_describe(xid->code)->name : "No Error" } },
			   2, xid ? xid->code : 0);
	}
}

static void begin_ours(struct dcgm_page *d, const char *name, const char *help, enum family_type type)
{
	page_family(&d->page,
		    &(struct family){ .prefix = "gpusonde_", .name = name, .help = help, .type = type });
}

/* Adds our own metrics for facts that DCGM's format cannot express: simulated data and estimates. */
static void add_caveats(struct dcgm_page *d)
{
	begin_ours(d, "node_info", "What drives the GPUs of this node.", FAMILY_INFO);
	if (d->simulated)
		add_sample(d, NULL, NULL, &(struct label){ "simulated", "true" }, 1, 1);
	begin_ours(d, "node_tag_info", NODE_TAG_HELP, FAMILY_INFO);
	for (uint32_t i = 0; i < d->s->tags_n; i++)
		add_sample(d, NULL, NULL,
			   (const struct label[]){ { "key", d->s->tags[i].key },
						   { "value", d->s->tags[i].value } },
			   2, 1);
	begin_ours(d, "driver_state", DRIVER_STATE_HELP, FAMILY_GAUGE);
	if (d->reason.len > 0)
		add_sample(d, NULL, NULL,
			   (const struct label[]){ { "state", d->state.data }, { "reason", d->reason.data } },
			   2, 1);
	begin_ours(d, "gpu_estimated", "1 for a metric of this page that is an estimate, not a measurement.",
		   FAMILY_GAUGE);
	for (uint32_t i = 0; i < d->s->entities_n; i++)
		for (unsigned row = 0; row < GPU_METRICS; row++)
			if (d->entities[i].estimated[row])
				add_sample(d, &d->entities[i].set, NULL,
					   &(struct label){ "metric", name_of(d, &gpu_metrics[row])->name },
					   1, 1);
}

int view_dcgm(const struct snapshot *snapshot, enum dcgm_names names, enum exposition format,
	      struct strbuf *out)
{
	struct dcgm_page d = { .s = snapshot, .names = names };
	const struct walk_sink sink = { dcgm_family, dcgm_series, &d };
	int r = 0;

	d.entities = calloc(snapshot->entities_n + 1, sizeof(*d.entities));
	if (!d.entities)
		return -ENOMEM;
	r = dcgm_owners_init(&d.owners, snapshot);
	if (r < 0) {
		free(d.entities);
		return r;
	}
	page_init(&d.page, format, out);
	strbuf_init(&d.state, 0);
	strbuf_init(&d.reason, 0);
	for (uint32_t i = 0; i < snapshot->entities_n; i++)
		make_labels(&d, i);
	r = walk_snapshot(snapshot, WALK_GPUS | WALK_XIDS | WALK_NODE, &sink);
	if (r >= 0) {
		add_nvlink(&d);
		add_xids(&d);
		add_caveats(&d);
		r = page_end(&d.page);
	}
	if (r >= 0 && (d.state.failed || d.reason.failed))
		r = -ENOMEM;
	strbuf_done(&d.state);
	strbuf_done(&d.reason);
	page_done(&d.page);
	dcgm_owners_done(&d.owners);
	free(d.entities);
	return r;
}
