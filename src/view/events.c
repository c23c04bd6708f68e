// SPDX-License-Identifier: Apache-2.0
#include "view/events.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hashmap.h"
#include "base/row_list.h"
#include "model/xid.h"
#include "view/findings.h"
#include "view/shown.h"
#include "view/view.h"

#define QUIET_NS (60 * NSEC_PER_SEC) /* a warning that has been away for so long has ended */
/* So long an XID of another source waits for the kernel log, whose words and process it lacks. */
#define COMPLETION_NS (1 * NSEC_PER_SEC)
#define CLOCKS_APART_NS (5 * NSEC_PER_SEC) /* of the kernel log's time and a process's */

struct watched_warning {
	bool on;
	int64_t boot_ns, real_ns; /* of the newest snapshot that had it */
	char text[GPU_WARNING_MAX];
};

struct watched_gpu {
	char uuid[96];
	bool present, seen; /* its warnings are known: what begins from now on is told */
	struct watched_warning warnings[GPU_WARNINGS];
};

struct watched_finding {
	uint64_t key;
	bool active;
};

struct event_watch {
	bool old_xids, gpus_begun; /* the first GPUs have been seen */
	int64_t begun_real_ns; /* time of the first snapshot; 0: there was none */
	uint64_t xids; /* number of the newest that was told */
	struct row_list gpus; /* struct watched_gpu */
	struct watched_finding *findings; /* as of the snapshot before */
	uint32_t findings_n;
	uint32_t newest_finding; /* its id; 0: there was none */
	bool ends; /* with this snapshot: nothing waits */
	const struct snapshot *s;
	event_receiver receive;
	void *userdata;
};

/* ---- what all events say ---- */

static void begin_event(const struct event_watch *w, struct event *event, const char *name,
			enum event_severity severity)
{
	*event = (struct event){ .severity = severity, .observed_real_ns = w->s->real_ns };
#define EVENT_NUMBER(member_, attribute_) event->member_ = EVENT_NO_NUMBER;
#include "model/events.def"
	PUT_TEXT(event->name, name);
}

_printf_(2, 3) static void set_body(struct event *event, const char *fmt, ...)
{
	char text[EVENT_BODY];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	PUT_TEXT(event->body, text);
}

static void set_gpu(struct event *event, const struct snapshot *s, const struct entity *e)
{
	const struct entity *gpu = snapshot_gpu(s, e);

	PUT_TEXT(event->type, "gpu");
	PUT_TEXT(event->uuid, gpu->id.uuid);
	PUT_TEXT(event->gpu_name, gpu->id.name);
	PUT_TEXT(event->pci_bus_id, gpu->id.pci_bus_id);
	event->gpu = gpu->id.index;
	if (!entity_is_mig(e))
		return;
	event->gi = e->id.gi;
	if (e->id.ci != UINT32_MAX)
		event->ci = e->id.ci;
}

static void set_owner(struct event *event, enum workload_kind kind, const char *id, const char *pod_uid)
{
	if (kind == WORKLOAD_CONTAINER)
		PUT_TEXT(event->container_id, id);
	PUT_TEXT(event->pod_uid, kind == WORKLOAD_POD ? id : pod_uid);
}

static void set_pod(struct event *event, const char *namespace, const char *pod, const char *container)
{
	PUT_TEXT(event->namespace, namespace);
	PUT_TEXT(event->pod, pod);
	PUT_TEXT(event->container, container);
}

/* @before_real_ns: when it was there; 0: now. */
static const struct process *process_with(const struct snapshot *s, uint32_t pid, int64_t before_real_ns)
{
	const struct process *lists[] = { s->processes, s->exited };
	const uint32_t counts[] = { s->processes_n, s->exited_n };

	for (unsigned list = 0; list < ARRAY_SIZE(lists); list++)
		for (uint32_t i = counts[list]; i > 0; i--) {
			const struct process *p = &lists[list][i - 1];

			if (p->id.pid == pid &&
			    (before_real_ns == 0 || p->first_real_ns <= before_real_ns + CLOCKS_APART_NS))
				return p;
		}
	return NULL;
}

static void set_process(struct event *event, const struct snapshot *s, uint32_t pid)
{
	const struct process *p = process_with(s, pid, event->real_ns);
	const struct workload *w;

	event->pid = pid;
	if (!p)
		return;
	PUT_TEXT(event->comm, p->comm);
	if (p->workload >= s->workloads_n)
		return;
	w = &s->workloads[p->workload];
	set_owner(event, w->kind, w->id, w->pod_uid);
	if (w->owner)
		set_pod(event, w->owner->namespace, w->owner->pod, w->owner->container);
}

/* Who was given the whole of it, unless several were. */
static void set_holder(struct event *event, const struct snapshot *s, uint32_t entity)
{
	const struct allocated *holder = NULL;

	for (uint32_t i = 0; i < s->allocated_n; i++) {
		if (s->allocated[i].entity != entity)
			continue;
		if (holder)
			return;
		holder = &s->allocated[i];
	}
	if (!holder)
		return;
	set_owner(event, holder->kind, holder->id, holder->pod_uid);
	set_pod(event, holder->namespace, holder->pod, holder->container);
}

static void tell_event(const struct event_watch *w, const struct event *event)
{
	w->receive(event, w->userdata);
}

/* ---- XIDs ---- */

static enum event_severity severity_of_xid(enum xid_severity severity)
{
	static const enum event_severity severities[XID_SEVERITIES] = {
		[XID_INFO] = SEVERITY_INFO,
		[XID_APP] = SEVERITY_ERROR,
		[XID_WARNING] = SEVERITY_WARNING,
		[XID_CRITICAL] = SEVERITY_CRITICAL,
	};

	return severities[severity];
}

/* As the driver writes it: "pid=1234, name=python, ...". 0: it says none. */
static uint32_t pid_of_text(const char *text)
{
	const char *pid = text;
	char *end;
	unsigned long number;

	/* A whole word: "tpid=" is another number. */
	while ((pid = strstr(pid, "pid=")) && pid > text &&
	       (isalnum((unsigned char)pid[-1]) || pid[-1] == '_'))
		pid += 4;
	if (!pid || pid[4] < '1' || pid[4] > '9')
		return 0;
	number = strtoul(pid + 4, &end, 10);
	return number <= INT32_MAX ? (uint32_t)number : 0;
}

static void set_xid_sources(struct event *event, unsigned sources)
{
	size_t n = 0;

	for (unsigned i = 0; i < SOURCES; i++)
		if (sources >> i & 1 && n < sizeof(event->sources))
			n += (size_t)snprintf(event->sources + n, sizeof(event->sources) - n, "%s%s",
					      n ? "," : "", source_rows[i].name);
}

static void tell_xid(const struct event_watch *w, const struct xid_event *xid)
{
	const struct xid_description *d = xid_describe(xid->code);
	uint32_t pid = pid_of_text(xid->text);
	struct event event;

	begin_event(w, &event, "gpusonde.xid", severity_of_xid(d->severity));
	event.real_ns = xid->real_ns;
	set_body(&event, "XID %u: %s. %s %s%s%s", xid->code, d->name, d->meaning, xid_action_text(d->action),
		 *xid->text ? " The driver says: " : "", xid->text);
	if (xid->entity < w->s->entities_n)
		set_gpu(&event, w->s, &w->s->entities[xid->entity]);
	PUT_TEXT(event.pci_bus_id, xid->pci_bus_id);
	event.xid = xid->code;
	snprintf(event.error, sizeof(event.error), "xid_%u", xid->code);
	set_xid_sources(&event, xid->sources);
	if (xid->gi != UINT32_MAX)
		event.gi = xid->gi;
	if (xid->ci != UINT32_MAX)
		event.ci = xid->ci;
	if (pid)
		set_process(&event, w->s, pid);
	else if (xid->gi == UINT32_MAX)
		set_holder(&event, w->s, xid->entity);
	tell_event(w, &event);
}

/* Of one that came before this process did, it is not known whether it was told. */
static bool xid_is_new(const struct event_watch *w, const struct xid_event *xid)
{
	return xid->number > w->xids && (w->old_xids || xid->real_ns >= w->begun_real_ns);
}

static bool xid_waits(const struct event_watch *w, const struct xid_event *xid)
{
	const struct source *kmsg = &w->s->sources[SOURCE_KMSG];
	int64_t age_ns = w->s->real_ns - xid->real_ns;

	return !w->ends && !(xid->sources & 1u << SOURCE_KMSG) && kmsg->in_use && kmsg->fresh &&
	       age_ns >= 0 && age_ns < COMPLETION_NS;
}

/* Those behind one that waits wait, too, so that one number says what was told. */
static uint64_t take_xids(struct event_watch *w)
{
	const struct snapshot *s = w->s;
	uint64_t first = s->xid_events_n ? s->xid_events[0].number : 0;
	bool wanted = w->xids > 0 || w->old_xids; /* those from before are told only then */
	uint64_t left_out = wanted && first > w->xids + 1 ? first - w->xids - 1 : 0;

	for (uint32_t i = 0; i < s->xid_events_n; i++) {
		const struct xid_event *xid = &s->xid_events[i];

		if (xid_is_new(w, xid)) {
			if (xid_waits(w, xid))
				break;
			tell_xid(w, xid);
		}
		w->xids = MAX(w->xids, xid->number);
	}
	return left_out;
}

/* ---- findings ---- */

static uint64_t finding_key(const struct finding *f)
{
	const uint64_t parts[] = { f->id, f->rule, f->pid, f->communicator,
				   hash_bytes(f->device, strlen(f->device)) };

	return hash_bytes(parts, sizeof(parts));
}

static const struct watched_finding *find_finding(const struct watched_finding *list, uint32_t n,
						  uint64_t key)
{
	for (uint32_t i = 0; i < n; i++)
		if (list[i].key == key)
			return &list[i];
	return NULL;
}

static void set_figures(struct event *event, const struct finding *f)
{
	char name[FINDING_VALUE_NAME];

	for (uint32_t i = 0; i < f->values_n && i < EVENT_VALUES; i++) {
		finding_value_name(&f->values[i], name);
		PUT_TEXT(event->values[i].name, name);
		event->values[i].value = f->values[i].value;
		event->values_n++;
	}
}

static void set_place(struct event *event, const struct snapshot *s, const struct finding *f)
{
	const struct entity *e = entity_by_uuid(s, f->device);

	if (e)
		set_gpu(event, s, e);
	else
		PUT_TEXT(event->uuid, f->device);
	if (f->pid)
		set_process(event, s, f->pid);
	else if (e)
		set_holder(event, s, (uint32_t)(e - s->entities));
}

static void tell_finding(const struct event_watch *w, const struct findings *findings,
			 const struct finding *f, bool begins)
{
	const struct finding_rule *rule = &findings->rules[f->rule];
	uint64_t at_ns = begins ? f->begin_ns : f->end_ns;
	struct event event;

	begin_event(w, &event, begins ? "gpusonde.finding.begin" : "gpusonde.finding.end",
		    begins ? SEVERITY_WARNING : SEVERITY_INFO);
	event.real_ns = findings->real_offset_ns ? (int64_t)at_ns + findings->real_offset_ns : 0;
	set_body(&event, "%s%s%s%s%s %s", begins ? "" : "ended: ", rule->title, *f->subject ? ": " : "",
		 f->subject, *f->subject || begins ? "." : "", begins ? rule->remedy : "");
	set_place(&event, w->s, f);
	PUT_TEXT(event.finding, rule->name);
	PUT_TEXT(event.subject, f->subject);
	if (f->id)
		event.finding_id = f->id;
	if (f->cause)
		event.finding_cause = f->cause;
	if (f->communicator)
		snprintf(event.communicator, sizeof(event.communicator), "0x%016" PRIx64, f->communicator);
	set_figures(&event, f);
	tell_event(w, &event);
}

/* Of one that began and ended since, both are told. */
static void compare_finding(const struct event_watch *w, const struct findings *findings,
			    const struct finding *f, uint64_t key)
{
	const struct watched_finding *before = find_finding(w->findings, w->findings_n, key);

	if (!before)
		tell_finding(w, findings, f, true);
	if (!f->active && (!before || before->active))
		tell_finding(w, findings, f, false);
}

/*
 * Events of findings that gave their place to newer ones before a snapshot had them: of those that came and
 * went between two, both; of those that were active, that they ended. @now: as @findings.
 */
static uint64_t count_untold(struct event_watch *w, const struct findings *findings,
			     const struct watched_finding *now)
{
	uint32_t newest = 0, before = w->newest_finding;
	uint64_t untold;

	for (uint32_t i = 0; i < findings->n; i++)
		newest = MAX(newest, findings->list[i].id);
	if (newest < before)
		before = 0; /* an analysis that has begun anew */
	untold = 2 * (uint64_t)(newest - before);
	for (uint32_t i = 0; i < findings->n; i++)
		untold -= findings->list[i].id > before ? 2 : 0;
	for (uint32_t i = 0; i < w->findings_n; i++)
		untold += w->findings[i].active && !find_finding(now, findings->n, w->findings[i].key);
	w->newest_finding = newest;
	return untold;
}

/* Returns how many events were missed. Without memory nothing is told, and all with the next snapshot. */
static uint64_t take_findings(struct event_watch *w)
{
	const struct findings *findings = w->s->trace ? w->s->trace->findings : NULL;
	uint32_t n = findings ? findings->n : 0;
	struct watched_finding *now;
	uint64_t untold;

	/* No analysis, or no memory for its findings in this snapshot: what was known stays. */
	if (!findings)
		return 0;
	now = calloc(n + 1u, sizeof(*now));
	if (!now)
		return 0;
	for (uint32_t i = 0; i < n; i++) {
		const struct finding *f = &findings->list[i];

		now[i] = (struct watched_finding){ finding_key(f), f->active };
		compare_finding(w, findings, f, now[i].key);
	}
	untold = count_untold(w, findings, now);
	free(w->findings);
	w->findings = now;
	w->findings_n = n;
	return untold;
}

/* ---- GPUs ---- */

static struct watched_gpu *find_watched(struct event_watch *w, const char *uuid)
{
	struct watched_gpu *list = w->gpus.list;

	for (uint32_t i = 0; i < w->gpus.n; i++)
		if (STRV_EQ(list[i].uuid, uuid))
			return &list[i];
	return NULL;
}

static void tell_presence(const struct event_watch *w, const struct entity *e)
{
	const char *name = e->present ? "gpusonde.gpu.back" :
			   e->id.lost ? "gpusonde.gpu.lost" :
					"gpusonde.gpu.removed";
	const char *words = e->present ? "is back" : gpu_gone_words(w->s, e);
	struct event event;

	begin_event(w, &event, name, e->present ? SEVERITY_INFO : SEVERITY_CRITICAL);
	event.real_ns = w->s->real_ns;
	set_body(&event, "GPU %u %s", e->id.index, words);
	set_gpu(&event, w->s, e);
	set_holder(&event, w->s, (uint32_t)(e - w->s->entities));
	tell_event(w, &event);
}

static void tell_warning(const struct event_watch *w, const struct entity *e, unsigned kind, bool begins,
			 bool severe, const struct watched_warning *warning)
{
	static const char *const kinds[GPU_WARNINGS] = {
		[GPU_WARNING_RECOVERY] = "recovery",
		[GPU_WARNING_ROWS_FAILED] = "rows_failed",
		[GPU_WARNING_HEAT] = "heat",
		[GPU_WARNING_ROWS_PENDING] = "rows_pending",
		[GPU_WARNING_PAGES_PENDING] = "pages_pending",
		[GPU_WARNING_LINKS] = "links",
	};
	struct event event;

	begin_event(w, &event, begins ? "gpusonde.gpu.warning.begin" : "gpusonde.gpu.warning.end",
		    !begins ? SEVERITY_INFO :
		    severe  ? SEVERITY_CRITICAL :
			      SEVERITY_WARNING);
	event.real_ns = warning->real_ns;
	set_body(&event, "GPU %u: %s%s", e->id.index, begins ? "" : "no more: ", warning->text);
	set_gpu(&event, w->s, e);
	set_holder(&event, w->s, (uint32_t)(e - w->s->entities));
	PUT_TEXT(event.warning, kinds[kind]);
	tell_event(w, &event);
}

static void compare_warning(const struct event_watch *w, const struct entity *e, unsigned kind, bool seen,
			    struct watched_warning *known)
{
	struct gpu_warning warning;
	bool began = false;

	if (gpu_warning(e, kind, &warning)) {
		began = !known->on && seen;
		*known = (struct watched_warning){ true, w->s->boot_ns, w->s->real_ns, "" };
		PUT_TEXT(known->text, warning.text);
	}
	if (began)
		tell_warning(w, e, kind, true, warning.severe, known);
	if (known->on && w->s->boot_ns - known->boot_ns >= QUIET_NS) {
		known->on = false;
		tell_warning(w, e, kind, false, false, known);
	}
}

static void compare_watched(struct event_watch *w, const struct entity *e)
{
	struct watched_gpu *known = find_watched(w, e->id.uuid);

	if (!known) {
		known = row_list_add(&w->gpus);
		if (!known)
			return;
		known->present = e->present;
		known->seen = w->gpus_begun;
		PUT_TEXT(known->uuid, e->id.uuid);
	}
	if (known->present != e->present)
		tell_presence(w, e);
	known->present = e->present;
	if (!e->present || e->stale)
		return;
	for (unsigned kind = 0; kind < GPU_WARNINGS; kind++)
		compare_warning(w, e, kind, known->seen, &known->warnings[kind]);
	known->seen = true;
}

/* A driver that does not answer has no news, and one that is missing takes no GPU away. */
static void take_gpus(struct event_watch *w)
{
	const struct snapshot *s = w->s;

	if (snapshot_driver(s)->state != READING_OK || !s->fresh || s->entities_n == 0)
		return;
	for (uint32_t i = 0; i < s->entities_n; i++)
		if (!entity_is_mig(&s->entities[i]) && s->entities[i].id.uuid[0])
			compare_watched(w, &s->entities[i]);
	w->gpus_begun = true;
}

/* ---- life ---- */

uint64_t event_watch_take(struct event_watch *w, const struct snapshot *snapshot, bool ends,
			  event_receiver receive, void *userdata)
{
	uint64_t left_out;

	w->s = snapshot;
	w->ends = ends;
	w->receive = receive;
	w->userdata = userdata;
	if (w->begun_real_ns == 0)
		w->begun_real_ns = snapshot->real_ns;
	left_out = take_xids(w);
	take_gpus(w);
	left_out += take_findings(w);
	w->s = NULL;
	return left_out;
}

int event_watch_new(bool old_xids, struct event_watch **ret_watch)
{
	struct event_watch *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->old_xids = old_xids;
	w->gpus = (struct row_list){ .size = sizeof(struct watched_gpu), .max = READING_ENTITIES_MAX };
	*ret_watch = w;
	return 0;
}

void event_watch_free(struct event_watch *w)
{
	if (!w)
		return;
	row_list_done(&w->gpus);
	free(w->findings);
	free(w);
}
