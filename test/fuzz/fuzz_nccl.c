// SPDX-License-Identifier: Apache-2.0
/* What NCCL's plugin, or whoever says it is one, sends: messages, each as long as its first two bytes say. */
#include "fuzz.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "nccl_socket/receive.h"

static void serve(struct nccl_receiver *receiver)
{
	bool channel;

	while (plugin_clients_wait(nccl_receiver_clients(receiver), 0, &channel) > 0)
		;
}

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
	int fds[2] = { -1, -1 };

	if (!receiver)
		return 0;
	while (n >= 2) {
		uint16_t size;

		memcpy(&size, data, sizeof(size));
		data += 2;
		n -= 2;
		if (size > n)
			size = (uint16_t)n;
		if (fds[0] < 0 && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == 0) {
			fcntl(fds[1], F_SETFL, O_NONBLOCK);
			if (!plugin_clients_add(nccl_receiver_clients(receiver), fds[1]))
				break;
		}
		/* Closed by the other end: the next message comes by another connection. */
		if (send(fds[0], data, size, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
			close(fds[0]);
			fds[0] = -1;
		}
		serve(receiver);
		data += size;
		n -= size;
	}
	check_rows(receiver);
	if (fds[0] >= 0)
		close(fds[0]);
	nccl_receiver_free(receiver);
	return 0;
}
