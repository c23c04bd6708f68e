// SPDX-License-Identifier: Apache-2.0
/* What CUPTI's plugin, or a program posing as it, sends: each message as long as two bytes before say. */
#include "fuzz.h"

#include <stdlib.h>

#include "cupti_socket/receive.h"
#include "plugin_messages.h"

static void check_rows(struct cupti_receiver *receiver)
{
	struct row_list rows = { .size = sizeof(struct gpu_time), .max = GPU_TIMES_MAX };

	cupti_receiver_rows(receiver, &rows);
	for (uint32_t i = 0; i < rows.n; i++) {
		const struct gpu_time *row = &((const struct gpu_time *)rows.list)[i];

		if (!(row->busy_seconds >= 0) || !(row->observed_seconds >= 0) || row->state >= CUPTI_STATES)
			abort();
	}
	row_list_done(&rows);
}

/* What is handed on means something, too. */
static void check_kept(struct cupti_receiver *receiver)
{
	const struct row_list *kept = cupti_receiver_kept(receiver);

	for (uint32_t i = 0; i < kept->n; i++)
		if (!cupti_record_is_valid(&((const struct gpu_work *)kept->list)[i].record))
			abort();
}

int fuzz_one(const uint8_t *data, size_t n)
{
	const struct cupti_wanted wanted = { .slice_ms = 1000 };
	struct cupti_receiver *receiver = cupti_receiver_new(&wanted, NULL, NULL);

	if (!receiver)
		return 0;
	cupti_receiver_keep(receiver);
	plugin_messages(cupti_receiver_clients(receiver), data, n);
	check_rows(receiver);
	check_kept(receiver);
	cupti_receiver_free(receiver);
	return 0;
}
