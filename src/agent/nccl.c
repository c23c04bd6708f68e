// SPDX-License-Identifier: Apache-2.0
#include "agent/nccl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/plugin_socket.h"

struct nccl_socket {
	struct model *model;
	struct plugin_socket *socket;
	struct nccl_measurements *newest; /* NULL: none yet */
	/* of the process that receives now, as of its newest answer; of those before */
	struct nccl_totals totals, totals_before;
};

/* ---- rows ---- */

/* Totals are nobody's. */
static bool row_is_valid(const void *of, enum plugin_table table)
{
	const struct nccl_measured *row = of;
	bool other = row->operation == NCCL_OPERATIONS;

	return (row->pid > 0) == (table == PLUGIN_TABLE_ROWS) && (!other || row->ranks == NCCL_RANKS_OTHER) &&
	       row->operation <= NCCL_OPERATIONS && row->gone <= 1 && row->host_timed <= 1 &&
	       plugin_text_ends(row->algorithm, sizeof(row->algorithm)) &&
	       plugin_text_ends(row->protocol, sizeof(row->protocol)) &&
	       plugin_number_is_sane(row->seconds) && plugin_number_is_sane(row->bus_traffic) &&
	       row->comm[0] == '\0';
}

static const struct plugin_layout layout = { .row_bytes = sizeof(struct nccl_measured),
					     .gone_at = offsetof(struct nccl_measured, gone),
					     .comm_at = offsetof(struct nccl_measured, comm) };

static int by_process(const void *a, const void *b)
{
	const struct nccl_measured *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	if (x->since_boot_ns != y->since_boot_ns)
		return x->since_boot_ns < y->since_boot_ns ? -1 : 1;
	return memcmp(&x->ranks, &y->ranks, sizeof(x->ranks) + sizeof(x->operation));
}

static void totals_take(struct nccl_socket *socket, const struct arriving *table, uint64_t lost)
{
	const struct nccl_measured *rows = table->list;

	socket->totals = (struct nccl_totals){ .lost = lost };
	for (uint32_t i = 0; i < table->n; i++) {
		nccl_measured_add(nccl_totals_row(&socket->totals, rows[i].operation, rows[i].ranks),
				  &rows[i]);
		/* Where it is counted does not change any more. */
		nccl_totals_row(&socket->totals_before, rows[i].operation, rows[i].ranks);
	}
}

static struct nccl_measurements *rows_take(const struct nccl_socket *socket, const struct arriving *table)
{
	const struct nccl_measurements *newest = socket->newest;
	uint32_t n = plugin_rows_name(&layout, table->list, table->n, newest ? newest->rows : NULL,
				      newest ? newest->n : 0);

	if (n > 0)
		qsort(table->list, n, sizeof(struct nccl_measured), by_process);
	return nccl_measurements_new(table->list, n);
}

static void tables_taken(const struct arriving tables[static PLUGIN_TABLES],
			 const struct plugin_answer *answer, uint64_t refused, void *userdata)
{
	struct nccl_socket *socket = userdata;
	struct nccl_measurements *taken;

	totals_take(socket, &tables[PLUGIN_TABLE_TOTALS], answer->lost);
	taken = rows_take(socket, &tables[PLUGIN_TABLE_ROWS]);
	if (!taken)
		return;
	taken->refused = refused;
	taken->left_out = answer->dropped;
	taken->totals = socket->totals_before;
	nccl_totals_add(&taken->totals, &socket->totals);
	nccl_measurements_unref(socket->newest);
	socket->newest = taken;
	model_set_measured(socket->model, taken);
}

static void receiver_lost(void *userdata)
{
	struct nccl_socket *socket = userdata;

	nccl_totals_add(&socket->totals_before, &socket->totals);
	socket->totals = (struct nccl_totals){ 0 };
}

void nccl_socket_tick(struct nccl_socket *socket)
{
	plugin_socket_tick(socket->socket);
}

/* ---- life ---- */

int nccl_socket_new(sd_event *event, struct model *model, const char *path, struct nccl_socket **ret_socket)
{
	struct nccl_socket *socket = calloc(1, sizeof(*socket));
	const struct plugin_socket_config config = { .role = "nccl",
						     .option = "nccl.socket",
						     .plugin = "NCCL's",
						     .path = path,
						     .row_bytes = sizeof(struct nccl_measured),
						     .rows_max = NCCL_MEASURED_MAX,
						     .row_is_valid = row_is_valid,
						     .taken = tables_taken,
						     .lost = receiver_lost,
						     .userdata = socket };
	int r = socket ? plugin_socket_new(event, &config, &socket->socket) : -ENOMEM;

	if (r < 0) {
		nccl_socket_free(socket);
		return r;
	}
	socket->model = model;
	*ret_socket = socket;
	return 0;
}

void nccl_socket_free(struct nccl_socket *socket)
{
	if (!socket)
		return;
	plugin_socket_free(socket->socket);
	nccl_measurements_unref(socket->newest);
	free(socket);
}

pid_t nccl_socket_pid(const struct nccl_socket *socket)
{
	return plugin_socket_pid(socket->socket);
}
