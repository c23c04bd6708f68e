// SPDX-License-Identifier: Apache-2.0
#include "trace/reader_sites.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "helper/helper.h"
#include "helper/message.h"

enum { PART_MAX = 64 << 10 };
_Static_assert(sizeof(struct sites_answer) + PART_MAX <= HELPER_MESSAGE_MAX, "a part fits a message");
_Static_assert(sizeof(struct sites_question) <= HELPER_MESSAGE_MAX, "a question fits a message");

void sites_question_init(struct sites_question *question, const struct site_query *query, const char *path,
			 size_t path_n)
{
	memset(question, 0, sizeof(*question));
	snprintf(question->version, sizeof(question->version), "%s", GPUSONDE_VERSION);
	question->query = *query;
	question->query.users = library_of_path(path, path_n) & library_user_bits();
	question->user_probes = *library_user();
}

void sites_taken_done(struct sites_taken *taken)
{
	free(taken->list);
	*taken = (struct sites_taken){ 0 };
}

/* The first part says how much there is. */
static int take_part(struct sites_taken *taken, const struct sites_answer *answer, size_t part_n)
{
	if (answer->error != 0)
		return answer->error < 0 ? answer->error : -EBADMSG;
	if (!taken->list) {
		if (answer->size < sizeof(*taken->list) || answer->size > SITE_LIST_SIZE_MAX)
			return -EBADMSG;
		taken->list = malloc(answer->size);
		if (!taken->list)
			return -ENOMEM;
		taken->size = answer->size;
	}
	if (answer->size != taken->size || part_n == 0 || part_n > taken->size - taken->n)
		return -EBADMSG;
	memcpy((char *)taken->list + taken->n, answer->part, part_n);
	taken->n += part_n;
	return taken->n < taken->size ? -EAGAIN : site_list_check(taken->list, taken->size);
}

int sites_answer_take(struct sites_taken *taken, const void *message, size_t n, struct site_list **ret_list)
{
	const struct sites_answer *answer = message;
	int r = n < sizeof(*answer) ? -EBADMSG : take_part(taken, answer, n - sizeof(*answer));

	if (r == -EAGAIN)
		return r;
	if (r == 0)
		*ret_list = TAKE_PTR(taken->list);
	sites_taken_done(taken);
	return r;
}

static int answer_sites(int channel, const struct sites_question *question, int fd)
{
	_cleanup_free_ struct site_list *list = NULL;
	_cleanup_free_ struct sites_answer *answer = malloc(sizeof(*answer) + PART_MAX);
	size_t size = 0, sent = 0;
	int r;

	if (!answer)
		return -ENOMEM;
	library_set_user(&question->user_probes);
	r = fd < 0 ? -EBADF : site_list_read(fd, &question->query, &list);
	if (r == 0)
		size = site_list_size(list);
	if (size > SITE_LIST_SIZE_MAX) {
		r = -E2BIG;
		size = 0;
	}
	*answer = (struct sites_answer){ .error = r, .size = (uint32_t)size };
	do {
		size_t n = MIN(size - sent, (size_t)PART_MAX);

		if (n)
			memcpy(answer->part, (const char *)list + sent, n);
		r = send_with_fd(channel, answer, sizeof(*answer) + n, -1);
		sent += n;
	} while (r >= 0 && sent < size);
	return r;
}

int reader_sites_serve(int channel)
{
	static struct sites_question question;
	ssize_t n;
	int fd;

	while ((n = receive_with_fd(channel, &question, sizeof(question), &fd)) > 0) {
		_cleanup_close_ int file = fd;

		if (n != sizeof(question) ||
		    strncmp(question.version, GPUSONDE_VERSION, sizeof(question.version)) != 0)
			return HELPER_FOREIGN;
		if (answer_sites(channel, &question, file) < 0)
			return EXIT_FAILURE;
	}
	return n == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
