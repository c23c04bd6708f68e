// SPDX-License-Identifier: Apache-2.0
#include "nccl_socket/serve.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "config.h"
#include "helper/message.h"
#include "nccl_socket/protocol.h"
#include "nccl_socket/receive.h"

static int send_table(int channel, struct row_list *rows, enum nccl_table table, struct nccl_answer *answer)
{
	answer->rows[table] = rows->n;
	answer->digest[table] = rows->n > 0 ? row_list_digest(rows) : 0;
	return rows->n > 0 ? parts_send(channel, table, answer->digest[table], rows) : 0;
}

static int send_answer(int channel, struct nccl_receiver *receiver, struct row_list *rows)
{
	const struct nccl_totals *totals = nccl_receiver_totals(receiver);
	struct nccl_answer answer = { .message = NCCL_ANSWER, .lost = totals->lost };
	int r;

	row_list_clear(rows);
	nccl_receiver_rows(receiver, rows);
	answer.refused = plugin_clients_refused(nccl_receiver_clients(receiver));
	answer.dropped = rows->dropped;
	r = send_table(channel, rows, NCCL_TABLE_ROWS, &answer);
	row_list_clear(rows);
	for (uint32_t i = 0; i < totals->n; i++) {
		struct nccl_measured *row = row_list_add(rows);

		if (row)
			*row = totals->rows[i];
	}
	if (r == 0)
		r = send_table(channel, rows, NCCL_TABLE_TOTALS, &answer);
	return r == 0 ? send_with_fd(channel, &answer, sizeof(answer), -1) : r;
}

int nccl_serve(int channel)
{
	struct row_list rows = { .size = sizeof(struct nccl_measured), .max = NCCL_MEASURED_MAX };
	_cleanup_(nccl_receiver_freep) struct nccl_receiver *receiver = nccl_receiver_new();
	struct nccl_question question;
	int listener = -1, fd = -1,
	    r = receiver ? plugin_clients_channel(nccl_receiver_clients(receiver), channel) : -1;
	ssize_t n = 1;
	bool asked;

	while (r >= 0 && n > 0) {
		r = plugin_clients_wait(nccl_receiver_clients(receiver), -1, &asked);
		if (r == -EINTR)
			r = 0;
		if (r < 0 || !asked)
			continue;
		n = receive_with_fd(channel, &question, sizeof(question), &fd);
		if (n <= 0)
			break;
		if (n != sizeof(question) ||
		    strncmp(question.version, GPUSONDE_VERSION, sizeof(question.version)) != 0)
			return HELPER_FOREIGN;
		if (fd >= 0 && listener < 0) {
			listener = TAKE_FD(fd);
			r = plugin_clients_listen(nccl_receiver_clients(receiver), listener);
		}
		closep(&fd);
		r = r < 0 ? r : send_answer(channel, receiver, &rows);
	}
	row_list_done(&rows);
	return r >= 0 && n == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
