// SPDX-License-Identifier: Apache-2.0
#include "cmd/top/alert.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "model/xid.h"
#include "view/names.h"
#include "view/number.h"
#include "view/shown.h"
#include "view/table/parts.h"

#define RECENT_NS (3600 * NSEC_PER_SEC)

static bool set_alert(struct alert *alert, bool severe, enum tab tab, const char *fmt, ...) _printf_(4, 5);

static bool set_alert(struct alert *alert, bool severe, enum tab tab, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(alert->text, sizeof(alert->text), fmt, ap);
	va_end(ap);
	alert->severe = severe;
	alert->tab = tab;
	alert->sample = NULL;
	alert->finding = NULL;
	return true;
}

static bool outage(const struct snapshot *s, struct alert *alert)
{
	const char *why = outage_reason(s);

	return *why && set_alert(alert, true, TAB_GPUS, "%s: %s",
				 s->entities_n == 0 ? "No GPUs" : "No new data", why);
}

static bool lost(const struct snapshot *s, struct alert *alert)
{
	for (uint32_t i = 0; i < s->entities_n; i++)
		if (!s->entities[i].present && !entity_is_mig(&s->entities[i]))
			return set_alert(alert, true, TAB_GPUS,
					 "GPU %" PRIu32
					 " is gone: the driver does not list it any more, look at its "
					 "XIDs; a reboot may bring it back",
					 s->entities[i].id.index);
	return false;
}

static bool warned(const struct snapshot *s, bool severe, struct alert *alert)
{
	for (uint32_t i = 0; i < s->entities_n; i++)
		for (unsigned k = 0; k < GPU_WARNINGS; k++) {
			struct gpu_warning warning;

			if (entity_is_mig(&s->entities[i]) || !gpu_warning(&s->entities[i], k, &warning) ||
			    warning.severe != severe)
				continue;
			return set_alert(alert, severe, TAB_GPUS, "GPU %" PRIu32 ": %s",
					 s->entities[i].id.index, warning.text);
		}
	return false;
}

static bool xid(const struct snapshot *s, struct alert *alert)
{
	const struct xid *newest = NULL;
	const struct xid_description *description;
	char ago[DURATION_TEXT];

	for (uint32_t i = 0; i < s->xids_n; i++)
		if (xid_describe(s->xids[i].code)->severity != XID_INFO &&
		    (!newest || s->xids[i].last_real_ns > newest->last_real_ns))
			newest = &s->xids[i];
	if (!newest || newest->last_real_ns == 0 || s->real_ns - newest->last_real_ns > RECENT_NS)
		return false;
	description = xid_describe(newest->code);
	ago_text(MAX(s->real_ns - newest->last_real_ns, INT64_C(0)), ago);
	return set_alert(alert, description->severity == XID_CRITICAL, TAB_EVENTS,
			 "GPU %" PRIu32 ": XID %" PRIu32 " (%s) %s ago: %s",
			 s->entities[newest->entity].id.index, newest->code, description->name, ago,
			 xid_action_text(description->action));
}

/* Since when; in this form later texts are greater. */
static const char *begun(const json_t *finding)
{
	return text_member(json_object_get(finding, "timeline"), "begin");
}

/* The newest of those that are so now, and that no other explains. */
static bool finding(const struct sample *sample, struct alert *alert)
{
	const json_t *one, *newest = NULL;
	size_t i;

	json_array_foreach(json_object_get(sample->pages[PAGE_FINDINGS], "findings"), i, one)
		if (json_is_true(json_object_get(one, "active")) &&
		    !json_is_integer(json_object_get(one, "caused_by")) && *text_member(one, "title") &&
		    (!newest || strcmp(begun(one), begun(newest)) > 0))
			newest = one;
	if (!newest)
		return false;
	set_alert(alert, false, TAB_FINDINGS, "%.150s: %.200s", text_member(newest, "title"),
		  text_member(newest, "remedy"));
	alert->sample = sample;
	alert->finding = newest;
	return true;
}

static bool silent_host(const struct sample *all, struct alert *alert)
{
	const struct host_part *first = NULL;
	char others[32] = "";
	uint32_t n = 0;

	for (uint32_t i = 0; i < all->parts_n; i++) {
		if (!all->parts[i].failure[0])
			continue;
		first = first ? first : &all->parts[i];
		n++;
	}
	if (n > 1)
		snprintf(others, sizeof(others), " (and %" PRIu32 " more)", n - 1);
	return first && set_alert(alert, true, TAB_HOSTS, "%s does not answer%s: %s", first->name, others,
				  first->failure);
}

/* As of one machine; of findings the newest. */
static bool comes_before(const struct alert *a, const struct alert *b)
{
	if (a->severe != b->severe)
		return a->severe;
	if (!a->finding || !b->finding)
		return b->finding && !a->finding;
	return strcmp(begun(a->finding), begun(b->finding)) > 0;
}

/* Of several machines: which are silent, then the worst of what is wrong with one. */
static bool of_several(const struct sample *all, struct alert *ret_alert)
{
	bool any = false;

	if (silent_host(all, ret_alert))
		return true;
	for (uint32_t i = 0; i < all->parts_n; i++) {
		const struct sample *part = all->parts[i].sample;
		struct alert alert;

		if (!part || !part->snapshot || !alert_newest(part, &alert) ||
		    (any && !comes_before(&alert, ret_alert)))
			continue;
		any = set_alert(ret_alert, alert.severe, alert.tab, "%s: %s", part->host, alert.text);
		ret_alert->sample = alert.sample;
		ret_alert->finding = alert.finding;
		if (alert.severe)
			return true;
	}
	return any;
}

bool alert_newest(const struct sample *sample, struct alert *ret_alert)
{
	const struct snapshot *s = sample->snapshot;

	if (sample->parts)
		return of_several(sample, ret_alert);
	return outage(s, ret_alert) || lost(s, ret_alert) || warned(s, true, ret_alert) ||
	       xid(s, ret_alert) || warned(s, false, ret_alert) || finding(sample, ret_alert);
}
