// SPDX-License-Identifier: Apache-2.0
/* Stands in for gpusonde-push as a hostile server may have made it: the cluster says how. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "helper/message.h"
#include "helper/spawn.h"
#include "push/protocol.h"

static void behave(const struct push_question *question)
{
	struct push_end end = { .outcome = PUSH_OK, .batches = 3, .bytes = 12288 };
	const char *how = question->settings.cluster;

	/* So that the test sees what it was told. */
	end.sent = question->bytes / sizeof(struct push_row);
	end.queued = question->key[0] != '\0';
	end.lost[PUSH_LOST_TORN] = 2;
	if (strcmp(how, "fails") == 0) {
		end.outcome = PUSH_FAILS;
		memset(end.error, '\xff', sizeof(end.error));
	} else if (strcmp(how, "strange outcome") == 0) {
		end.outcome = 77;
	} else if (strcmp(how, "ends") == 0) {
		exit(1);
	}
	if (send_with_fd(HELPER_SOCKET, &end, strcmp(how, "short") == 0 ? 8 : sizeof(end), -1) < 0)
		exit(1);
	if (strcmp(how, "twice") == 0)
		send_with_fd(HELPER_SOCKET, &end, sizeof(end), -1);
}

int main(void)
{
	static struct push_question question;
	int fd;

	close(HELPER_PROGRAM);
	while (receive_with_fd(HELPER_SOCKET, &question, sizeof(question), &fd) > 0) {
		behave(&question);
		if (fd >= 0)
			close(fd);
	}
	return 0;
}
