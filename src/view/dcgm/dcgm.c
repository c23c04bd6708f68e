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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "view/dcgm/page.h"
#include "view/dcgm/shown.h"
#include "view/names.h"
#include "view/number.h"
#include "view/shown.h"

static const struct {
	const char *hostname;
	struct dcgm_label_field driver; /* the only such label where no file names others */
} label_names[DCGM_NAMES] = {
	[DCGM_NAMES_OLD] = { "Hostname", { "DCGM_FI_DRIVER_VERSION", DCGM_TEXT_DRIVER } },
	[DCGM_NAMES_49] = { "hostname", { "DCGM_FI_SYSTEM_DRIVER_VERSION", DCGM_TEXT_DRIVER } },
};

const char *const dcgm_unit_words[UNIT_MAX][2] = {
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

static const char *label_text(const struct snapshot *s, const struct reading_entity *gpu, enum dcgm_text text)
{
	switch (text) {
	case DCGM_TEXT_DRIVER:
		return snapshot_driver(s)->driver_version;
	case DCGM_TEXT_NVML:
		return snapshot_driver(s)->library_version;
	case DCGM_TEXT_NAME:
		return gpu->name;
	case DCGM_TEXT_UUID:
		return gpu->uuid;
	case DCGM_TEXT_SERIAL:
		return gpu->serial;
	case DCGM_TEXT_VBIOS:
		return gpu->vbios;
	case DCGM_TEXT_PCI_BUS_ID:
		return gpu->pci_bus_id;
	case DCGM_TEXTS:
		break;
	}
	return "";
}

static const char *model_name(const struct dcgm_page *d, struct dcgm_entity *to, const char *name)
{
	if (!d->style.model_dashes)
		return name;
	snprintf(to->model, sizeof(to->model), "%s", name);
	for (char *c = to->model; (c = strchr(c, ' '));)
		*c = '-';
	return to->model;
}

/* Labels that are fields: those of the file, else the driver's version. */
static uint32_t add_label_fields(const struct dcgm_page *d, const struct reading_entity *gpu,
				 struct label *labels)
{
	const struct dcgm_label_field *fields = &label_names[d->style.names].driver;
	uint32_t n = 1;

	if (d->style.fields) {
		fields = d->style.fields->labels;
		n = d->style.fields->labels_n;
	}
	for (uint32_t i = 0; i < n; i++)
		labels[i] = (struct label){ fields[i].name, label_text(d->s, gpu, fields[i].text) };
	return n;
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
	to->labels[n++] = (struct label){ "modelName", model_name(d, to, gpu->name) };
	if (entity_is_mig(e)) {
		to->labels[n++] = (struct label){ "GPU_I_PROFILE", dcgm_profile(e->id.mig_profile) };
		to->labels[n++] = (struct label){ "GPU_I_ID", to->gi };
	}
	if (!d->style.no_hostname)
		to->labels[n++] =
			(struct label){ label_names[d->style.names].hostname, snapshot_node_name(d->s) };
	n += add_label_fields(d, gpu, to->labels + n);
	to->set = (struct label_set){ .id = i + 1, .n = n, .labels = to->labels };
}

bool dcgm_entity_current(const struct entity *e)
{
	return e->present && !e->stale;
}

static bool printed(const struct snapshot *s, uint32_t i, const struct metric *m)
{
	return dcgm_entity_current(&s->entities[i]) && dcgm_stands(s, i, m);
}

void dcgm_add_value(struct strbuf *out, double value, bool integer)
{
	if (integer)
		number_add(out, dcgm_whole(value));
	else
		number_add_fixed(out, value, 6);
	strbuf_addc(out, '\n');
}

/* OpenMetrics requires counters to end in _total; DCGM's names take precedence, so the type is "unknown". */
void dcgm_begin_family(struct dcgm_page *d, const char *name, const char *help, const char *help_more,
		       bool counter)
{
	enum family_type type = FAMILY_GAUGE;

	if (counter)
		type = d->page.format == EXPOSITION_OPENMETRICS ? FAMILY_UNKNOWN : FAMILY_COUNTER;
	page_family(&d->page,
		    &(struct family){
			    .prefix = "", .name = name, .help = help, .help_more = help_more, .type = type });
}

/* What the file says of a metric; NULL: there is no file. */
static const struct dcgm_field *field_of(const struct dcgm_page *d, const struct metric *m)
{
	return d->style.fields ? &d->style.fields->rows[m - gpu_metrics] : NULL;
}

const struct dcgm_name *dcgm_name_of(const struct dcgm_page *d, const struct metric *m)
{
	const struct dcgm_field *field = field_of(d, m);

	if (field && (!field->name.name || d->style.names == DCGM_NAMES_OLD))
		return &field->name;
	return d->style.names == DCGM_NAMES_49 ? &m->dcgm49 : &m->dcgm;
}

const char *dcgm_help_of(const struct dcgm_field *field, const struct dcgm_name *name)
{
	return field && STRV_EQ(field->name.name, name->name) ? field->help : NULL;
}

static void begin_row(struct dcgm_page *d, const struct metric *m)
{
	const struct dcgm_name *name = dcgm_name_of(d, m);
	const char *help = dcgm_help_of(field_of(d, m), name);

	d->row = m;
	dcgm_begin_family(d, name->name, help ? help : m->help,
			  help ? NULL : dcgm_unit_words[m->unit][name->scale != 1],
			  strcmp(name->type, "counter") == 0);
}

static void add_one(struct dcgm_page *d, uint32_t entity, const struct label_set *owner, double value)
{
	const struct dcgm_name *name = dcgm_name_of(d, d->row);
	const struct label_set *sets[] = { &d->entities[entity].set, owner };

	page_labels(&d->page, sets, owner ? 2 : 1);
	dcgm_add_value(d->page.out, value * name->scale, name->integer);
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

		if (dcgm_name_of(d, m)->name || m == &gpu_metrics[GPU_NVLINK_TX_RATE] ||
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
	const struct dcgm_name *name = dcgm_name_of(d, m);
	struct dcgm_entity *to = &d->entities[series->entity];
	bool rx = m == &gpu_metrics[GPU_NVLINK_RX_RATE];

	if ((rx || m == &gpu_metrics[GPU_NVLINK_TX_RATE]) &&
	    dcgm_entity_current(&d->s->entities[series->entity])) {
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

int view_dcgm(const struct snapshot *snapshot, const struct dcgm_style *style, enum exposition format,
	      struct strbuf *out)
{
	struct dcgm_page d = { .s = snapshot, .style = *style };
	const struct walk_sink sink = { dcgm_family, dcgm_series, &d };
	int r = 0;

	d.entities = calloc(snapshot->entities_n + 1, sizeof(*d.entities));
	d.tags = calloc(TAGS_MAX, sizeof(*d.tags));
	r = d.entities && d.tags ? dcgm_owners_init(&d.owners, snapshot) : -ENOMEM;
	if (r < 0) {
		free(d.entities);
		free(d.tags);
		return r;
	}
	page_init(&d.page, format, out);
	strbuf_init(&d.state, 0);
	strbuf_init(&d.reason, 0);
	for (uint32_t i = 0; i < snapshot->entities_n; i++)
		make_labels(&d, i);
	r = walk_snapshot(snapshot, WALK_GPUS | WALK_XIDS | WALK_NODE, &sink);
	if (r >= 0) {
		dcgm_add_extras(&d);
		r = page_end(&d.page);
	}
	if (r >= 0 && (d.state.failed || d.reason.failed))
		r = -ENOMEM;
	strbuf_done(&d.state);
	strbuf_done(&d.reason);
	page_done(&d.page);
	dcgm_owners_done(&d.owners);
	free(d.entities);
	free(d.tags);
	return r;
}
