// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "inference/find.h"

int servers_find_serve(int channel)
{
	static struct find_answer answer;
	struct find_question question;
	int r;

	while ((r = receive_question(channel, &question, sizeof(question), NULL)) == 0) {
		/* What cannot be read is not there. */
		(void)servers_find("/proc", question.arguments, &answer);
		if (send_with_fd(channel, &answer,
				 offsetof(struct find_answer, list) + answer.n * sizeof(answer.list[0]),
				 -1) < 0)
			return EXIT_FAILURE;
	}
	return r == 1 ? EXIT_SUCCESS : r == -EPROTONOSUPPORT ? HELPER_FOREIGN : EXIT_FAILURE;
}
