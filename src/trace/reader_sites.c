// SPDX-License-Identifier: Apache-2.0
#include "trace/reader_sites.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "helper/helper.h"
#include "helper/message.h"

void sites_question_init(struct sites_question *question, const struct site_query *query, const char *path)
{
	size_t n = strlen(path), max = sizeof(question->path) - 1;

	memset(question, 0, sizeof(*question));
	snprintf(question->version, sizeof(question->version), "%s", GPUSONDE_VERSION);
	question->query = *query;
	memcpy(question->path, path + (n > max ? n - max : 0), MIN(n, max));
}

int sites_answer_take(const void *message, size_t n, struct site_list **ret_list)
{
	const struct sites_answer *answer = message;

	if (n < sizeof(*answer) || n != sizeof(*answer) + answer->n * sizeof(answer->at[0]) ||
	    answer->error > 0)
		return -EBADMSG;
	return answer->error < 0 ? answer->error : site_list_check(answer->at, answer->n, ret_list);
}

static int answer_sites(int channel, const struct sites_question *question, int fd)
{
	_cleanup_free_ struct site_list *list = NULL;
	_cleanup_free_ struct sites_answer *answer = NULL;
	int r = fd < 0 ? -EBADF : site_list_read(fd, question->path, &question->query, &list);
	size_t bytes = r < 0 ? 0 : list->n * sizeof(list->at[0]);

	if (sizeof(*answer) + bytes > HELPER_MESSAGE_MAX) {
		r = -E2BIG;
		bytes = 0;
	}
	answer = calloc(1, sizeof(*answer) + bytes);
	if (!answer)
		return -ENOMEM;
	answer->error = r;
	if (bytes) {
		answer->n = list->n;
		memcpy(answer->at, list->at, bytes);
	}
	return send_with_fd(channel, answer, sizeof(*answer) + bytes, -1);
}

int reader_sites_serve(int channel)
{
	struct sites_question question;
	ssize_t n;
	int fd;

	while ((n = receive_with_fd(channel, &question, sizeof(question), &fd)) > 0) {
		_cleanup_close_ int file = fd;

		if (n != sizeof(question) ||
		    strncmp(question.version, GPUSONDE_VERSION, sizeof(question.version)) != 0)
			return HELPER_FOREIGN;
		question.path[sizeof(question.path) - 1] = '\0';
		if (answer_sites(channel, &question, file) < 0)
			return EXIT_FAILURE;
	}
	return n == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
