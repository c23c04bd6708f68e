// SPDX-License-Identifier: Apache-2.0
#include "nccl_socket/serve.h"

#include <stdlib.h>

#include "nccl_socket/receive.h"
#include "plugin_socket/serve.h"

static uint64_t table_fill(enum plugin_table table, struct row_list *rows, void *userdata)
{
	struct nccl_receiver *receiver = userdata;
	const struct nccl_totals *totals = nccl_receiver_totals(receiver);

	if (table == PLUGIN_TABLE_ROWS)
		nccl_receiver_rows(receiver, rows);
	for (uint32_t i = 0; table == PLUGIN_TABLE_TOTALS && i < totals->n; i++) {
		struct nccl_measured *row = row_list_add(rows);

		if (row)
			*row = totals->rows[i];
	}
	return totals->lost;
}

int nccl_serve(int channel)
{
	_cleanup_(nccl_receiver_freep) struct nccl_receiver *receiver = nccl_receiver_new();
	const struct plugin_server server = { .clients = receiver ? nccl_receiver_clients(receiver) : NULL,
					      .row_bytes = sizeof(struct nccl_measured),
					      .rows_max = NCCL_MEASURED_MAX,
					      .table = table_fill,
					      .userdata = receiver };

	return receiver ? plugin_serve(channel, &server) : EXIT_FAILURE;
}
