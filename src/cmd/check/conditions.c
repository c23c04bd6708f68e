// SPDX-License-Identifier: Apache-2.0
#include "cmd/check/check.h"

#include <inttypes.h>

#include "base/clock.h"
#include "model/xid.h"
#include "view/names.h"
#include "view/number.h"
#include "view/shown.h"
#include "view/table/parts.h"

#define RECENT_NS (3600 * NSEC_PER_SEC)

typedef void judge_fn(const struct check_subject *subject, struct verdict *verdict);

static void judge_driver(const struct check_subject *subject, struct verdict *verdict);
static void judge_agent(const struct check_subject *subject, struct verdict *verdict);
static void judge_gpus(const struct check_subject *subject, struct verdict *verdict);
static void judge_recovery(const struct check_subject *subject, struct verdict *verdict);
static void judge_memory(const struct check_subject *subject, struct verdict *verdict);
static void judge_ecc(const struct check_subject *subject, struct verdict *verdict);
static void judge_heat(const struct check_subject *subject, struct verdict *verdict);
static void judge_links(const struct check_subject *subject, struct verdict *verdict);
static void judge_xids(const struct check_subject *subject, struct verdict *verdict);

static const struct {
	const char *name;
	judge_fn *judge;
	const char *holds;
} conditions[] = {
#define CONDITION(name, function, text) { #name, function, text },
#include "cmd/check/conditions.def"
};

const char *check_name(enum check_condition condition)
{
	return conditions[condition].name;
}

const char *check_state_name(enum check_state state)
{
	static const char *const names[] = { "OK", "WARNING", "CRITICAL", "UNKNOWN" };

	return names[state];
}

enum check_state check_worse(enum check_state a, enum check_state b)
{
	static const unsigned char weight[] = {
		[CHECK_OK] = 0, [CHECK_UNKNOWN] = 1, [CHECK_WARNING] = 2, [CHECK_CRITICAL] = 3
	};

	return weight[a] >= weight[b] ? a : b;
}

static struct strbuf *add_verdict(struct verdict *verdict, enum check_state state)
{
	verdict->state = check_worse(verdict->state, state);
	if (verdict->text.len > 0)
		strbuf_adds(&verdict->text, "; ");
	return &verdict->text;
}

static struct strbuf *add_of_gpu(struct verdict *verdict, enum check_state state, const struct entity *gpu)
{
	struct strbuf *text = add_verdict(verdict, state);

	strbuf_addf(text, "GPU %" PRIu32 ": ", gpu->id.index);
	return text;
}

static bool is_whole_gpu(const struct entity *e)
{
	return !entity_is_mig(e);
}

/* A node without a driver is well, unless it should have GPUs. */
static bool may_have_none(const struct check_subject *subject)
{
	uint32_t state = subject->s ? snapshot_driver(subject->s)->state : READING_OK;

	return (state == READING_NO_LIBRARY || state == READING_NO_DRIVER) && !subject->gpus_expected;
}

static void judge_driver(const struct check_subject *subject, struct verdict *verdict)
{
	const char *why = subject->s ? outage_reason(subject->s) : subject->no_snapshot;

	if (*why)
		strbuf_adds(add_verdict(verdict, may_have_none(subject) ? CHECK_UNKNOWN : CHECK_CRITICAL),
			    why);
}

static void judge_agent(const struct check_subject *subject, struct verdict *verdict)
{
	if (*subject->no_agent)
		strbuf_adds(add_verdict(verdict, CHECK_WARNING), subject->no_agent);
}

static void judge_gpus(const struct check_subject *subject, struct verdict *verdict)
{
	const struct snapshot *s = subject->s;
	unsigned present = 0;

	for (uint32_t i = 0; i < s->entities_n; i++) {
		const struct entity *e = &s->entities[i];

		if (!is_whole_gpu(e))
			continue;
		present += e->present;
		if (!e->present)
			strbuf_adds(
				add_of_gpu(verdict, CHECK_CRITICAL, e),
				"gone: the driver does not list it any more, look at its XIDs; a reboot may "
				"bring it back");
		else if (e->stale)
			strbuf_addf(add_of_gpu(verdict, CHECK_CRITICAL, e),
				    "does not answer: its figures are %.0f s old", entity_age_seconds(s, e));
	}
	if (subject->gpus_expected && present != subject->gpus_expected)
		strbuf_addf(add_verdict(verdict, CHECK_CRITICAL), "%u GPUs of %u are there", present,
			    subject->gpus_expected);
}

static void add_warnings(const struct check_subject *subject, enum gpu_warning_kind first,
			 enum gpu_warning_kind last, struct verdict *verdict)
{
	for (uint32_t i = 0; i < subject->s->entities_n; i++) {
		const struct entity *e = &subject->s->entities[i];

		for (unsigned kind = first; is_whole_gpu(e) && kind <= last; kind++) {
			struct gpu_warning warning;

			if (gpu_warning(e, kind, &warning))
				strbuf_adds(add_of_gpu(verdict,
						       warning.severe ? CHECK_CRITICAL : CHECK_WARNING, e),
					    warning.text);
		}
	}
}

static void judge_recovery(const struct check_subject *subject, struct verdict *verdict)
{
	add_warnings(subject, GPU_WARNING_RECOVERY, GPU_WARNING_RECOVERY, verdict);
}

static void judge_memory(const struct check_subject *subject, struct verdict *verdict)
{
	add_warnings(subject, GPU_WARNING_ROWS_FAILED, GPU_WARNING_ROWS_FAILED, verdict);
	add_warnings(subject, GPU_WARNING_ROWS_PENDING, GPU_WARNING_PAGES_PENDING, verdict);
}

static void judge_ecc(const struct check_subject *subject, struct verdict *verdict)
{
	for (uint32_t i = 0; i < subject->s->entities_n; i++) {
		const struct entity *e = &subject->s->entities[i];
		double errors;

		if (is_whole_gpu(e) && entity_number(e, GPU_ECC_UNCORRECTED_ALL, &errors) && errors > 0)
			strbuf_addf(add_of_gpu(verdict, CHECK_WARNING, e),
				    "%.0f uncorrectable memory errors: drain it and run diagnostics", errors);
	}
}

static void judge_heat(const struct check_subject *subject, struct verdict *verdict)
{
	add_warnings(subject, GPU_WARNING_HEAT, GPU_WARNING_HEAT, verdict);
}

static void judge_links(const struct check_subject *subject, struct verdict *verdict)
{
	add_warnings(subject, GPU_WARNING_LINKS, GPU_WARNING_LINKS, verdict);
}

static void judge_xids(const struct check_subject *subject, struct verdict *verdict)
{
	const struct snapshot *s = subject->s;

	for (uint32_t i = 0; i < s->xids_n; i++) {
		const struct xid *xid = &s->xids[i];
		const struct xid_description *description = xid_describe(xid->code);
		int64_t ago_ns = MAX(s->real_ns - xid->last_real_ns, INT64_C(0));
		char ago[DURATION_TEXT];

		if (description->severity < XID_WARNING || xid->last_real_ns == 0 || ago_ns > RECENT_NS)
			continue;
		ago_text(ago_ns, ago);
		strbuf_addf(add_of_gpu(verdict,
				       description->severity == XID_CRITICAL ? CHECK_CRITICAL : CHECK_WARNING,
				       &s->entities[xid->entity]),
			    "XID %" PRIu32 " (%s) %s ago: %s", xid->code, description->name, ago,
			    xid_action_text(description->action));
	}
}

void check_judge(const struct check_subject *subject, enum check_condition condition,
		 struct verdict *ret_verdict)
{
	bool has_gpus = subject->s && subject->s->entities_n > 0;
	const char *why = subject->s ? outage_reason(subject->s) : subject->no_snapshot;

	*ret_verdict = (struct verdict){ .state = CHECK_OK };
	strbuf_init(&ret_verdict->text, 0);
	if (*why && condition != CHECK_driver && condition != CHECK_agent &&
	    !(condition == CHECK_gpus && has_gpus))
		strbuf_adds(add_verdict(ret_verdict, CHECK_UNKNOWN),
			    "there are no current figures of the GPUs");
	else
		conditions[condition].judge(subject, ret_verdict);
	if (ret_verdict->text.len == 0)
		strbuf_adds(&ret_verdict->text, conditions[condition].holds);
}

/* ---- figures ---- */

static const struct {
	const char *name, *unit;
	double scale;
	enum gpu_metric value, warning, critical, most; /* GPU_METRICS: none */
} figures[] = {
	{ "utilization", "%", 100, GPU_UTILIZATION_GPU, GPU_METRICS, GPU_METRICS, GPU_METRICS },
	{ "memory", "B", 1, GPU_MEMORY_USED, GPU_METRICS, GPU_METRICS, GPU_MEMORY_TOTAL },
	{ "temperature", "", 1, GPU_TEMPERATURE, GPU_TEMPERATURE_LIMIT_SLOWDOWN,
	  GPU_TEMPERATURE_LIMIT_SHUTDOWN, GPU_METRICS },
	{ "power", "", 1, GPU_POWER, GPU_METRICS, GPU_METRICS, GPU_POWER_LIMIT_ENFORCED },
};

static void add_bound(const struct entity *e, enum gpu_metric row, struct strbuf *out)
{
	double v;

	strbuf_addc(out, ';');
	if (row != GPU_METRICS && entity_number(e, row, &v))
		strbuf_addf(out, "%.0f", v);
}

void check_figures(const struct snapshot *s, struct strbuf *out)
{
	for (uint32_t i = 0; i < s->entities_n; i++) {
		const struct entity *e = &s->entities[i];

		for (size_t k = 0; is_whole_gpu(e) && e->present && !e->stale && k < ARRAY_SIZE(figures);
		     k++) {
			double v;

			if (!entity_number(e, figures[k].value, &v))
				continue;
			strbuf_addf(out, "%s'gpu%" PRIu32 "_%s'=%.0f%s", out->len > 0 ? " " : "", e->id.index,
				    figures[k].name, v * figures[k].scale, figures[k].unit);
			add_bound(e, figures[k].warning, out);
			add_bound(e, figures[k].critical, out);
			strbuf_adds(out, ";0");
			add_bound(e, figures[k].most, out);
		}
	}
}
