// SPDX-License-Identifier: Apache-2.0
#include "cupti_socket/receive.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "activity/span_union.h"
#include "base/saturated.h"

PLUGIN_ROW_ASSERT(struct gpu_time);

struct device {
	struct gpu_time row;
	struct span_union busy; /* of the slice that is on: work that comes late may overlap any of it */
	double busy_before; /* seconds, of slices before */
};

/* Of a client. */
struct devices {
	uint32_t n;
	struct device list[CUPTI_DEVICES];
	double observed_seconds;
	uint64_t no_room; /* works of further devices */
	struct cupti_slice slice; /* the newest */
};

struct cupti_receiver {
	struct plugin_protocol protocol;
	struct plugin_clients *clients;
	struct cupti_wanted wanted;
	struct cupti_receiver_ops ops;
	void *userdata;
	uint64_t lost; /* of all clients that ever were */
};

/* ---- messages ---- */

static bool is_zeros(const void *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (((const uint8_t *)bytes)[i])
			return false;
	return true;
}

static bool work_is_valid(const struct cupti_work *w)
{
	return w->device != GPU_TIME_NO_DEVICE && w->start_ns > 0 && w->end_ns >= w->start_ns &&
	       w->end_ns - w->start_ns <= CUPTI_DURATION_MAX_NS;
}

static bool name_is_valid(const struct cupti_name *n)
{
	return n->n > 0 && n->n <= CUPTI_NAME_PART && n->size <= CUPTI_NAME_MAX && n->at + n->n <= n->size &&
	       !memchr(n->text, '\0', n->n);
}

static bool slice_is_valid(const struct cupti_slice *s)
{
	return s->state < CUPTI_STATES && s->clock < CUPTI_CLOCKS && s->end_ns >= s->start_ns &&
	       s->end_ns - s->start_ns <= CUPTI_DURATION_MAX_NS;
}

static bool record_is_valid(const void *record)
{
	const union cupti_record *r = record;

	switch (r->kind) {
	case CUPTI_NAME:
		return name_is_valid(&r->name);
	case CUPTI_DEVICE:
		return r->device.device != GPU_TIME_NO_DEVICE &&
		       !is_zeros(r->device.uuid, sizeof(r->device.uuid));
	case CUPTI_SLICE:
		return slice_is_valid(&r->slice);
	default:
		return r->kind < CUPTI_WORKS && work_is_valid(&r->work);
	}
}

/* ---- devices ---- */

static void row_init(const struct plugin_client *client, uint32_t device, struct gpu_time *row)
{
	*row = (struct gpu_time){ .pid = (uint32_t)client->pid,
				  .uid = client->uid,
				  .since_boot_ns = client->since_boot_ns,
				  .device = device };
}

/* NULL: no room. */
static struct device *client_device(const struct plugin_client *client, uint32_t device)
{
	struct devices *devices = client->data;

	for (uint32_t i = 0; i < devices->n; i++)
		if (devices->list[i].row.device == device)
			return &devices->list[i];
	if (devices->n == CUPTI_DEVICES) {
		devices->no_room++;
		return NULL;
	}
	row_init(client, device, &devices->list[devices->n].row);
	return &devices->list[devices->n++];
}

static void put_uuid(char *to, size_t size, const uint8_t u[static 16])
{
	snprintf(to, size, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0],
		 u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14],
		 u[15]);
}

static void device_told(const struct plugin_client *client, const struct cupti_device *told)
{
	struct device *device = client_device(client, told->device);

	if (device)
		put_uuid(device->row.uuid, sizeof(device->row.uuid), told->uuid);
}

static void work_add(const struct plugin_client *client, const struct cupti_work *w,
		     const struct cupti_receiver *receiver)
{
	struct device *device = client_device(client, w->device);
	uint64_t ns = w->end_ns - w->start_ns;
	struct gpu_time *row;

	if (!device)
		return;
	row = &device->row;
	row->kernels += w->kind == CUPTI_KERNEL;
	row->graphs += w->kind == CUPTI_GRAPH;
	row->copies += w->kind == CUPTI_COPY;
	row->sets += w->kind == CUPTI_SET;
	row->bytes = add_saturated(row->bytes, w->bytes);
	if (w->kind == CUPTI_KERNEL || w->kind == CUPTI_GRAPH) {
		row->kernel_seconds += (double)ns / 1e9;
		span_add(&device->busy,
			 (struct span_block){ .start = w->start_ns, .end = w->end_ns, .covered = ns });
	} else {
		row->copy_seconds += (double)ns / 1e9;
	}
	if (receiver->ops.work)
		receiver->ops.work((uint32_t)client->pid, row->uuid, w, receiver->userdata);
}

static double covered_seconds(const struct span_union *spans, uint64_t end_ns)
{
	struct span_union rest = *spans, before;

	span_take(&rest, end_ns, &before);
	return (double)span_covered(&before) / 1e9;
}

/* What runs on when a slice ends is not observed from then on. */
static void slice_add(const struct plugin_client *client, const struct cupti_slice *s)
{
	struct devices *devices = client->data;

	devices->slice = *s;
	devices->observed_seconds += (double)(s->end_ns - s->start_ns) / 1e9;
	for (uint32_t i = 0; i < devices->n; i++) {
		struct device *device = &devices->list[i];

		device->row.busy_seconds = device->busy_before + covered_seconds(&device->busy, s->end_ns);
		if (s->state == CUPTI_ON)
			continue;
		device->busy_before = device->row.busy_seconds;
		device->busy.n = 0;
	}
}

static void record_take(struct plugin_client *client, const void *record, void *userdata)
{
	struct cupti_receiver *receiver = userdata;
	const union cupti_record *r = record;

	if (r->kind == CUPTI_DEVICE)
		device_told(client, &r->device);
	else if (r->kind == CUPTI_SLICE)
		slice_add(client, &r->slice);
	else if (r->kind != CUPTI_NAME)
		work_add(client, &r->work, receiver);
	else if (receiver->ops.name)
		receiver->ops.name((uint32_t)client->pid, &r->name, receiver->userdata);
}

/* With the client's rows, too. */
static void lost_add(_unused_ struct plugin_client *client, uint64_t lost, void *userdata)
{
	struct cupti_receiver *receiver = userdata;

	receiver->lost = add_saturated(receiver->lost, lost);
}

static const struct plugin_protocol protocol = {
	.magic = CUPTI_WIRE_MAGIC,
	.version = CUPTI_WIRE_VERSION,
	.records = CUPTI_WIRE_RECORDS,
	.record_bytes = sizeof(union cupti_record),
	.data_bytes = sizeof(struct devices),
	.is_valid = record_is_valid,
	.record = record_take,
	.lost = lost_add,
};

bool cupti_wire_is_valid(const struct cupti_wire *message, size_t n)
{
	return plugin_message_is_valid(&protocol, message, n);
}

/* ---- figures ---- */

static uint32_t rows_of(const struct plugin_client *client)
{
	uint32_t n = ((const struct devices *)client->data)->n;

	return n > 0 ? n : 1;
}

static void put_state(const struct plugin_client *client, const struct devices *devices, bool first,
		      struct gpu_time *row)
{
	row->gone = client->fd < 0;
	row->observed_seconds = devices->observed_seconds;
	row->state = devices->slice.state;
	row->clock = devices->slice.clock;
	row->api = devices->slice.api;
	row->error = devices->slice.error;
	row->told = devices->slice.kind == CUPTI_SLICE;
	if (!first)
		return;
	row->lost = add_saturated(client->lost, devices->no_room);
	row->dropped = devices->slice.dropped;
	row->unknown = devices->slice.unknown;
	row->bad = devices->slice.bad;
}

/* A client of which no device is known has a row, too: it says why. */
static void client_rows(const struct plugin_client *client, struct row_list *rows)
{
	const struct devices *devices = client->data;
	uint32_t n = rows_of(client);

	if (!plugin_rows_fit(rows, client, n)) {
		rows->dropped += n;
		return;
	}
	for (uint32_t i = 0; i < n; i++) {
		struct gpu_time *row = row_list_add(rows);

		if (!row)
			continue;
		if (i < devices->n)
			*row = devices->list[i].row;
		else
			row_init(client, GPU_TIME_NO_DEVICE, row);
		put_state(client, devices, i == 0, row);
	}
}

void cupti_receiver_rows(struct cupti_receiver *receiver, struct row_list *rows)
{
	for (uint32_t i = 0; i < plugin_clients_count(receiver->clients); i++)
		client_rows(plugin_clients_at(receiver->clients, i), rows);
	plugin_clients_forget(receiver->clients);
}

struct plugin_clients *cupti_receiver_clients(struct cupti_receiver *receiver)
{
	return receiver->clients;
}

uint64_t cupti_receiver_lost(const struct cupti_receiver *receiver)
{
	return receiver->lost;
}

void cupti_receiver_want(struct cupti_receiver *receiver, const struct cupti_wanted *wanted)
{
	receiver->wanted = *wanted;
	receiver->wanted.magic = CUPTI_WIRE_MAGIC;
	receiver->wanted.version = CUPTI_WIRE_VERSION;
}

struct cupti_receiver *cupti_receiver_new(const struct cupti_wanted *wanted,
					  const struct cupti_receiver_ops *ops, void *userdata)
{
	struct cupti_receiver *receiver = calloc(1, sizeof(*receiver));

	if (!receiver)
		return NULL;
	cupti_receiver_want(receiver, wanted);
	receiver->protocol = protocol;
	receiver->protocol.greeting = &receiver->wanted;
	receiver->protocol.greeting_bytes = sizeof(receiver->wanted);
	if (ops)
		receiver->ops = *ops;
	receiver->userdata = userdata;
	receiver->clients = plugin_clients_new(&receiver->protocol, receiver);
	if (!receiver->clients) {
		free(receiver);
		return NULL;
	}
	return receiver;
}

void cupti_receiver_free(struct cupti_receiver *receiver)
{
	if (!receiver)
		return;
	plugin_clients_free(receiver->clients);
	free(receiver);
}
