// SPDX-License-Identifier: Apache-2.0
#include "agent/journal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hashmap.h"
#include "base/log.h"
#include "base/strbuf.h"
#include "model/xid.h"
#include "view/shown.h"

/* A faulty GPU may repeat one error for hours; /metrics counts them all. */
#define XID_BURST 10
#define XID_INTERVAL_NS (60 * NSEC_PER_SEC)

struct known_gpu {
	char uuid[96];
	bool present;
	uint64_t layout; /* hash of its MIG instances; 0: none */
};

struct known_xid {
	char pci_bus_id[32];
	uint32_t code;
	uint64_t count;
};

struct journal {
	bool begun, xids_begun; /* the first GPUs, the first XIDs have been recorded */
	unsigned gpus_n;
	struct known_gpu gpus[READING_ENTITIES_MAX];
	uint32_t xids_n;
	struct known_xid *xids;
	bool users_said; /* that users have more workloads than their share */
};

int journal_new(struct journal **ret_journal)
{
	*ret_journal = calloc(1, sizeof(**ret_journal));
	return *ret_journal ? 0 : -ENOMEM;
}

void journal_free(struct journal *j)
{
	if (!j)
		return;
	free(j->xids);
	free(j);
}

static struct known_gpu *find_gpu(struct journal *j, const char *uuid)
{
	for (unsigned i = 0; i < j->gpus_n; i++)
		if (STRV_EQ(j->gpus[i].uuid, uuid))
			return &j->gpus[i];
	return NULL;
}

static bool is_instance_of(const struct snapshot *s, const struct entity *e, uint32_t gpu)
{
	return e->id.parent == gpu && e->present && s->entities[gpu].present;
}

/* FNV-1a over the instances' identities; never 0 if there are instances. */
static uint64_t layout_of(const struct snapshot *s, uint32_t gpu)
{
	uint64_t hash = 0;

	for (uint32_t i = 0; i < s->entities_n; i++) {
		const struct entity *e = &s->entities[i];
		char place[64];

		if (!is_instance_of(s, e, gpu))
			continue;
		snprintf(place, sizeof(place), "%u/%u %s", e->id.gi, e->id.ci, e->id.mig_profile);
		hash = hash ? hash : 0xcbf29ce484222325u;
		for (const char *c = place; *c; c++)
			hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
	}
	return hash;
}

static void log_layout(const struct snapshot *s, uint32_t gpu)
{
	struct strbuf text;
	unsigned n = 0;

	strbuf_init(&text, 600);
	for (uint32_t i = 0; i < s->entities_n; i++)
		if (is_instance_of(s, &s->entities[i], gpu))
			strbuf_addf(&text, "%s%s", n++ ? ", " : "", s->entities[i].id.mig_profile);
	log_notice("GPU %u: %u MIG instance%s%s%s", s->entities[gpu].id.index, n, n == 1 ? "" : "s",
		   n ? ": " : "", text.data);
	strbuf_done(&text);
}

static void compare_gpu(struct journal *j, const struct snapshot *s, uint32_t gpu)
{
	const struct entity *e = &s->entities[gpu];
	struct known_gpu *known = find_gpu(j, e->id.uuid);
	uint64_t layout = layout_of(s, gpu);

	if (!known) {
		if (j->gpus_n == ARRAY_SIZE(j->gpus))
			return;
		known = &j->gpus[j->gpus_n++];
		*known = (struct known_gpu){ .present = true };
		strcpy(known->uuid, e->id.uuid);
		if (j->begun)
			log_notice("GPU %u (%s, %s) is new", e->id.index, e->id.name, e->id.pci_bus_id);
	}
	if (known->present && !e->present) {
		log_warning("GPU %u (%s, %s) %s", e->id.index, e->id.uuid, e->id.pci_bus_id,
			    gpu_gone_words(s, e));
	} else if (!known->present && e->present) {
		log_notice("GPU %u (%s, %s) is back", e->id.index, e->id.uuid, e->id.pci_bus_id);
	}
	/*
	 * The instances of a lost GPU may come back with it, so a layout is compared only while the GPU is
	 * present.
	 */
	if (e->present && j->begun && known->layout != layout)
		log_layout(s, gpu);
	known->layout = e->present ? layout : known->layout;
	known->present = e->present;
}

static uint64_t count_before(const struct journal *j, const struct xid *xid)
{
	for (uint32_t i = 0; i < j->xids_n; i++)
		if (j->xids[i].code == xid->code && STRV_EQ(j->xids[i].pci_bus_id, xid->pci_bus_id))
			return j->xids[i].count;
	return 0;
}

static void log_xid(const struct snapshot *s, const struct xid *xid)
{
	static struct log_limit limit = { .burst = XID_BURST,
					  .interval_ns = XID_INTERVAL_NS,
					  .what = "XID errors" };
	const struct xid_description *d = xid_describe(xid->code);
	char gpu[24] = "a GPU not listed";

	if (!log_limit_allow(&limit))
		return;
	if (xid->entity < s->entities_n)
		snprintf(gpu, sizeof(gpu), "GPU %u", snapshot_gpu(s, &s->entities[xid->entity])->id.index);
	log_at(d->severity == XID_INFO ? LOG_NOTICE : LOG_WARNING,
	       "XID %u (%s) on %s (%s), %llu since boot, %s", xid->code, d->name, gpu, xid->pci_bus_id,
	       (unsigned long long)xid->count, xid_severity_name(d->severity));
}

static int compare_xids(struct journal *j, const struct snapshot *s)
{
	struct known_xid *xids = j->xids;

	if (s->xids_n > j->xids_n) {
		xids = realloc(xids, s->xids_n * sizeof(*xids));
		if (!xids)
			return -ENOMEM;
		j->xids = xids;
	}
	for (uint32_t i = 0; i < s->xids_n; i++)
		if (j->xids_begun && s->xids[i].count > count_before(j, &s->xids[i]))
			log_xid(s, &s->xids[i]);
	for (uint32_t i = 0; i < s->xids_n; i++) {
		xids[i] = (struct known_xid){ .code = s->xids[i].code, .count = s->xids[i].count };
		memcpy(xids[i].pci_bus_id, s->xids[i].pci_bus_id, sizeof(xids[i].pci_bus_id));
	}
	j->xids_n = s->xids_n;
	j->xids_begun = true;
	return 0;
}

/* The user with most workloads. Both are 0 if no user has any now. */
static uint32_t most_workloads(const struct snapshot *s, uint32_t *ret_n)
{
	struct hashmap counts = { 0 };
	uint32_t user = 0, most = 0;

	for (uint32_t i = 0; i < s->workloads_n; i++) {
		uint32_t n = 0, of = s->workloads[i].user;

		if (of == 0)
			continue;
		hashmap_get(&counts, of, &n);
		if (hashmap_put(&counts, of, ++n) < 0 || n <= most)
			continue;
		user = of;
		most = n;
	}
	hashmap_done(&counts);
	*ret_n = most;
	return user;
}

/* Once: a user who makes cgroups could fill the log, too. */
static void say_users(struct journal *j, const struct snapshot *s)
{
	char who[64] = "";
	uint32_t n, user;

	if (j->users_said || s->agent[AGENT_DROPPED_USER_WORKLOADS] <= 0)
		return;
	j->users_said = true;
	user = most_workloads(s, &n);
	if (n > 0)
		snprintf(who, sizeof(who), "; user %u has most, %u", (unsigned)user, (unsigned)n);
	log_warning(
		"users have more workloads in cgroups of their own than their share of workload.max, an "
		"eighth each and half together%s: what has ended, and what has no place, counts as \"other\"",
		who);
}

int journal_take(struct journal *j, const struct snapshot *s)
{
	int r = compare_xids(j, s);

	say_users(j, s);
	/*
	 * A missing driver removes all GPUs, which is logged once, as an outage. An unresponsive driver has
	 * no news.
	 */
	if (snapshot_driver(s)->state != READING_OK || !s->fresh || s->entities_n == 0)
		return r;
	for (uint32_t i = 0; i < s->entities_n; i++)
		if (s->entities[i].id.parent == READING_NONE)
			compare_gpu(j, s, i);
	j->begun = true;
	return r;
}
