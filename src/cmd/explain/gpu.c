// SPDX-License-Identifier: Apache-2.0
/* What the document alone tells of a GPU. Thresholds are those of the analysis's rules (docs/analysis.md). */
#include "cmd/explain/explain.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cmd/top/columns.h"
#include "model/xid.h"
#include "view/names.h"
#include "view/number.h"
#include "view/shown.h"
#include "view/table/parts.h"

#define RECENT_NS (3600 * NSEC_PER_SEC)
#define GIB (1024.0 * 1024.0 * 1024.0)

static const double idle_below = 0.01, link_in_use = 0.1, much = 0.1; /* shares of the time, and of memory */
static const double slow_clock = 0.9; /* of the highest one */
static const double idle_seconds = 60;
enum { USERS_NAMED = 5 };

/* It and the object that it was decoded from. */
struct gpu {
	struct explain *explain;
	const json_t *object;
	const struct entity *entity;
	uint32_t index; /* in the snapshot */
	json_t *subject;
};

/* ---- state ---- */

static void say_age(struct gpu *gpu)
{
	const struct snapshot *s = gpu->explain->s;
	double age = entity_age_seconds(s, gpu->entity);
	const char *why = outage_reason(s);

	if (!gpu->entity->present) {
		explain_say(gpu->explain, gpu->subject, TOPIC_STATE, NULL,
			    "look at its XIDs; a reboot may bring it back",
			    "It is gone: the driver does not list it any more");
	} else if (gpu->entity->stale) {
		json_t *figures = json_object();

		figure_copy(figures, gpu->object, "age_seconds");
		explain_say(gpu->explain, gpu->subject, TOPIC_STATE, figures, NULL,
			    "What is said of it is %.0f s old%s%s", MAX(age, 0.0), *why ? ": " : "", why);
	}
}

/* What is wrong, and behind the last colon what is to be done. */
static void say_warnings(struct gpu *gpu)
{
	for (unsigned i = 0; i < GPU_WARNINGS; i++) {
		struct gpu_warning warning;
		char *remedy;

		if (!gpu_warning(gpu->entity, i, &warning))
			continue;
		remedy = strrchr(warning.text, ':');
		if (remedy)
			*remedy++ = '\0';
		explain_say(gpu->explain, gpu->subject, TOPIC_STATE, NULL,
			    remedy ? remedy + strspn(remedy, " ") : NULL, "Warning: %s", warning.text);
	}
}

static void say_xids(struct gpu *gpu)
{
	const struct snapshot *s = gpu->explain->s;

	for (uint32_t i = 0; i < s->xids_n; i++) {
		const struct xid *xid = &s->xids[i];
		const struct xid_description *description = xid_describe(xid->code);
		int64_t ago_ns = MAX(s->real_ns - xid->last_real_ns, INT64_C(0));
		char ago[DURATION_TEXT];

		if (xid->entity != gpu->index || description->severity == XID_INFO ||
		    xid->last_real_ns == 0 || ago_ns > RECENT_NS)
			continue;
		ago_text(ago_ns, ago);
		explain_say(gpu->explain, gpu->subject, TOPIC_ERROR,
			    json_pack("{s:I, s:I}", "xid", (json_int_t)xid->code, "count",
				      (json_int_t)xid->count),
			    xid_action_text(description->action),
			    "XID %" PRIu32 " %s ago, %" PRIu64 " in all: %s", xid->code, ago, xid->count,
			    description->name);
	}
}

/* ---- for whom ---- */

static int compare_use(const void *a, const void *b)
{
	double x = 0, y = 0;

	figure_at(*(const json_t *const *)a, "utilization_ratio", &x);
	figure_at(*(const json_t *const *)b, "utilization_ratio", &y);
	return (x < y) - (x > y);
}

static void name_users(const json_t **users, size_t n, struct strbuf *text)
{
	qsort(users, n, sizeof(*users), compare_use);
	for (size_t i = 0; i < MIN(n, (size_t)USERS_NAMED); i++) {
		char memory[FIGURE_TEXT], share[FIGURE_TEXT] = "";
		double v;

		figure_bytes(users[i], "memory_bytes", memory);
		if (figure_at(users[i], "utilization_ratio", &v))
			snprintf(share, sizeof(share), "SMs %.0f %%, ", v * 100);
		strbuf_addf(text, "%s%" JSON_INTEGER_FORMAT "%s%.60s (%s%s)", i > 0 ? ", " : "",
			    json_integer_value(json_object_get(users[i], "pid")),
			    *text_member(users[i], "comm") ? " " : "", text_member(users[i], "comm"), share,
			    memory);
	}
	if (n > USERS_NAMED)
		strbuf_addf(text, " and %zu more", n - USERS_NAMED);
}

static void say_users(struct gpu *gpu)
{
	const json_t *list = json_object_get(gpu->explain->document, "processes"), *process;
	const json_t **users = calloc(json_array_size(list) + 1, sizeof(*users));
	struct strbuf text;
	size_t i, n = 0;

	strbuf_init(&text, 0);
	json_array_foreach(list, i, process)
		if (users && subject_is_on(process, gpu->object))
			users[n++] = process;
	if (n > 0) {
		name_users(users, n, &text);
		explain_say(gpu->explain, gpu->subject, TOPIC_USERS, NULL, NULL, "%zu process%s use%s it: %s",
			    n, n == 1 ? "" : "es", n == 1 ? "s" : "", text.data);
	} else if (users && !gpu_unlisted(gpu->explain->s, gpu->index)) {
		explain_say(gpu->explain, gpu->subject, TOPIC_USERS, NULL, NULL, "No process uses it");
	} else {
		explain_say(gpu->explain, gpu->subject, TOPIC_USERS, NULL, NULL,
			    "Which processes use it is not known: their list cannot be read");
	}
	free(users);
	strbuf_done(&text);
}

/* ---- what slows it down, and what is wasted ---- */

static bool found(const struct gpu *gpu, enum analysis_rule rule)
{
	return explain_found(gpu->explain, rule, gpu->entity->id.uuid, 0);
}

/* A cap that leaves the clock nearly as high as it can be costs little. */
static void say_throttling(struct gpu *gpu)
{
	double clock, highest;
	bool known = figure_at(gpu->object, "clock_hertz.sm", &clock) &&
		     figure_at(gpu->object, "clock_max_hertz.sm", &highest) && highest > 0,
	     little = known && clock / highest > slow_clock;
	json_t *figures = json_object();
	struct strbuf reasons;

	strbuf_init(&reasons, 0);
	figure_copy(figures, gpu->object, "clock_hertz.sm");
	figure_copy(figures, gpu->object, "clock_max_hertz.sm");
	if (!gpu_throttled_by(gpu->entity, &reasons) || found(gpu, FINDING_CLOCKS_THROTTLED)) {
		json_decref(figures);
	} else if (known) {
		explain_say(gpu->explain, gpu->subject, TOPIC_SLOWDOWN, figures,
			    little ? NULL : analysis_rules[FINDING_CLOCKS_THROTTLED].remedy,
			    "Its clocks are throttled (%s) to %.0f %% of the highest%s", reasons.data,
			    100 * clock / highest, little ? ", which costs little" : "");
	} else {
		explain_say(gpu->explain, gpu->subject, TOPIC_SLOWDOWN, figures,
			    analysis_rules[FINDING_CLOCKS_THROTTLED].remedy, "Its clocks are throttled (%s)",
			    reasons.data);
	}
	strbuf_done(&reasons);
}

/* An idle link has a lower generation by design. */
static void say_link(struct gpu *gpu)
{
	static const char *const paths[] = { "pcie_link_generation.current", "pcie_link_generation.max",
					     "pcie_link_width.current", "pcie_link_width.max" };
	double v[ARRAY_SIZE(paths)] = { 0 }, busy = 0;
	json_t *figures;

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		if (!figure_at(gpu->object, paths[i], &v[i]))
			return;
	figure_at(gpu->object, "utilization_ratio.gpu", &busy);
	if ((v[2] >= v[3] && (v[0] >= v[1] || busy < link_in_use)) || found(gpu, FINDING_PCIE_DEGRADED))
		return;
	figures = json_object();
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		figure_copy(figures, gpu->object, paths[i]);
	explain_say(gpu->explain, gpu->subject, TOPIC_SLOWDOWN, figures,
		    analysis_rules[FINDING_PCIE_DEGRADED].remedy,
		    "Its PCIe link is generation %.0f of %.0f with %.0f of %.0f lanes", v[0], v[1], v[2],
		    v[3]);
}

/* For how long all processes were seen to use nothing of it; negative: not all of them were. */
static double idle_for(const struct gpu *gpu)
{
	const struct snapshot *s = gpu->explain->s;
	double least = -1;

	for (uint32_t i = 0; i < s->processes_n; i++) {
		const struct process *p = &s->processes[i];
		const struct recent *recent = &p->recent[RECENTS - 1];

		if (snapshot_gpu(s, &s->entities[p->entity]) != gpu->entity)
			continue;
		if (!presence_is(recent->p[RECENT_UTILIZATION]) || recent->v[RECENT_UTILIZATION] > 0)
			return -1;
		least = least < 0 ? recent->seconds : MIN(least, recent->seconds);
	}
	return least;
}

static void say_idle(struct gpu *gpu)
{
	double busy, used, total, seconds = idle_for(gpu);
	char memory[FIGURE_TEXT];
	json_t *figures;

	if (!figure_at(gpu->object, "utilization_ratio.gpu", &busy) || busy >= idle_below)
		return;
	if (!figure_at(gpu->object, "memory_used_bytes", &used) ||
	    !figure_at(gpu->object, "memory_total_bytes", &total) || used < MAX(GIB, much * total) ||
	    seconds < 0 || found(gpu, FINDING_IDLE_ALLOCATED)) {
		explain_say(gpu->explain, gpu->subject, TOPIC_USE, NULL, NULL, "It is idle now");
		return;
	}
	figures = json_pack("{s:f}", "idle_seconds", seconds);
	figure_copy(figures, gpu->object, "memory_used_bytes");
	figure_bytes(gpu->object, "memory_used_bytes", memory);
	explain_say(
		gpu->explain, gpu->subject, TOPIC_WASTE, figures,
		seconds >= idle_seconds ? analysis_rules[FINDING_IDLE_ALLOCATED].remedy : NULL,
		"It is idle while %s are allocated: its processes were seen to use nothing of it for %.0f s",
		memory, seconds);
}

static void say_unaccounted(struct gpu *gpu)
{
	static const char path[] = "attribution_memory_bytes.unattributed";
	double bytes, total = 0;
	char text[FIGURE_TEXT];
	json_t *figures;

	figure_at(gpu->object, "memory_total_bytes", &total);
	if (!figure_at(gpu->object, path, &bytes) || bytes < MAX(GIB, much * total) ||
	    found(gpu, FINDING_MEMORY_UNACCOUNTED))
		return;
	figures = json_object();
	figure_copy(figures, gpu->object, path);
	figure_bytes(gpu->object, path, text);
	explain_say(gpu->explain, gpu->subject, TOPIC_WASTE, figures,
		    analysis_rules[FINDING_MEMORY_UNACCOUNTED].remedy,
		    "%s of its memory are held by no process that is known", text);
}

static void say_instances(struct gpu *gpu)
{
	const json_t *instance;
	size_t i;

	json_array_foreach(json_object_get(gpu->object, "mig"), i, instance) {
		char words[80];

		snprintf(words, sizeof(words),
			 "MIG %" JSON_INTEGER_FORMAT "/%" JSON_INTEGER_FORMAT " (%.30s)",
			 json_integer_value(json_object_get(instance, "gi")),
			 json_integer_value(json_object_get(instance, "ci")),
			 text_member(instance, "profile"));
		explain_figures(gpu->explain, gpu->subject, ABOUT_GPU, instance, words);
	}
}

/* ---- all ---- */

static void say_all(struct gpu *gpu)
{
	say_age(gpu);
	if (gpu->entity->present) {
		explain_figures(gpu->explain, gpu->subject, ABOUT_GPU, gpu->object,
				gpu->entity->stale ? "Then" : "Now");
		say_instances(gpu);
		/* Whose processes are asked for is said with these. */
		if (gpu->explain->about == ABOUT_ALL || gpu->explain->about == ABOUT_GPU)
			say_users(gpu);
		say_warnings(gpu);
		if (!gpu->entity->stale) {
			say_throttling(gpu);
			say_link(gpu);
			say_idle(gpu);
			say_unaccounted(gpu);
		}
	}
	say_xids(gpu);
	explain_findings(gpu->explain, gpu->subject, gpu->entity->id.uuid, 0);
}

void explain_gpu(struct explain *explain, const json_t *object)
{
	const struct snapshot *s = explain->s;
	struct gpu_state state;

	for (uint32_t i = 0; i < s->entities_n; i++) {
		const struct entity *e = &s->entities[i];
		struct gpu gpu = { .explain = explain, .object = object, .entity = e, .index = i };

		if (entity_is_mig(e) || !STRV_EQ(e->id.uuid, text_member(object, "uuid")))
			continue;
		gpu_state(s, e, &state);
		gpu.subject = explain_begin(explain, ABOUT_GPU, "GPU %" PRIu32 " (%s): %s", e->id.index,
					    e->id.name, state.word);
		if (!gpu.subject)
			return;
		json_object_set_new(gpu.subject, "gpu", json_integer(e->id.index));
		json_object_set_new(gpu.subject, "uuid", json_string(e->id.uuid));
		json_object_set_new(gpu.subject, "state", json_string(state.word));
		say_all(&gpu);
		return;
	}
}
