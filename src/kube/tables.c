// SPDX-License-Identifier: Apache-2.0
#include "kube/tables.h"

#include <string.h>

#include "base/address.h"
#include "base/macro.h"
#include "model/health_rows.h"

void tables_init(struct tables *tables)
{
	*tables =
		(struct tables){ .list = {
					 [KUBE_OWNERS] = { .size = sizeof(struct owner), .max = OWNERS_MAX },
					 [KUBE_EXPORTERS] = { .size = sizeof(struct kube_exporter),
							      .max = KUBE_EXPORTERS_MAX },
					 [KUBE_LABELS] = { .size = sizeof(struct kube_label),
							   .max = KUBE_LABELS_MAX },
					 [KUBE_DEVICES] = { .size = sizeof(struct kube_device),
							    .max = KUBE_DEVICES_MAX },
					 [KUBE_HEALTH] = { .size = sizeof(struct device_health),
							   .max = DEVICE_HEALTH_MAX },
				 } };
}

void tables_done(struct tables *tables)
{
	for (unsigned i = 0; i < KUBE_TABLES; i++)
		row_list_done(&tables->list[i]);
}

static void add_health(struct tables *tables, const struct node_pod *pod)
{
	if (pod->gone_ns || !pod->running)
		return;
	for (unsigned i = 0; i < POD_DEVICES_MAX && pod->devices[i].id[0]; i++)
		health_note(&tables->list[KUBE_HEALTH], pod->devices[i].id,
			    (enum health)pod->devices[i].health);
}

static struct owner *add_owner_row(struct row_list *owners, const struct node_pod *pod,
				   enum workload_kind kind, const char *id)
{
	struct owner *row = row_list_add(owners);

	if (!row)
		return NULL;
	row->workload = kind;
	PUT_TEXT(row->id, id);
	PUT_TEXT(row->namespace, pod->namespace);
	PUT_TEXT(row->pod, pod->name);
	PUT_TEXT(row->run, pod->run);
	PUT_TEXT(row->group, pod->group);
	return row;
}

static void put_owner(struct owner *row, const struct workload_owner *owner)
{
	if (!row || !owner)
		return;
	PUT_TEXT(row->owner_kind, owner->kind);
	PUT_TEXT(row->owner_name, owner->name);
}

/* Whether another pod is meant by the UID that @pod has beside its own. */
static bool is_of_another(const struct node_pods *pods, const struct node_pod *pod)
{
	for (uint32_t i = 0; i < pods->n; i++) {
		const struct node_pod *other = pods->list[i];
		bool same = STRV_EQ(other->name, pod->name) && STRV_EQ(other->namespace, pod->namespace);

		if (other == pod)
			continue;
		if (STRV_EQ(other->uid, pod->static_uid) ||
		    (!same && STRV_EQ(other->static_uid, pod->static_uid)))
			return true;
	}
	return false;
}

static void add_pod_rows(struct tables *tables, const struct node_pods *pods, const struct node_pod *pod,
			 const struct workload_owner *owner)
{
	struct row_list *owners = &tables->list[KUBE_OWNERS];

	put_owner(add_owner_row(owners, pod, WORKLOAD_POD, pod->uid), owner);
	if (pod->static_uid[0] && !STRV_EQ(pod->static_uid, pod->uid) && !is_of_another(pods, pod))
		put_owner(add_owner_row(owners, pod, WORKLOAD_POD, pod->static_uid), owner);
	for (uint32_t i = 0; i < pod->containers_n; i++) {
		struct owner *row = add_owner_row(owners, pod, WORKLOAD_CONTAINER, pod->containers[i].id);

		if (row)
			PUT_TEXT(row->container, pod->containers[i].name);
		put_owner(row, owner);
	}
}

/* Whether @name is in @list, which is separated by commas. */
static bool has_namespace(const char *list, const char *name)
{
	size_t n = strlen(name);

	for (const char *at = list; at && *at; at += *at == ',') {
		size_t length = strcspn(at += strspn(at, " "), ", ");

		if ((length == 1 && *at == '*') || (length == n && memcmp(at, name, n) == 0))
			return true;
		at += strcspn(at, ",");
	}
	return false;
}

static void add_exporter(struct tables *tables, const struct node_pod *pod)
{
	struct kube_exporter *row;

	if (pod->gone_ns || !pod->selected)
		return;
	if (!has_namespace(tables->exporter_namespaces, pod->namespace)) {
		tables->exporters_skipped++;
		tables->exporters_foreign++;
		PUT_TEXT(tables->foreign, pod->namespace);
		return;
	}
	if (!pod->running || !pod->ready || !address_is_pods(pod->address)) {
		tables->exporters_skipped++;
		return;
	}
	row = row_list_add(&tables->list[KUBE_EXPORTERS]);
	if (!row)
		return;
	PUT_TEXT(row->namespace, pod->namespace);
	PUT_TEXT(row->pod, pod->name);
	PUT_TEXT(row->uid, pod->uid);
	PUT_TEXT(row->address, pod->address);
}

void tables_make(struct tables *tables, const struct node_pods *pods, struct walk *walk, int64_t now_ns)
{
	row_list_clear(&tables->list[KUBE_OWNERS]);
	row_list_clear(&tables->list[KUBE_EXPORTERS]);
	row_list_clear(&tables->list[KUBE_HEALTH]);
	tables->exporters_skipped = tables->exporters_foreign = tables->fallbacks = 0;
	for (uint32_t i = 0; i < pods->n; i++) {
		struct workload_owner owner;
		bool known = walk_find(walk, pods->list[i], now_ns, &owner);

		tables->fallbacks += known && owner.fallback;
		add_pod_rows(tables, pods, pods->list[i], known ? &owner : NULL);
		add_exporter(tables, pods->list[i]);
		add_health(tables, pods->list[i]);
	}
	tables->digest[KUBE_OWNERS] = row_list_digest(&tables->list[KUBE_OWNERS]);
	tables->digest[KUBE_EXPORTERS] = row_list_digest(&tables->list[KUBE_EXPORTERS]);
	tables->digest[KUBE_HEALTH] = row_list_digest(&tables->list[KUBE_HEALTH]);
}
