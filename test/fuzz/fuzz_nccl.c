// SPDX-License-Identifier: Apache-2.0
/* What NCCL's plugin, or a program posing as it, sends: each message as long as its first two bytes say. */
#include "fuzz.h"

#include <stdlib.h>

#include "nccl_socket/receive.h"
#include "plugin_messages.h"

static void check_rows(struct nccl_receiver *receiver)
{
	struct row_list rows = { .size = sizeof(struct nccl_measured), .max = NCCL_MEASURED_MAX };

	nccl_receiver_rows(receiver, &rows);
	for (uint32_t i = 0; i < rows.n; i++) {
		const struct nccl_measured *row = &((const struct nccl_measured *)rows.list)[i];

		if (row->operation > NCCL_OPERATIONS || row->timed > row->calls || !(row->seconds >= 0))
			abort();
	}
	row_list_done(&rows);
}

int fuzz_one(const uint8_t *data, size_t n)
{
	struct nccl_receiver *receiver = nccl_receiver_new();

	if (!receiver)
		return 0;
	plugin_messages(nccl_receiver_clients(receiver), data, n);
	check_rows(receiver);
	nccl_receiver_free(receiver);
	return 0;
}
