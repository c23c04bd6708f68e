// SPDX-License-Identifier: Apache-2.0
#include "view/container/rows.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/text.h"
#include "view/dcgm/owners.h"
#include "view/dcgm/shown.h"
#include "view/shown.h"

_Static_assert((int)CONTRACT_METRICS == (int)SCRAPED_METRICS,
	       "scraped rows have the page's numbers in its order");
_Static_assert(CONTRACT_METRICS <= 32, "struct container_row.present has a bit for each");

/* Of a device: texts that are made of its numbers, and its newest XID. */
struct row_device {
	char gpu[16], gi[16], device[32];
	const struct xid *xid;
	bool partitioned;
};

struct container_rows {
	const struct snapshot *s;
	struct dcgm_owners owners;
	struct row_device *devices; /* by entity */
	const struct metric *sources[CONTRACT_METRICS]; /* NULL: the XID */
	const struct owner **controllers; /* that are known, by namespace and pod */
	uint32_t controllers_n;
	struct container_row *rows;
	uint32_t n, room;
	bool failed; /* out of memory */
};

/* ---- controllers ---- */

static int compare_pods(const struct owner *a, const char *namespace, const char *pod)
{
	int order = strcmp(a->namespace, namespace);

	return order ? order : strcmp(a->pod, pod);
}

static int compare_owners(const void *a, const void *b)
{
	const struct owner *x = *(const struct owner *const *)a, *y = *(const struct owner *const *)b;
	int order = compare_pods(x, y->namespace, y->pod);

	/* The pod's own first: of its containers some may have ended long ago. */
	if (order == 0)
		order = (int)y->workload - (int)x->workload;
	return order ? order : x < y ? -1 : x > y;
}

static bool has_other_controller(const struct owner *a, const struct owner *b)
{
	return !STRV_EQ(a->owner_kind, b->owner_kind) || !STRV_EQ(a->owner_name, b->owner_name);
}

static int index_controllers(struct container_rows *rows)
{
	uint32_t n;
	const struct owner *list = owners_list(rows->s->owners, &n);

	rows->controllers = calloc(n + 1u, sizeof(*rows->controllers));
	if (!rows->controllers)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		if (list[i].owner_kind[0] && list[i].pod[0])
			rows->controllers[rows->controllers_n++] = &list[i];
	qsort(rows->controllers, rows->controllers_n, sizeof(*rows->controllers), compare_owners);
	return 0;
}

static void find_controller(const struct container_rows *rows, struct container_row *row)
{
	size_t n = rows->controllers_n;
	size_t at = LOWER_BOUND(n, i, compare_pods(rows->controllers[i], row->namespace, row->pod) < 0);

	if (!row->pod[0] || at == n || compare_pods(rows->controllers[at], row->namespace, row->pod) != 0)
		return;
	/* A pod that is gone has had the name before: which of them is meant is not known. */
	for (size_t i = at + 1; i < n && compare_pods(rows->controllers[i], row->namespace, row->pod) == 0 &&
				rows->controllers[i]->workload == rows->controllers[at]->workload;
	     i++)
		if (has_other_controller(rows->controllers[i], rows->controllers[at]))
			return;
	row->owner_kind = rows->controllers[at]->owner_kind;
	row->owner_name = rows->controllers[at]->owner_name;
}

/* ---- rows ---- */

static struct container_row *append_row(struct container_rows *rows, const struct container_row *row)
{
	if (rows->n == rows->room) {
		uint32_t room = MAX(64u, rows->room * 2);
		struct container_row *more = reallocarray(rows->rows, room, sizeof(*more));

		if (!more) {
			rows->failed = true;
			return NULL;
		}
		rows->rows = more;
		rows->room = room;
	}
	rows->rows[rows->n] = *row;
	return &rows->rows[rows->n++];
}

static void set_value(struct container_row *row, unsigned metric, double value)
{
	row->v[metric] = value;
	row->present |= 1u << metric;
}

/* Six decimals, as exporters print: what is read from a page of theirs and from ours is then the same. */
static double number_of(const struct metric *source, double value)
{
	double number = dcgm_number(&source->dcgm, value);

	return source->dcgm.integer ? number : round(number * 1e6) / 1e6;
}

static void set_names(struct container_row *row, const struct label_set *owner)
{
	for (uint32_t i = 0; owner && i < owner->n; i++) {
		const struct label *label = &owner->labels[i];

		if (STRV_EQ(label->name, "pod"))
			row->pod = label->value;
		else if (STRV_EQ(label->name, "container"))
			row->container = label->value;
		else if (STRV_EQ(label->name, "namespace"))
			row->namespace = label->value;
	}
}

static bool has_owner(const struct container_row *row)
{
	return row->pod[0] || row->container[0] || row->namespace[0];
}

/* ---- devices that the driver, or the source DCGM, lists ---- */

/*
 * The node's name on the page: the one that was given to it, which holds for all that is asked in its name,
 * else the exporter's.
 */
static const char *node_of(const struct snapshot *s, const struct scraped_row *scraped)
{
	return scraped && !s->node_name[0] && scraped->node[0] ? scraped->node : snapshot_node_name(s);
}

/* A row of the exporter that a device is known by; NULL: it is the driver's. */
static const struct scraped_row *exporters_row(const struct snapshot *s, const struct entity *e,
					       const char *gi)
{
	uint32_t n;

	return e->source == SOURCE_DCGM ? scraped_find(s->scraped, e->id.uuid, gi, &n) : NULL;
}

static struct container_row row_of(const struct container_rows *rows, uint32_t i)
{
	const struct entity *e = &rows->s->entities[i];
	const struct reading_entity *gpu = &snapshot_gpu(rows->s, e)->id;
	const struct row_device *device = &rows->devices[i];

	return (struct container_row){
		.node = node_of(rows->s, exporters_row(rows->s, e, device->gi)),
		.model = gpu->name,
		.device = device->device,
		.gpu = device->gpu,
		.uuid = gpu->uuid,
		.mig_profile = entity_is_mig(e) ? dcgm_profile(e->id.mig_profile) : "",
		.mig_instance = device->gi,
		.pod = "",
		.container = "",
		.namespace = "",
		.owner_name = "",
		.owner_kind = "",
		.partitioned = device->partitioned,
		.stale = e->stale,
		.real_ns = e->sampled_real_ns,
		.boot_ns = e->sampled_boot_ns,
	};
}

/* A GPU of the driver's on which no error was reported has 0. */
static void set_xid(const struct container_rows *rows, uint32_t i, struct container_row *row)
{
	const struct entity *e = &rows->s->entities[i];
	const struct xid *xid = rows->devices[i].xid;
	const struct scraped_row *list;
	uint32_t n;

	if (entity_is_mig(e))
		return;
	if (xid || e->source != SOURCE_DCGM) {
		set_value(row, CONTRACT_xid_errors, xid ? xid->code : 0);
		return;
	}
	/* Of several rows of the GPU not each need have it. */
	list = scraped_find(rows->s->scraped, e->id.uuid, "", &n);
	for (uint32_t k = 0; k < n; k++)
		if (scraped_has(&list[k], CONTRACT_xid_errors) &&
		    !scraped_is_stale(rows->s->scraped, &list[k], rows->s->boot_ns))
			set_value(row, CONTRACT_xid_errors, list[k].v[CONTRACT_xid_errors]);
}

static void set_device_values(const struct container_rows *rows, uint32_t i, struct container_row *row)
{
	for (unsigned m = 0; m < CONTRACT_METRICS; m++)
		if (rows->sources[m] && dcgm_stands(rows->s, i, rows->sources[m]))
			set_value(row, m,
				  number_of(rows->sources[m],
					    rows->s->entities[i].id.v[rows->sources[m]->slot]));
	set_xid(rows, i, row);
}

/* Takes what those who share the device have of their own to their rows, which begin at @first. */
static void share_values(struct container_rows *rows, uint32_t i, uint32_t first, struct container_row *rest)
{
	const struct dcgm_sharer *list;
	enum process_metric metric;

	for (unsigned m = 0; m < CONTRACT_METRICS; m++) {
		const struct metric *source = rows->sources[m];
		uint32_t n = source ? dcgm_sharers(&rows->owners, i, source, &list, &metric) : 0, at = first;

		for (uint32_t k = 0; k < n; k++) {
			struct container_row named = row_of(rows, i);
			double own = number_of(source, list[k].v[metric]);

			set_names(&named, &list[k].set);
			if (!has_owner(&named))
				continue; /* a job's: it stays with the device */
			set_value(&rows->rows[at++], m, own);
			if (container_row_has(rest, m))
				rest->v[m] = MAX(rest->v[m] - own, 0.0);
		}
	}
}

static void add_shared(struct container_rows *rows, uint32_t i, struct container_row *rest)
{
	const struct dcgm_owners *owners = &rows->owners;
	uint32_t first = rows->n;

	for (uint32_t k = owners->first[i]; k < owners->first[i + 1]; k++) {
		struct container_row row = row_of(rows, i);

		row.scope = ROW_OWN;
		set_names(&row, &owners->list[k].set);
		if (has_owner(&row))
			(void)append_row(rows, &row);
	}
	rest->scope = rows->n > first ? ROW_REST : ROW_DEVICE;
	if (!rows->failed)
		share_values(rows, i, first, rest);
	(void)append_row(rows, rest);
}

/* Whose it is according to DCGM exporters: of several only that they have it is known. */
static void add_as_scraped(struct container_rows *rows, uint32_t i, struct container_row *row)
{
	const struct scraped *scraped = rows->s->scraped;
	uint32_t n, owners = 0, first = rows->n;
	const struct scraped_row *list = scraped_find(scraped, row->uuid, row->mig_instance, &n);

	for (uint32_t k = 0; k < n; k++) {
		struct container_row own = row_of(rows, i);

		own.scope = ROW_OWN;
		own.pod = list[k].pod;
		own.container = list[k].container;
		own.namespace = list[k].namespace;
		if (!has_owner(&own) || scraped_is_stale(scraped, &list[k], rows->s->boot_ns))
			continue;
		(void)append_row(rows, &own);
		owners++;
	}
	if (owners == 1 && !rows->failed) {
		row->pod = rows->rows[first].pod;
		row->container = rows->rows[first].container;
		row->namespace = rows->rows[first].namespace;
		rows->n = first;
	}
	row->scope = owners > 1 ? ROW_REST : ROW_DEVICE;
	(void)append_row(rows, row);
}

static void add_device(struct container_rows *rows, uint32_t i)
{
	const struct label_set *sole = dcgm_sole_owner(&rows->owners, i);
	uint32_t owners = rows->owners.first[i + 1] - rows->owners.first[i];
	struct container_row row = row_of(rows, i);

	set_device_values(rows, i, &row);
	set_names(&row, sole);
	/* Exporters do not list GPUs beside their instances: nothing is known of this one alone. */
	if (row.partitioned && row.present == 0 && !has_owner(&row) && owners == 0)
		return;
	if (owners > 1)
		add_shared(rows, i, &row);
	else if (sole)
		(void)append_row(rows, &row);
	else
		add_as_scraped(rows, i, &row);
}

static void describe_device(struct container_rows *rows, uint32_t i)
{
	const struct entity *e = &rows->s->entities[i];
	uint32_t index = snapshot_gpu(rows->s, e)->id.index;
	struct row_device *device = &rows->devices[i];

	snprintf(device->gpu, sizeof(device->gpu), "%u", index);
	snprintf(device->device, sizeof(device->device), "nvidia%u", index);
	if (!entity_is_mig(e))
		return;
	snprintf(device->gi, sizeof(device->gi), "%u", e->id.gi);
	if (e->present)
		rows->devices[e->id.parent].partitioned = true;
}

static void find_xids(struct container_rows *rows)
{
	for (uint32_t i = 0; i < rows->s->xids_n; i++) {
		const struct xid *xid = &rows->s->xids[i];
		const struct xid **newest;

		if (xid->entity >= rows->s->entities_n)
			continue;
		newest = &rows->devices[xid->entity].xid;
		if (!*newest || xid->last_real_ns > (*newest)->last_real_ns)
			*newest = xid;
	}
}

static void add_listed_devices(struct container_rows *rows)
{
	for (uint32_t i = 0; i < rows->s->entities_n; i++)
		describe_device(rows, i);
	find_xids(rows);
	for (uint32_t i = 0; i < rows->s->entities_n; i++)
		if (rows->s->entities[i].present && dcgm_is_entity(rows->s, i))
			add_device(rows, i);
}

/* ---- devices that only DCGM exporters have ---- */

static bool driver_lists(const struct container_rows *rows, const struct scraped_row *row)
{
	for (uint32_t i = 0; i < rows->s->entities_n; i++) {
		const struct entity *e = &rows->s->entities[i];

		if (e->present && STRV_EQ(e->id.uuid, row->uuid) && STRV_EQ(rows->devices[i].gi, row->gi))
			return true;
	}
	return false;
}

static struct container_row row_of_scraped(const struct container_rows *rows, const struct scraped_row *from)
{
	const struct snapshot *s = rows->s;
	struct container_row row = {
		.node = node_of(s, from),
		.model = from->model,
		.device = from->device,
		.gpu = from->gpu,
		.uuid = from->uuid,
		.mig_profile = from->mig_profile,
		.mig_instance = from->gi,
		.pod = from->pod,
		.container = from->container,
		.namespace = from->namespace,
		.owner_name = "",
		.owner_kind = "",
		.stale = scraped_is_stale(s->scraped, from, s->boot_ns),
		.real_ns = from->real_ns,
		.boot_ns = from->boot_ns,
	};

	for (unsigned m = 0; m < CONTRACT_METRICS; m++)
		if (scraped_has(from, m))
			set_value(&row, m, from->v[m]);
	return row;
}

/* The rows from @first on are of one GPU; one of its instances has been added. */
static void mark_partitioned(struct container_rows *rows, uint32_t first)
{
	for (uint32_t i = first; i < rows->n && !rows->rows[i].mig_instance[0]; i++)
		rows->rows[i].partitioned = true;
}

/* Rows of one GPU stand together, and those of one device, the GPU's own first. */
static void add_scraped(struct container_rows *rows)
{
	const struct scraped *scraped = rows->s->scraped;
	const struct scraped_row *before = NULL;
	uint32_t first = rows->n;
	bool listed = false;

	for (uint32_t i = 0; scraped && i < scraped->n; i++) {
		const struct scraped_row *from = &scraped->rows[i];
		bool same_gpu = before && STRV_EQ(before->uuid, from->uuid);
		bool same_device = same_gpu && STRV_EQ(before->gi, from->gi);
		struct container_row row;

		first = same_gpu ? first : rows->n;
		if (!same_device)
			listed = driver_lists(rows, from);
		before = from;
		if (listed)
			continue;
		row = row_of_scraped(rows, from);
		(void)append_row(rows, &row);
		if (from->gi[0] && !same_device)
			mark_partitioned(rows, first);
	}
}

/* ---- order ---- */

/* Numbers by value, before other texts; "" before all. */
static int compare_numbers(const char *a, const char *b)
{
	uint64_t x = 0, y = 0;
	bool no_x = parse_u64(a, &x) < 0, no_y = parse_u64(b, &y) < 0;

	if (!a[0] || !b[0])
		return (a[0] != '\0') - (b[0] != '\0');
	if (no_x != no_y)
		return no_x - no_y;
	if (no_x || x == y)
		return strcmp(a, b);
	return x < y ? -1 : 1;
}

static int compare_container_rows(const void *a, const void *b)
{
	const struct container_row *x = a, *y = b;
	const char *const texts[][2] = {
		{ x->namespace, y->namespace }, { x->pod, y->pod },
		{ x->container, y->container }, { x->uuid, y->uuid },
		{ x->device, y->device },       { x->mig_profile, y->mig_profile },
		{ x->node, y->node },           { x->owner_kind, y->owner_kind },
	};
	int order = compare_numbers(x->gpu, y->gpu);

	if (order == 0)
		order = compare_numbers(x->mig_instance, y->mig_instance);
	for (size_t i = 0; order == 0 && i < ARRAY_SIZE(texts); i++)
		order = strcmp(texts[i][0], texts[i][1]);
	return order ? order : (int)x->scope - (int)y->scope;
}

/* ---- the whole ---- */

static int rows_init(struct container_rows *rows)
{
	int r = dcgm_owners_init(&rows->owners, rows->s);

	if (r < 0)
		return r;
	rows->devices = calloc(rows->s->entities_n + 1u, sizeof(*rows->devices));
	if (!rows->devices)
		return -ENOMEM;
	for (unsigned m = 0; m < CONTRACT_METRICS; m++)
		rows->sources[m] = contract_source(m);
	return index_controllers(rows);
}

int container_rows_new(const struct snapshot *snapshot, struct container_rows **ret_rows)
{
	struct container_rows *rows = calloc(1, sizeof(*rows));
	int r;

	if (!rows)
		return -ENOMEM;
	rows->s = snapshot;
	r = rows_init(rows);
	if (r == 0) {
		add_listed_devices(rows);
		add_scraped(rows);
		r = rows->failed ? -ENOMEM : 0;
	}
	if (r < 0) {
		container_rows_free(rows);
		return r;
	}
	for (uint32_t i = 0; i < rows->n; i++)
		find_controller(rows, &rows->rows[i]);
	if (rows->n > 0)
		qsort(rows->rows, rows->n, sizeof(*rows->rows), compare_container_rows);
	*ret_rows = rows;
	return 0;
}

void container_rows_free(struct container_rows *rows)
{
	if (!rows)
		return;
	dcgm_owners_done(&rows->owners);
	free(rows->devices);
	free(rows->controllers);
	free(rows->rows);
	free(rows);
}

const struct container_row *container_rows_list(const struct container_rows *rows, uint32_t *ret_n)
{
	*ret_n = rows->n;
	return rows->rows;
}
