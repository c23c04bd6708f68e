// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>

#include "helper/helper.h"
#include "python/find.h"
#include "python/finder_private.h"

int python_finder_serve(int channel)
{
	struct finder_question question;
	int r;

	while ((r = receive_question(channel, &question, sizeof(question), NULL)) == 0) {
		struct finder_answer answer = { 0 };

		answer.error = python_find("/proc", question.pid, &answer.version, &answer.python);
		r = send_with_fd(channel, &answer, sizeof(answer), -1);
		if (r < 0)
			return EXIT_FAILURE;
	}
	return r == 1 ? EXIT_SUCCESS : r == -EPROTONOSUPPORT ? HELPER_FOREIGN : EXIT_FAILURE;
}
