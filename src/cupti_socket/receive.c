// SPDX-License-Identifier: Apache-2.0
#include "cupti_socket/receive.h"

#include <stdlib.h>
#include <string.h>

#include "activity/span_union.h"
#include "base/clock.h"
#include "base/saturated.h"
#include "base/user_shares.h"
#include "model/gpu_work.h"

PLUGIN_ROW_ASSERT(struct gpu_time);

struct device {
	struct gpu_time row;
	struct span_union busy; /* of the slice that is on: work that comes late may overlap any of it */
	double busy_before; /* seconds, of slices before */
	uint8_t uuid[16]; /* zeros: not known */
};

/* Of a client. */
struct devices {
	uint32_t n;
	struct device list[CUPTI_DEVICES];
	double observed_seconds;
	uint64_t no_room; /* works of further devices */
	struct cupti_slice slice; /* the newest */
	uint64_t untimely; /* records of times that cannot be */
	/* Of what is kept: */
	uint64_t kept_round; /* in which the next two were set */
	uint32_t kept, user; /* rows; index of the user's share */
	uint64_t kept_missing, told_missing; /* records, so far; as of the newest slice */
};

struct cupti_receiver {
	struct plugin_protocol protocol;
	struct plugin_clients *clients;
	struct cupti_wanted wanted;
	struct cupti_receiver_ops ops;
	void *userdata;
	uint64_t lost; /* of all clients that ever were */
	struct row_list kept; /* struct gpu_work; none unless cupti_receiver_keep() was called */
	struct user_shares shares; /* of these, by user */
	uint64_t round, not_kept;
};

/* ---- messages ---- */

static bool record_is_valid(const void *record)
{
	return cupti_record_is_valid(record);
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

static void device_told(const struct plugin_client *client, const struct cupti_device *told)
{
	struct device *device = client_device(client, told->device);

	if (!device)
		return;
	memcpy(device->uuid, told->uuid, sizeof(device->uuid));
	gpu_uuid_text(device->row.uuid, sizeof(device->row.uuid), told->uuid);
}

/* ---- what is kept, to be handed on ---- */

static bool client_has_room(struct cupti_receiver *receiver, const struct plugin_client *client,
		     struct devices *devices)
{
	if (devices->kept_round != receiver->round) {
		devices->kept_round = receiver->round;
		devices->kept = 0;
		devices->user = user_shares_charged(&receiver->shares, client->uid);
	}
	return devices->kept < GPU_WORKS_PROCESS &&
	       user_shares_have(&receiver->shares, devices->user, 0, 1);
}

/* NULL: it is not kept. */
static struct gpu_work *keep(struct cupti_receiver *receiver, const struct plugin_client *client,
			     const struct device *device, const union cupti_record *record)
{
	struct devices *devices = client->data;
	struct gpu_work *kept;

	if (receiver->kept.max == 0)
		return NULL;
	kept = client_has_room(receiver, client, devices) ? row_list_add(&receiver->kept) : NULL;
	if (!kept) {
		devices->kept_missing++;
		receiver->not_kept++;
		return NULL;
	}
	devices->kept++;
	user_shares_take(&receiver->shares, devices->user, 0, 1);
	kept->pid = (uint32_t)client->pid;
	kept->uid = client->uid;
	kept->since_boot_ns = client->since_boot_ns;
	kept->record = *record;
	if (device)
		memcpy(kept->uuid, device->uuid, sizeof(kept->uuid));
	return kept;
}

static uint64_t missing_of(const struct plugin_client *client, const struct devices *devices)
{
	uint64_t missing = add_saturated(client->lost, devices->no_room + devices->untimely);

	missing = add_saturated(missing, add_saturated(devices->slice.dropped, devices->slice.bad));
	return add_saturated(missing, devices->kept_missing);
}

/* A row for each device, or one of none. False: it is not kept. */
static bool keep_slice(struct cupti_receiver *receiver, const struct plugin_client *client,
		       const struct cupti_slice *slice, const double *before, uint64_t missing)
{
	const struct devices *devices = client->data;
	const union cupti_record record = { .slice = *slice };
	bool told = receiver->kept.max == 0;

	for (uint32_t i = 0; i < MAX(devices->n, 1u); i++) {
		const struct device *device = i < devices->n ? &devices->list[i] : NULL;
		struct gpu_work *kept = keep(receiver, client, device, &record);

		if (!kept)
			continue;
		told = true;
		kept->missing = missing;
		if (device)
			kept->busy_ns = (uint64_t)((device->row.busy_seconds - before[i]) * 1e9);
	}
	return told;
}

/* ---- records ---- */

/* Nothing has happened yet that ends later; clocks that are compared may differ by so much. */
static bool is_past(struct devices *devices, uint64_t end_ns)
{
	bool past = end_ns <= (uint64_t)(clock_mono_ns() + NSEC_PER_SEC);

	devices->untimely += !past;
	return past;
}

static void work_add(const struct plugin_client *client, const union cupti_record *record,
		     struct cupti_receiver *receiver)
{
	const struct cupti_work *w = &record->work;
	struct device *device = is_past(client->data, w->end_ns) ? client_device(client, w->device) : NULL;
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
	keep(receiver, client, device, record);
	if (receiver->ops.work)
		receiver->ops.work((uint32_t)client->pid, row->uuid, w, receiver->userdata);
}

static double covered_seconds(const struct span_union *spans, uint64_t end_ns)
{
	struct span_union rest = *spans, before;

	span_take(&rest, end_ns, &before);
	return (double)span_covered(&before) / 1e9;
}

/* No time is observed twice, and a device is not busy for longer. */
static void slice_add(const struct plugin_client *client, const struct cupti_slice *told,
		      struct cupti_receiver *receiver)
{
	struct devices *devices = client->data;
	struct cupti_slice slice = *told;
	uint64_t missing;
	double before[CUPTI_DEVICES];

	if (!is_past(devices, slice.end_ns))
		return;
	slice.start_ns = MAX(slice.start_ns, devices->slice.end_ns);
	slice.end_ns = MAX(slice.end_ns, slice.start_ns);
	devices->slice = slice;
	devices->observed_seconds += (double)(slice.end_ns - slice.start_ns) / 1e9;
	for (uint32_t i = 0; i < devices->n; i++) {
		struct device *device = &devices->list[i];
		double busy = device->busy_before + covered_seconds(&device->busy, slice.end_ns);

		before[i] = device->row.busy_seconds;
		device->row.busy_seconds = MAX(before[i], MIN(busy, devices->observed_seconds));
		/* What runs on when a slice ends is not observed from then on. */
		if (slice.state == CUPTI_ON)
			continue;
		device->busy_before = device->row.busy_seconds;
		device->busy.n = 0;
	}
	missing = missing_of(client, devices);
	if (receiver->ops.slice)
		receiver->ops.slice((uint32_t)client->pid, &slice, missing - devices->told_missing,
				    receiver->userdata);
	if (keep_slice(receiver, client, &slice, before, missing - devices->told_missing))
		devices->told_missing = missing;
}

static void record_take(struct plugin_client *client, const void *record, void *userdata)
{
	struct cupti_receiver *receiver = userdata;
	const union cupti_record *r = record;

	if (r->kind == CUPTI_DEVICE) {
		device_told(client, &r->device);
	} else if (r->kind == CUPTI_SLICE) {
		slice_add(client, &r->slice, receiver);
	} else if (r->kind != CUPTI_NAME) {
		work_add(client, r, receiver);
	} else {
		keep(receiver, client, NULL, r);
		if (receiver->ops.name)
			receiver->ops.name((uint32_t)client->pid, &r->name, receiver->userdata);
	}
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
	row->bad = add_saturated(devices->slice.bad, devices->untimely);
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

void cupti_receiver_keep(struct cupti_receiver *receiver)
{
	receiver->kept = (struct row_list){ .size = sizeof(struct gpu_work), .max = GPU_WORKS_MAX };
	receiver->shares.room[0] = GPU_WORKS_MAX;
	receiver->round = 1;
}

struct row_list *cupti_receiver_kept(struct cupti_receiver *receiver)
{
	return &receiver->kept;
}

void cupti_receiver_forget_kept(struct cupti_receiver *receiver)
{
	row_list_clear(&receiver->kept);
	receiver->shares.users_n = 0;
	receiver->shares.used[0] = 0;
	receiver->round++;
}

uint64_t cupti_receiver_not_kept(const struct cupti_receiver *receiver)
{
	return receiver->not_kept;
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
	row_list_done(&receiver->kept);
	free(receiver);
}
