// SPDX-License-Identifier: Apache-2.0
#include "cupti_socket/serve.h"

#include <stdlib.h>
#include <string.h>

#include "cupti_socket/receive.h"
#include "plugin_socket/serve.h"

_Static_assert(sizeof(struct cupti_wanted) <= PLUGIN_GREETING_BYTES, "comes with the agent's question");

static void greeting_take(const uint8_t greeting[static PLUGIN_GREETING_BYTES], void *userdata)
{
	struct cupti_wanted wanted;

	memcpy(&wanted, greeting, sizeof(wanted));
	cupti_receiver_want(userdata, &wanted);
}

static uint64_t table_fill(enum plugin_table table, struct row_list *rows, void *userdata)
{
	struct cupti_receiver *receiver = userdata;

	if (table == PLUGIN_TABLE_ROWS)
		cupti_receiver_rows(receiver, rows);
	return cupti_receiver_lost(receiver);
}

static struct row_list *records(void *userdata)
{
	return cupti_receiver_kept(userdata);
}

static uint64_t records_sent(void *userdata)
{
	cupti_receiver_forget_kept(userdata);
	return cupti_receiver_not_kept(userdata);
}

int cupti_serve(int channel)
{
	const struct cupti_wanted none = { 0 };
	_cleanup_(cupti_receiver_freep) struct cupti_receiver *receiver =
		cupti_receiver_new(&none, NULL, NULL);
	const struct plugin_server server = { .clients = receiver ? cupti_receiver_clients(receiver) : NULL,
					      .row_bytes = sizeof(struct gpu_time),
					      .rows_max = GPU_TIMES_MAX,
					      .greeting = greeting_take,
					      .table = table_fill,
					      .records = records,
					      .records_sent = records_sent,
					      .userdata = receiver };

	if (!receiver)
		return EXIT_FAILURE;
	cupti_receiver_keep(receiver);
	return plugin_serve(channel, &server);
}
