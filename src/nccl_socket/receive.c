// SPDX-License-Identifier: Apache-2.0
#include "nccl_socket/receive.h"

#include <stdlib.h>
#include <string.h>

#include "base/saturated.h"
#include "base/text.h"
#include "plugin_socket/clients.h"

enum { RANKS_MAX = 1 << 20, NODES_MAX = 1 << 20 };

PLUGIN_ROW_ASSERT(struct nccl_measured);

/* Of a client. */
struct rows {
	uint32_t n;
	struct nccl_measured list[NCCL_CLIENT_ROWS];
};

struct nccl_receiver {
	struct plugin_clients *clients;
	struct nccl_totals totals;
};

/* ---- messages ---- */

static bool operation_is_valid(const void *record)
{
	const struct nccl_wire_operation *o = record;

	return o->operation < NCCL_OPERATIONS && o->algorithm < NCCL_ALGORITHMS &&
	       o->protocol < NCCL_PROTOCOLS && o->timing < NCCL_TIMINGS && o->ranks <= RANKS_MAX &&
	       o->nodes <= NODES_MAX && o->duration_ns <= NCCL_WIRE_DURATION_MAX_NS &&
	       (o->timing == NCCL_TIMING_NONE) == (o->duration_ns == 0);
}

static const char *algorithm_name(uint8_t algorithm)
{
	static const char *const names[NCCL_ALGORITHMS] = {
		"",
#define NCCL_ALGORITHM(id_, name_) name_,
#define NCCL_PROTOCOL(id_, name_)
#include "model/nccl_names.def"
	};

	return names[algorithm];
}

static const char *protocol_name(uint8_t protocol)
{
	static const char *const names[NCCL_PROTOCOLS] = {
		"",
#define NCCL_ALGORITHM(id_, name_)
#define NCCL_PROTOCOL(id_, name_) name_,
#include "model/nccl_names.def"
	};

	return names[protocol];
}

static struct nccl_measured *row_find(const struct plugin_client *client, const struct nccl_wire_operation *o)
{
	struct rows *rows = client->data;
	struct nccl_measured *row;

	for (uint32_t i = 0; i < rows->n; i++) {
		row = &rows->list[i];
		if (row->operation == NCCL_OPERATIONS ||
		    (row->operation == o->operation && row->ranks == o->ranks &&
		     STRV_EQ(row->algorithm, algorithm_name(o->algorithm)) &&
		     STRV_EQ(row->protocol, protocol_name(o->protocol))))
			return row;
	}
	row = &rows->list[rows->n++];
	*row = (struct nccl_measured){ .pid = (uint32_t)client->pid,
				       .uid = client->uid,
				       .since_boot_ns = client->since_boot_ns,
				       .ranks = o->ranks,
				       .operation = o->operation };
	/* All that comes after is in the last one. */
	if (rows->n == NCCL_CLIENT_ROWS) {
		row->operation = NCCL_OPERATIONS;
		row->ranks = NCCL_RANKS_OTHER;
		return row;
	}
	strcpy(row->algorithm, algorithm_name(o->algorithm));
	strcpy(row->protocol, protocol_name(o->protocol));
	return row;
}

/* As a row of one call. Without the ranks neither traffic nor the factor of the bus is known. */
static struct nccl_measured measured_of(const struct nccl_wire_operation *o)
{
	enum nccl_operation operation = (enum nccl_operation)o->operation;
	struct nccl_measured row = { .calls = 1,
				     .bytes = o->bytes,
				     .ranks = o->ranks,
				     .channels = o->channels,
				     .proxy_operations = o->proxy_operations };

	if (o->timing == NCCL_TIMING_NONE)
		return row;
	row.timed = 1;
	row.seconds = (double)o->duration_ns / 1e9;
	row.host_timed = o->timing == NCCL_TIMING_HOST;
	if (o->ranks == NCCL_RANKS_UNKNOWN)
		return row;
	row.traffic =
		nccl_operation_is_per_rank(operation) ? multiply_saturated(o->bytes, o->ranks) : o->bytes;
	row.bus_traffic = (double)row.traffic * nccl_bus_factor(operation, o->ranks);
	return row;
}

static void operation_add(struct plugin_client *client, const void *record, void *userdata)
{
	struct nccl_receiver *receiver = userdata;
	const struct nccl_wire_operation *o = record;
	const struct nccl_measured row = measured_of(o);

	nccl_measured_add(row_find(client, o), &row);
	nccl_measured_add(nccl_totals_row(&receiver->totals, o->operation, o->ranks), &row);
}

static void lost_add(_unused_ struct plugin_client *client, uint64_t lost, void *userdata)
{
	struct nccl_receiver *receiver = userdata;

	receiver->totals.lost = add_saturated(receiver->totals.lost, lost);
}

static const struct plugin_protocol protocol = {
	.magic = NCCL_WIRE_MAGIC,
	.version = NCCL_WIRE_VERSION,
	.records = NCCL_WIRE_OPERATIONS,
	.record_bytes = sizeof(struct nccl_wire_operation),
	.data_bytes = sizeof(struct rows),
	.is_valid = operation_is_valid,
	.record = operation_add,
	.lost = lost_add,
};

bool nccl_wire_is_valid(const struct nccl_wire *message, size_t n)
{
	return plugin_message_is_valid(&protocol, message, n);
}

/* ---- figures ---- */

static void client_rows(const struct plugin_client *client, struct row_list *rows)
{
	const struct rows *own = client->data;
	bool fits = plugin_rows_fit(rows, client, own->n);

	rows->dropped += fits ? 0 : own->n;
	for (uint32_t k = 0; fits && k < own->n; k++) {
		struct nccl_measured *row = row_list_add(rows);

		if (!row)
			continue;
		*row = own->list[k];
		row->gone = client->fd < 0;
		row->lost = k == 0 ? client->lost : 0;
	}
}

void nccl_receiver_rows(struct nccl_receiver *receiver, struct row_list *rows)
{
	for (uint32_t i = 0; i < plugin_clients_count(receiver->clients); i++)
		client_rows(plugin_clients_at(receiver->clients, i), rows);
	plugin_clients_forget(receiver->clients);
}

const struct nccl_totals *nccl_receiver_totals(const struct nccl_receiver *receiver)
{
	return &receiver->totals;
}

struct plugin_clients *nccl_receiver_clients(struct nccl_receiver *receiver)
{
	return receiver->clients;
}

struct nccl_receiver *nccl_receiver_new(void)
{
	struct nccl_receiver *receiver = calloc(1, sizeof(*receiver));

	if (!receiver)
		return NULL;
	receiver->clients = plugin_clients_new(&protocol, receiver);
	if (!receiver->clients) {
		free(receiver);
		return NULL;
	}
	return receiver;
}

void nccl_receiver_free(struct nccl_receiver *receiver)
{
	if (!receiver)
		return;
	plugin_clients_free(receiver->clients);
	free(receiver);
}
