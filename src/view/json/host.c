// SPDX-License-Identifier: Apache-2.0
#include "view/json/host.h"

#include <string.h>

#include "base/text.h"
#include "view/snapshot/values.h"

/* The longest first. */
static const char *const strips[HOST_LISTS] = {
	[HOST_DISKS] = "host_disk_", [HOST_INTERFACES] = "host_network_"
};
#define STRIP "host_"

static json_t *json_devices(struct json_maker *j, const struct host_devices *devices, enum host_kind kind)
{
	const struct host_list_row *list = &host_lists[kind];
	json_t *array = json_array();

	for (uint32_t i = 0; i < devices->n; i++) {
		const struct host_device *device = &devices->list[i];
		const struct json_rows rows = { .rows = list->rows,
						.n = list->n,
						.v = device->v,
						.p = device->p,
						.strip = strips[kind] };
		json_t *object = json_object();

		json_put(j, object, "name", json_text(device->name));
		json_add_rows(j, object, &rows);
		json_push(j, array, object);
	}
	return array;
}

json_t *json_host(struct json_maker *j)
{
	const struct host *host = &j->s->host;
	const struct json_rows rows = {
		.rows = host_metrics, .n = HOST_METRICS, .v = host->v, .p = host->p, .strip = STRIP
	};
	json_t *object;

	if (!host->read)
		return json_null();
	object = json_object();
	json_add_rows(j, object, &rows);
	for (unsigned k = 0; k < HOST_LISTS; k++)
		json_put(j, object, host_lists[k].member,
			 presence_is(host->p[host_lists[k].left_out]) ?
				 json_devices(j, &host->devices[k], k) :
				 json_null());
	return object;
}

static void read_devices(const json_t *array, enum host_kind kind, struct host_devices *ret_devices)
{
	const struct host_list_row *list = &host_lists[kind];
	json_t *object;
	size_t i;

	json_array_foreach(array, i, object) {
		struct host_device *device = &ret_devices->list[ret_devices->n];

		if (ret_devices->n == HOST_DEVICES_MAX)
			break;
		READ_TEXT(device->name, object, "name");
		read_rows(object, list->rows, list->n, strips[kind], NULL, device->v, device->p);
		ret_devices->n++;
	}
}

void json_read_host(const json_t *object, struct host *ret_host)
{
	memset(ret_host, 0, sizeof(*ret_host));
	ret_host->read = json_is_object(object);
	read_rows(object, host_metrics, HOST_METRICS, STRIP, NULL, ret_host->v, ret_host->p);
	for (unsigned k = 0; k < HOST_LISTS; k++)
		read_devices(json_object_get(object, host_lists[k].member), k, &ret_host->devices[k]);
}
