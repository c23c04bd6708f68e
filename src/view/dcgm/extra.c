// SPDX-License-Identifier: Apache-2.0
/* The end of DCGM's page: what is in no row of metrics.def. */
#include "view/dcgm/page.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/macro.h"
#include "model/xid.h"
#include "view/names.h"
#include "view/shown.h"
#include "view/tags.h"

/* Begins a family that is in no row, and gives its columns; NULL: the page, or this generation, has none. */
static const struct dcgm_name *begin_extra(struct dcgm_page *d, enum dcgm_extra extra, const char *help,
					   const char *help_more)
{
	const struct dcgm_field *field = d->style.fields ? &d->style.fields->extras[extra] : NULL;
	const struct dcgm_name *name = &dcgm_extras[extra][d->style.names];
	const char *chosen;

	if (field && !field->name.name)
		return NULL;
	if (field && d->style.names == DCGM_NAMES_OLD)
		name = &field->name;
	if (!name->name)
		return NULL;
	chosen = dcgm_help_of(field, name);
	dcgm_begin_family(d, name->name, chosen ? chosen : help, chosen ? NULL : help_more,
			  strcmp(name->type, "counter") == 0);
	return name;
}

static void add_sample(struct dcgm_page *d, const struct label_set *entity, const struct label_set *owner,
		       const struct label *labels, uint32_t n, double value)
{
	const struct label_set more = { .n = n, .labels = labels };

	page_series(&d->page, &(struct series){ .sets = { entity, owner, &more }, .value = value });
}

static void add_nvlink(struct dcgm_page *d)
{
	const struct dcgm_name *name =
		begin_extra(d, DCGM_EXTRA_NVLINK, "NVLink throughput of all links, both directions.",
			    dcgm_unit_words[UNIT_BYTES_PER_SECOND][d->style.names == DCGM_NAMES_OLD]);

	for (uint32_t i = 0; name && i < d->s->entities_n; i++) {
		const struct dcgm_entity *e = &d->entities[i];

		if (!e->has_nvlink[0] || !e->has_nvlink[1])
			continue;
		page_labels(&d->page, (const struct label_set *[]){ &e->set, dcgm_sole_owner(&d->owners, i) },
			    2);
		dcgm_add_value(d->page.out, (e->nvlink[0] + e->nvlink[1]) * name->scale, name->integer);
	}
}

static bool entity_has(const struct dcgm_page *d, uint32_t i, unsigned slot)
{
	const struct entity *e = &d->s->entities[i];

	return dcgm_entity_current(e) && presence_is(e->id.p[slot]);
}

static void add_links(struct dcgm_page *d)
{
	for (unsigned link = 0; link < DCGM_LINKS; link++) {
		const struct dcgm_name *name = begin_extra(d, DCGM_EXTRA_LINK + link,
							   "NVLink throughput of the link, both directions.",
							   dcgm_unit_words[UNIT_BYTES_PER_SECOND][1]);
		unsigned slot = SLOT_NVLINK_LINK_RATE + link;

		for (uint32_t i = 0; name && i < d->s->entities_n; i++) {
			if (!entity_has(d, i, slot))
				continue;
			page_labels(&d->page,
				    (const struct label_set *[]){ &d->entities[i].set,
								  dcgm_sole_owner(&d->owners, i) },
				    2);
			dcgm_add_value(d->page.out, d->s->entities[i].id.v[slot] * name->scale,
				       name->integer);
		}
	}
}

/* The last XID remains shown, as in the exporter; a GPU without any has 0. */
static void add_xids(struct dcgm_page *d)
{
	if (!begin_extra(d, DCGM_EXTRA_XID,
			 "Code of the last XID reported for the GPU, 0 when there was none.", NULL))
		return;
	for (uint32_t i = 0; i < d->s->entities_n; i++) {
		const struct entity *e = &d->s->entities[i];
		const struct xid *xid = d->entities[i].xid;
		char code[12];

		if (entity_is_mig(e) || (!xid && !dcgm_entity_current(e)))
			continue;
		snprintf(code, sizeof(code), "%u", xid ? xid->code : 0);
		add_sample(d, &d->entities[i].set, dcgm_sole_owner(&d->owners, i),
			   (const struct label[]){
				   { "err_code", code },
				   { "err_msg", xid ? xid_describe(xid->code)->name : "No Error" } },
			   2, xid ? xid->code : 0);
	}
}

/* Reports of the code on the GPU in the window, which is short of the newest XID_REPORTS_MAX in a flood. */
static unsigned recent_xids(const struct dcgm_page *d, uint32_t entity, uint32_t code)
{
	int64_t since_ns = d->s->real_ns - d->style.xid_window_ns;
	unsigned n = 0;

	for (uint32_t i = 0; i < d->s->xid_events_n; i++) {
		const struct xid_event *event = &d->s->xid_events[i];

		n += event->entity == entity && event->code == code && event->real_ns > since_ns;
	}
	return n;
}

static void window_text(int64_t window_ns, char out[static 24])
{
	snprintf(out, 24, "%lld", (long long)(window_ns / NSEC_PER_MSEC));
}

static void add_xid_counts(struct dcgm_page *d)
{
	char window[24], code[12];

	if (!begin_extra(d, DCGM_EXTRA_XID_COUNT, "XID errors within the window, by code.", NULL))
		return;
	window_text(d->style.xid_window_ns, window);
	for (uint32_t i = 0; i < d->s->xids_n; i++) {
		const struct xid *xid = &d->s->xids[i];
		unsigned n = recent_xids(d, xid->entity, xid->code);

		if (n == 0 || xid->entity >= d->s->entities_n)
			continue;
		snprintf(code, sizeof(code), "%u", xid->code);
		add_sample(d, &d->entities[xid->entity].set, dcgm_sole_owner(&d->owners, xid->entity),
			   (const struct label[]){ { "window_size_in_ms", window }, { "xid", code } }, 2, n);
	}
}

/* Readings that found the reason, as the exporter counts: not how often it began. */
static void add_clock_counts(struct dcgm_page *d)
{
	char window[24];

	if (!begin_extra(d, DCGM_EXTRA_CLOCK_COUNT,
			 "Readings within the window that found the clocks throttled for the reason.", NULL))
		return;
	window_text(d->s->clock_window_ns, window);
	for (uint32_t i = 0; i < d->s->entities_n; i++)
		for (unsigned k = 0; dcgm_entity_current(&d->s->entities[i]) && k < CLOCK_EVENTS; k++)
			if (d->s->entities[i].clock_events[k] > 0)
				add_sample(
					d, &d->entities[i].set, dcgm_sole_owner(&d->owners, i),
					(const struct label[]){ { "clock_event", clock_event_rows[k].name },
								{ "window_size_in_ms", window } },
					2, d->s->entities[i].clock_events[k]);
}

/*
 * What DCGM's health checks look at and NVML tells: by watch, what is wrong if the value is more than 0, with
 * DCGM's words and numbers (dcgmHealthWatchResults_enum, dcgm_errors.h).
 */
enum { HEALTH_PASS = 0, HEALTH_WARN = 10, HEALTH_FAIL = 20 };
static const struct {
	const char *watch;
	unsigned slot;
	int result;
	const char *error;
} health_checks[] = {
	{ "MEM", SLOT_REMAPPED_ROWS_FAILED, HEALTH_FAIL, "DCGM_FR_ROW_REMAP_FAILURE" },
	{ "MEM", SLOT_REMAPPED_ROWS_PENDING, HEALTH_WARN, "DCGM_FR_PENDING_ROW_REMAP" },
	{ "MEM", SLOT_RETIRED_PAGES_PENDING, HEALTH_WARN, "DCGM_FR_PENDING_PAGE_RETIREMENTS" },
	{ "THERMAL", SLOT_EVENT_REASON_HW_THERMAL_SLOWDOWN, HEALTH_WARN, "DCGM_FR_CLOCKS_EVENT_THERMAL" },
	{ "POWER", SLOT_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN, HEALTH_WARN, "DCGM_FR_CLOCKS_EVENT_POWER" },
};

/* The worst of a watch. False: nothing that it looks at is known. */
static bool judge_watch(const struct dcgm_page *d, uint32_t entity, const char *watch, int *ret_result,
			const char **ret_error)
{
	bool known = false;

	*ret_result = HEALTH_PASS;
	*ret_error = "";
	for (size_t i = 0; i < ARRAY_SIZE(health_checks); i++) {
		if (!STRV_EQ(health_checks[i].watch, watch) || !entity_has(d, entity, health_checks[i].slot))
			continue;
		known = true;
		if (d->s->entities[entity].id.v[health_checks[i].slot] > 0 &&
		    health_checks[i].result > *ret_result) {
			*ret_result = health_checks[i].result;
			*ret_error = health_checks[i].error;
		}
	}
	return known;
}

static void add_health(struct dcgm_page *d)
{
	static const char *const watches[] = { "MEM", "THERMAL", "POWER" };

	if (!begin_extra(d, DCGM_EXTRA_HEALTH,
			 "Health as gpusonde judges it by NVML's values: 0 passed, 10 warning, 20 failure.",
			 NULL))
		return;
	for (uint32_t i = 0; i < d->s->entities_n; i++)
		for (size_t k = 0; k < ARRAY_SIZE(watches); k++) {
			const char *error;
			int result;

			if (!entity_is_mig(&d->s->entities[i]) &&
			    judge_watch(d, i, watches[k], &result, &error))
				add_sample(d, &d->entities[i].set, dcgm_sole_owner(&d->owners, i),
					   (const struct label[]){ { "health_error_code", error },
								   { "health_watch", watches[k] } },
					   2, result);
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
	for (uint32_t i = 0, n = tags_of(d->s, d->tags); i < n; i++)
		add_sample(d, NULL, NULL,
			   (const struct label[]){ { "key", d->tags[i].key }, { "value", d->tags[i].value } },
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
					   &(struct label){ "metric",
							    dcgm_name_of(d, &gpu_metrics[row])->name },
					   1, 1);
}

void dcgm_add_extras(struct dcgm_page *d)
{
	add_nvlink(d);
	add_xids(d);
	add_xid_counts(d);
	add_clock_counts(d);
	add_health(d);
	add_links(d);
	add_caveats(d);
}
