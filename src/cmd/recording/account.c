// SPDX-License-Identifier: Apache-2.0
#include "cmd/recording/account.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hashmap.h"
#include "base/macro.h"
#include "base/text.h"

enum {
	WHO_MAX = 4096,
	XIDS_MAX = 1024,
	ITEMS_MAX = 4096,
	COUNTERS_MAX = 1 << 20,
	GPUS_MAX = READING_ENTITIES_MAX
};

struct counter {
	double last;
	uint64_t frame; /* number of the newest snapshot with it, from 1 */
};

struct account_counters {
	struct hashmap by;
	struct counter *list;
	uint32_t n, room;
	struct hashmap selected; /* processes of whom the report is */
	uint32_t selected_n;
};

/* ---- counters ---- */

static uint64_t key_hash(const char *what, const char *a, const char *b, uint64_t number)
{
	char text[700];
	int n = snprintf(text, sizeof(text), "%s\n%s\n%s\n%llu", what, a, b, (unsigned long long)number);

	return hash_bytes_secret(text, (size_t)MIN(n, (int)sizeof(text) - 1));
}

static struct counter *counter_add(struct account *account, uint64_t key)
{
	struct account_counters *c = account->counters;
	uint32_t room = MAX(1024u, c->room * 2);
	struct counter *list = c->list;

	if (c->n == c->room) {
		list = room <= COUNTERS_MAX ? reallocarray(c->list, room, sizeof(*list)) : NULL;
		if (list) {
			c->list = list;
			c->room = room;
		}
	}
	if (!list || hashmap_put(&c->by, key, c->n) < 0) {
		account->left_out++;
		return NULL;
	}
	list = &list[c->n++];
	*list = (struct counter){ 0 };
	return list;
}

/* How much it has grown since it was last seen. @from_zero: one that comes later began with 0. */
static double grown(struct account *account, uint64_t key, double value, bool from_zero)
{
	struct account_counters *c = account->counters;
	uint64_t frame = account->frames + 1;
	struct counter *counter;
	double more;
	uint32_t at;
	bool known;

	/* Two rows of one snapshot that have the same names are two counters. */
	while ((known = hashmap_get(&c->by, key, &at)) && c->list[at].frame == frame)
		key++;
	counter = known ? &c->list[at] : counter_add(account, key);
	if (!counter)
		return 0;
	if (known)
		more = value >= counter->last ? value - counter->last : value;
	else
		more = from_zero && account->frames > 0 ? value : 0;
	*counter = (struct counter){ value, frame };
	return more;
}

/* Whether it is seen for the first time; false beyond the limit. */
static bool is_new(struct account *account, uint64_t key)
{
	uint32_t at;

	return !hashmap_get(&account->counters->by, key, &at) && counter_add(account, key);
}

static void add_amount(struct amount *amount, double value, uint8_t p)
{
	amount->value += value;
	amount->known = true;
	amount->estimated |= (p & PRESENCE_ESTIMATED) != 0;
}

/*
 * What a counter has grown by; one that is not present stands where it was. @amount may be NULL: it is
 * remembered all the same.
 */
static void add_counter(struct account *account, struct amount *amount, uint64_t key, double value, uint8_t p)
{
	double more = presence_is(p) ? grown(account, key, value, true) : 0;

	if (amount && presence_is(p))
		add_amount(amount, more, p);
}

static void raise_amount(struct amount *amount, double value, uint8_t p)
{
	if (!presence_is(p))
		return;
	amount->value = MAX(amount->value, value);
	amount->known = true;
	amount->estimated |= (p & PRESENCE_ESTIMATED) != 0;
}

void *account_room(void *list, uint32_t n, uint32_t *room, uint32_t max, size_t size)
{
	uint32_t more = MAX(16u, *room * 2);
	void *bigger;

	if (n < *room)
		return list;
	bigger = more <= max ? reallocarray(list, more, size) : NULL;
	if (bigger)
		*room = more;
	return bigger;
}

/* ---- GPUs ---- */

static struct account_gpu *gpu_of(struct account *account, const struct entity *e)
{
	char instance[16] = "";
	struct account_gpu *gpu;

	if (e->id.gi != UINT32_MAX)
		snprintf(instance, sizeof(instance), "%u/%u", e->id.gi & 0xffff, e->id.ci & 0xffff);
	for (uint32_t i = 0; i < account->gpus_n; i++)
		if (STRV_EQ(account->gpus[i].uuid, e->id.uuid) &&
		    STRV_EQ(account->gpus[i].instance, instance))
			return &account->gpus[i];
	if (account->gpus_n == GPUS_MAX) {
		account->left_out++;
		return NULL;
	}
	gpu = &account->gpus[account->gpus_n++];
	memcpy(gpu->uuid, e->id.uuid, sizeof(gpu->uuid));
	memcpy(gpu->name, e->id.name, sizeof(gpu->name));
	memcpy(gpu->instance, instance, sizeof(instance));
	gpu->index = e->id.index;
	return gpu;
}

static void account_point(struct account *account, struct account_gpu *gpu, const struct entity *e,
			  int64_t real_ns)
{
	static const enum gpu_slot slots[] = { SLOT_UTILIZATION_GPU, SLOT_POWER, SLOT_MEMORY_USED };
	double length = (double)(account->until_ns - account->since_ns) + 1;
	double at = (double)(real_ns - account->since_ns) / length * ACCOUNT_POINTS;

	if (at < 0 || at >= ACCOUNT_POINTS || e->stale)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(slots); i++) {
		if (!presence_is(e->id.p[slots[i]]))
			continue;
		gpu->points[(size_t)at].sum[i] += e->id.v[slots[i]];
		gpu->points[(size_t)at].n[i]++;
	}
}

static void account_gpu(struct account *account, const struct snapshot *s, const struct entity *e)
{
	struct account_gpu *gpu = gpu_of(account, e);

	if (!gpu)
		return;
	for (unsigned i = 0; i < GPU_METRICS; i++) {
		const struct metric *m = &gpu_metrics[i];

		if (m->kind != METRIC_COUNTER && m->kind != METRIC_INCREMENT)
			continue;
		for (unsigned slot = m->slot; slot < (unsigned)m->slot + m->count; slot++)
			if (presence_is(e->id.p[slot]))
				add_amount(&gpu->slots[slot],
					   grown(account, key_hash("gpu", e->id.uuid, gpu->instance, slot),
						 e->id.v[slot], false),
					   e->id.p[slot]);
	}
	gpu->busy = gpu->slots[SLOT_BUSY_GPU];
	gpu->observed = gpu->slots[SLOT_OBSERVED];
	gpu->energy = gpu->slots[SLOT_ENERGY];
	raise_amount(&gpu->memory_peak, e->id.v[SLOT_MEMORY_USED], e->id.p[SLOT_MEMORY_USED]);
	account_point(account, gpu, e, s->real_ns);
}

/* ---- who ---- */

bool account_selects(const struct account *account)
{
	const struct selection *select = &account->selection;

	return select->pod || select->container || select->job || select->uid != UINT32_MAX;
}

/* Of a workload; @owner and @job may be NULL. */
struct whose {
	enum workload_kind kind;
	const char *id, *pod_uid;
	uint32_t user; /* as in struct workload */
	const char *namespace, *pod, *container;
	const struct job *job;
	uint32_t uid;
};

static bool pod_matches(const struct whose *w, const char *wanted)
{
	const char *slash = strchr(wanted, '/');

	if (slash)
		return strlen(w->namespace) == (size_t)(slash - wanted) &&
		       strncmp(w->namespace, wanted, (size_t)(slash - wanted)) == 0 &&
		       STRV_EQ(w->pod, slash + 1);
	return STRV_EQ(w->pod, wanted) || STRV_EQ(w->pod_uid, wanted) ||
	       (w->kind == WORKLOAD_POD && STRV_EQ(w->id, wanted));
}

static bool container_matches(const struct whose *w, const char *wanted)
{
	return w->kind == WORKLOAD_CONTAINER &&
	       (STRV_EQ(w->container, wanted) ||
		(strlen(wanted) >= 12 && strncmp(w->id, wanted, strlen(wanted)) == 0));
}

static bool job_matches(const struct whose *w, const char *wanted)
{
	size_t claimed = strlen(JOB_CLAIMED);

	if (strncmp(wanted, JOB_CLAIMED, claimed) == 0)
		return w->job && w->job->claimed && STRV_EQ(w->job->id, wanted + claimed);
	return (w->kind == WORKLOAD_JOB && STRV_EQ(w->id, wanted)) ||
	       (w->job && !w->job->claimed && STRV_EQ(w->job->id, wanted));
}

static bool is_selected(const struct account *account, const struct whose *w)
{
	const struct selection *select = &account->selection;

	if (select->pod && !pod_matches(w, select->pod))
		return false;
	if (select->container && !container_matches(w, select->container))
		return false;
	if (select->job && !job_matches(w, select->job))
		return false;
	return select->uid == UINT32_MAX || select->uid == w->uid;
}

/* Its names are not known yet: what it does now is kept, in case that it turns out to be selected. */
static bool may_be_named(const struct account *account, const struct whose *w)
{
	const struct selection *select = &account->selection;

	return (select->pod || select->container) && !*w->pod && !*w->container &&
	       (w->kind == WORKLOAD_CONTAINER || w->kind == WORKLOAD_POD) &&
	       (!select->job || job_matches(w, select->job)) &&
	       (select->uid == UINT32_MAX || select->uid == w->uid);
}

static bool same_who(const struct account_who *who, const struct whose *w, const char *id)
{
	if (who->kind != w->kind || who->user != w->user)
		return false;
	if (*id)
		return STRV_EQ(who->id, id);
	return STRV_EQ(who->namespace, w->namespace) && STRV_EQ(who->pod, w->pod) &&
	       STRV_EQ(who->container, w->container);
}

/* NULL: not wanted, or beyond the limit. */
static struct account_who *who_of(struct account *account, const struct whose *w)
{
	struct account_who *who = NULL, *list;
	bool selected = is_selected(account, w);
	char id[ACCOUNT_NAME];

	if (!selected && !may_be_named(account, w))
		return NULL;
	if (w->kind == WORKLOAD_NONE && w->uid != UINT32_MAX)
		snprintf(id, sizeof(id), "%u", w->uid);
	else
		snprintf(id, sizeof(id), "%s", w->id);
	for (uint32_t i = 0; i < account->who_n && !who; i++)
		if (same_who(&account->who[i], w, id))
			who = &account->who[i];
	if (!who) {
		list = account_room(account->who, account->who_n, &account->who_room, WHO_MAX, sizeof(*list));
		if (!list) {
			account->left_out++;
			return NULL;
		}
		account->who = list;
		who = &list[account->who_n++];
		*who = (struct account_who){ .kind = w->kind, .user = w->user };
		memcpy(who->id, id, sizeof(id));
	}
	who->selected |= selected;
	if (*w->pod || *w->container) {
		snprintf(who->namespace, sizeof(who->namespace), "%s", w->namespace);
		snprintf(who->pod, sizeof(who->pod), "%s", w->pod);
		snprintf(who->container, sizeof(who->container), "%s", w->container);
	}
	if (w->job)
		snprintf(who->job_name, sizeof(who->job_name), "%s", w->job->name);
	return who;
}

static struct whose whose(enum workload_kind kind, const char *id, const char *pod_uid, uint32_t user,
			  const struct owner *owner)
{
	return (struct whose){
		.kind = kind,
		.id = id,
		.pod_uid = pod_uid,
		.user = user,
		.namespace = owner ? owner->namespace : "",
		.pod = owner ? owner->pod : "",
		.container = owner ? owner->container : "",
		.uid = UINT32_MAX,
	};
}

static struct whose whose_workload(const struct snapshot *s, const struct workload *workload)
{
	struct whose w;

	if (!workload)
		return whose(WORKLOAD_NONE, "", "", 0, NULL);
	w = whose(workload->kind, workload->id, workload->pod_uid, workload->user, workload->owner);
	w.job = snapshot_job(s, workload->job);
	return w;
}

/* Of the traced workload with this index. */
static struct whose whose_name(const struct snapshot *s, uint16_t index)
{
	const struct workload_name *name = index < s->workload_names_n ? &s->workload_names[index] : NULL;

	return name ? whose(name->kind, name->id, name->pod_uid, name->user, name->owner) :
		      whose(WORKLOAD_NONE, "", "", 0, NULL);
}

static uint64_t process_number(struct process_id id)
{
	return (uint64_t)id.pid << 32 ^ id.start_ticks;
}

/* What it calls and launches is of whom the report is, too. */
static void select_process(struct account *account, struct process_id id)
{
	struct account_counters *c = account->counters;
	uint32_t is;

	if (hashmap_get(&c->selected, process_number(id), &is))
		return;
	if (c->selected_n == COUNTERS_MAX || hashmap_put(&c->selected, process_number(id), 1) < 0)
		account->left_out++;
	else
		c->selected_n++;
}

/* A peak is of the process's whole life: it was reached in this time only if it has grown meanwhile. */
static void account_peak(struct account *account, struct account_who *who, const struct process *p,
			 uint64_t key)
{
	enum process_metric row = PROCESS_MEMORY;

	if (presence_is(p->p[PROCESS_MEMORY_PEAK]) &&
	    grown(account, key, p->v[PROCESS_MEMORY_PEAK], true) > 0)
		row = PROCESS_MEMORY_PEAK;
	if (who)
		raise_amount(&who->memory_peak, p->v[row], p->p[row]);
}

static void account_process(struct account *account, const struct snapshot *s, const struct process *p)
{
	const struct entity *e = &s->entities[p->entity];
	struct whose w = whose_workload(s, p->workload < s->workloads_n ? &s->workloads[p->workload] : NULL);
	char device[128];
	struct account_who *who;
	uint64_t number = process_number(p->id);

	w.uid = p->uid;
	if (!w.job)
		w.job = snapshot_job(s, p->job);
	snprintf(device, sizeof(device), "%s/%u/%u", e->id.uuid, e->id.gi, e->id.ci);
	who = who_of(account, &w);
	if (account_selects(account) && is_selected(account, &w))
		select_process(account, p->id);
	add_counter(account, who ? &who->busy : NULL, key_hash("busy", device, "", number),
		    p->v[PROCESS_BUSY], p->p[PROCESS_BUSY]);
	add_counter(account, who ? &who->energy : NULL, key_hash("energy", device, "", number),
		    p->v[PROCESS_ENERGY], p->p[PROCESS_ENERGY]);
	account_peak(account, who, p, key_hash("peak", device, "", number));
	if (!who)
		return;
	/* On several GPUs it is one process. */
	who->processes += is_new(account, key_hash("process", "", "", number));
	who->ended += p->exited && is_new(account, key_hash("ended", "", "", number));
}

static void account_allocation(struct account *account, const struct snapshot *s, const struct allocated *a)
{
	const struct entity *e = &s->entities[a->entity];
	struct whose w = { .kind = a->kind,
			   .id = a->id,
			   .pod_uid = a->pod_uid,
			   .namespace = a->namespace,
			   .pod = a->pod,
			   .container = a->container,
			   .uid = UINT32_MAX };
	uint64_t instance = e->id.gi ^ (uint64_t)e->id.ci << 32;
	char id[700];
	struct account_who *who = a->kind == WORKLOAD_NONE ? NULL : who_of(account, &w);

	snprintf(id, sizeof(id), "%s/%s/%s/%s", a->id, a->namespace, a->pod, a->container);
	add_counter(account, who ? &who->allocated : NULL, key_hash("allocated", id, e->id.uuid, instance),
		    a->seconds, a->estimated ? PRESENCE_PRESENT | PRESENCE_ESTIMATED : PRESENCE_PRESENT);
	add_counter(account, who ? &who->idle : NULL, key_hash("idle", id, e->id.uuid, instance),
		    a->idle_seconds, a->idle_p);
}

static void account_use(struct account *account, const struct snapshot *s, const struct traced_use *use)
{
	struct whose w = whose_name(s, use->name);
	uint64_t number = (uint64_t)w.user << 32 | w.kind;
	struct account_who *who = w.kind == WORKLOAD_NONE ? NULL : who_of(account, &w);

	add_counter(account, who ? &who->launches : NULL, key_hash("launches", w.id, use->uuid, number),
		    use->v[TRACED_LAUNCHES], use->p[TRACED_LAUNCHES]);
	add_counter(account, who ? &who->errors : NULL, key_hash("errors", w.id, use->uuid, number),
		    use->v[TRACED_ERRORS], use->p[TRACED_ERRORS]);
}

/* ---- XIDs, calls, kernels, operators ---- */

static void account_xid(struct account *account, const struct snapshot *s, const struct xid *xid)
{
	const char *uuid = xid->entity < s->entities_n ? s->entities[xid->entity].id.uuid : "";
	double count =
		grown(account, key_hash("xid", xid->pci_bus_id, "", xid->code), (double)xid->count, true);
	struct account_xid *list;

	if (count <= 0)
		return;
	for (uint32_t i = 0; i < account->xids_n; i++) {
		struct account_xid *known = &account->xids[i];

		if (STRV_EQ(known->pci_bus_id, xid->pci_bus_id) && known->code == xid->code) {
			known->count += count;
			known->last_real_ns = xid->last_real_ns;
			return;
		}
	}
	list = account_room(account->xids, account->xids_n, &account->xids_room, XIDS_MAX, sizeof(*list));
	if (!list) {
		account->left_out++;
		return;
	}
	account->xids = list;
	list = &list[account->xids_n++];
	*list = (struct account_xid){ .code = xid->code, .count = count, .last_real_ns = xid->last_real_ns };
	snprintf(list->uuid, sizeof(list->uuid), "%s", uuid);
	snprintf(list->pci_bus_id, sizeof(list->pci_bus_id), "%s", xid->pci_bus_id);
}

static struct account_item *item_of(struct account *account, struct account_items *items, const char *text)
{
	struct account_item *list;
	char name[ACCOUNT_NAME];

	snprintf(name, sizeof(name), "%s", text);
	utf8_sanitize(name);
	for (uint32_t i = 0; i < items->n; i++)
		if (STRV_EQ(items->list[i].name, name))
			return &items->list[i];
	list = account_room(items->list, items->n, &items->room, ITEMS_MAX, sizeof(*list));
	if (!list) {
		account->left_out++;
		return NULL;
	}
	items->list = list;
	list = &list[items->n++];
	*list = (struct account_item){ 0 };
	memcpy(list->name, name, sizeof(name));
	return list;
}

/* @number: of a process; 0: the sum over all. */
static void account_call(struct account *account, const struct traced_call *call, uint64_t number)
{
	bool nccl = call->layer && STRV_EQ(call->layer, "nccl");
	const char *library = call->library ? call->library : "";
	double count =
		grown(account, key_hash("calls", call->api, library, number), (double)call->count, true);
	double errors = grown(account, key_hash("call errors", call->api, library, number),
			      (double)call->errors, true);
	double bytes =
		grown(account, key_hash("call bytes", call->api, library, number), (double)call->bytes, true);
	double seconds =
		grown(account, key_hash("call seconds", call->api, library, number), call->seconds, true);
	struct account_item *item;

	if (count <= 0)
		return;
	item = item_of(account, nccl ? &account->collectives : &account->calls, call->api);
	if (!item)
		return;
	item->count += count;
	item->errors += errors;
	item->bytes += bytes;
	item->seconds += seconds;
}

static void account_kernel(struct account *account, const struct traced_kernel *launches, uint64_t number)
{
	const struct kernel *kernel = launches->kernel;
	char place[128];
	double count, seconds;
	struct account_item *item;

	/* The same symbol may be in several files, and for several architectures in one. */
	snprintf(place, sizeof(place), "%s %llx %u", launches->uuid,
		 kernel ? (unsigned long long)kernel->offset : 0, kernel ? kernel->arch.sm : 0);
	count = grown(account, key_hash("kernel", kernel ? kernel->symbol : "", place, number),
		      (double)launches->all.launches, true);
	seconds = grown(account, key_hash("kernel seconds", kernel ? kernel->symbol : "", place, number),
			launches->all.seconds, true);
	item = count > 0 ? item_of(account, &account->kernels, kernel ? kernel->brief : "(others)") : NULL;
	if (!item)
		return;
	item->count += count;
	item->seconds += seconds;
}

/* @number: of a process; 0: the sum over all. */
static void account_operator(struct account *account, const struct traced_operator *operator, uint64_t number)
{
	double count =
		grown(account,
		      key_hash("operator", operator->name, "", number), operator->v[OPERATOR_METRIC_CALLS],
		      true);
	double seconds = grown(
		account,
		key_hash("operator seconds", operator->name, "", number), operator->v[OPERATOR_METRIC_BUSY],
		true);
	struct account_item *item =
		count > 0 && *operator->name ? item_of(account, &account->operators, operator->name) : NULL;

	if (!item)
		return;
	item->count += count;
	item->seconds += seconds;
}

/* The driver has listed it as one of who is selected, or its workload is. */
static bool traced_is_selected(const struct account *account, const struct snapshot *s, uint32_t process)
{
	struct whose w = whose_name(s, s->traced_workloads[process]);
	uint32_t is;

	return hashmap_get(&account->counters->selected, process_number(s->trace->processes[process].id),
			   &is) ||
	       (w.kind != WORKLOAD_NONE && is_selected(account, &w));
}

bool account_has_process(const struct account *account, const struct snapshot *s, uint32_t pid)
{
	const struct trace_view *view = s->trace;
	uint32_t i = trace_view_find(view, view->processes_n, pid);

	for (; i < view->processes_n && view->processes[i].id.pid == pid; i++)
		if (traced_is_selected(account, s, i))
			return true;
	return false;
}

static void account_node_calls(struct account *account, const struct trace_view *view)
{
	for (uint32_t i = 0; i < view->all_calls_n; i++)
		account_call(account, &view->all_calls[i], 0);
	for (uint32_t i = 0; i < view->operators_n; i++)
		account_operator(account, &view->operators[i], 0);
}

static void account_process_calls(struct account *account, const struct trace_view *view,
				  const struct traced_process *process)
{
	for (uint32_t i = 0; i < process->calls_n; i++)
		account_call(account, &view->calls[process->calls_first + i], process_number(process->id));
}

static void account_process_kernels(struct account *account, const struct trace_view *view,
				    const struct traced_process *process)
{
	for (uint32_t i = 0; i < process->kernels_n; i++)
		account_kernel(account, &view->kernels[process->kernels_first + i],
			       process_number(process->id));
}

static void account_process_operators(struct account *account, const struct snapshot *s)
{
	const struct trace_view *view = s->trace;

	for (uint32_t i = 0; i < view->process_operators_n; i++) {
		const struct process_operator *row = &view->process_operators[i];

		if (traced_is_selected(account, s, row->process))
			account_operator(account, &row->op, process_number(view->processes[row->process].id));
	}
}

static void account_trace(struct account *account, const struct snapshot *s)
{
	const struct trace_view *view = s->trace;
	bool selects = account_selects(account);

	if (!view || !view->enabled)
		return;
	account->traced = true;
	if (selects)
		account_process_operators(account, s);
	else
		account_node_calls(account, view);
	for (uint32_t i = 0; i < view->processes_n; i++) {
		if (selects && !traced_is_selected(account, s, i))
			continue;
		if (selects)
			account_process_calls(account, view, &view->processes[i]);
		account_process_kernels(account, view, &view->processes[i]);
	}
	account_add_findings(account, s);
}

/* ---- snapshots ---- */

static void account_time(struct account *account, const struct snapshot *s, int64_t period_ns)
{
	int64_t step_ns = s->boot_ns - account->boot_ns;

	if (account->frames == 0) {
		account->first_real_ns = s->real_ns;
	} else if (step_ns >= 0 && step_ns <= 3 * period_ns) {
		account->covered_seconds += (double)step_ns / 1e9;
	} else {
		/* Of a machine that was started again only the wall clock tells. */
		step_ns = step_ns < 0 ? s->real_ns - account->last_real_ns : step_ns;
		account->missing_seconds += MAX((double)step_ns, 0.0) / 1e9;
	}
	account->boot_ns = s->boot_ns;
	account->last_real_ns = s->real_ns;
	account->simulated |= s->simulated;
	memcpy(account->hostname, s->hostname, sizeof(account->hostname));
}

int account_add(struct account *account, const struct snapshot *s, int64_t period_ns)
{
	account->period_ns = period_ns;
	account_time(account, s, period_ns);
	for (uint32_t i = 0; i < s->entities_n; i++)
		account_gpu(account, s, &s->entities[i]);
	for (uint32_t i = 0; i < s->processes_n; i++)
		account_process(account, s, &s->processes[i]);
	for (uint32_t i = 0; i < s->exited_n; i++)
		account_process(account, s, &s->exited[i]);
	for (uint32_t i = 0; i < s->allocated_n; i++)
		account_allocation(account, s, &s->allocated[i]);
	for (uint32_t i = 0; i < s->traced_uses_n; i++)
		account_use(account, s, &s->traced_uses[i]);
	for (uint32_t i = 0; i < s->xids_n; i++)
		account_xid(account, s, &s->xids[i]);
	account_trace(account, s);
	account->frames++;
	return 0;
}

static int by_busy(const void *a, const void *b)
{
	const struct account_who *x = a, *y = b;

	if (x->busy.value != y->busy.value)
		return x->busy.value > y->busy.value ? -1 : 1;
	return strcmp(x->id, y->id);
}

static int by_item_time(const void *a, const void *b)
{
	const struct account_item *x = a, *y = b;

	if (x->seconds != y->seconds)
		return x->seconds > y->seconds ? -1 : 1;
	return x->count > y->count ? -1 : x->count < y->count;
}

static void sort_items(struct account_items *items)
{
	if (items->n > 0)
		qsort(items->list, items->n, sizeof(*items->list), by_item_time);
}

/* Those whose names have turned out to be others, or were never known. */
static void drop_unselected(struct account *account)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < account->who_n; i++)
		if (account->who[i].selected)
			account->who[n++] = account->who[i];
	account->who_n = n;
}

void account_finish(struct account *account)
{
	drop_unselected(account);
	if (account->who_n > 0)
		qsort(account->who, account->who_n, sizeof(*account->who), by_busy);
	sort_items(&account->calls);
	sort_items(&account->collectives);
	sort_items(&account->kernels);
	sort_items(&account->operators);
}

int account_new(const struct selection *selection, int64_t since_ns, int64_t until_ns,
		struct account **ret_account)
{
	struct account *account = calloc(1, sizeof(*account));

	if (account) {
		account->gpus = calloc(GPUS_MAX, sizeof(*account->gpus));
		account->counters = calloc(1, sizeof(*account->counters));
	}
	if (!account || !account->gpus || !account->counters) {
		account_free(account);
		return -ENOMEM;
	}
	account->selection = *selection;
	account->since_ns = since_ns;
	account->until_ns = until_ns;
	*ret_account = account;
	return 0;
}

void account_free(struct account *account)
{
	if (!account)
		return;
	if (account->counters) {
		hashmap_done(&account->counters->by);
		hashmap_done(&account->counters->selected);
		free(account->counters->list);
	}
	free(account->counters);
	free(account->gpus);
	free(account->who);
	free(account->xids);
	free(account->calls.list);
	free(account->collectives.list);
	free(account->kernels.list);
	free(account->operators.list);
	free(account->findings);
	for (uint32_t i = 0; i < account->texts_n; i++)
		free(account->texts[i]);
	free(account->texts);
	free(account);
}
