// SPDX-License-Identifier: Apache-2.0
/* What CUPTI's plugin, or whoever says it is one, sends: messages, each as long as two bytes before say. */
#include "fuzz.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cupti_socket/receive.h"

static void serve(struct cupti_receiver *receiver)
{
	bool channel;

	while (plugin_clients_wait(cupti_receiver_clients(receiver), 0, &channel) > 0)
		;
}

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

int fuzz_one(const uint8_t *data, size_t n)
{
	const struct cupti_wanted wanted = { .slice_ms = 1000 };
	struct cupti_receiver *receiver = cupti_receiver_new(&wanted, NULL, NULL);
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
			if (!plugin_clients_add(cupti_receiver_clients(receiver), fds[1]))
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
	cupti_receiver_free(receiver);
	return 0;
}
