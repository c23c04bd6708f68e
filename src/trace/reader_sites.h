// SPDX-License-Identifier: Apache-2.0
/*
 * The helper that reads the code of users' files: it gets open files and lists their sites. It has no
 * capability and can open nothing.
 */
#pragma once

#include <stddef.h>

#include "config.h"
#include "trace/site_list.h"

/* With the file as its descriptor. */
struct sites_question {
	char version[32]; /* of gpusonde: both sides must be of one build */
	struct site_query query;
	struct user_probes user_probes;
};

/* The list in parts, one message each. */
struct sites_answer {
	int32_t error; /* negative errno, or 0 */
	uint32_t size; /* bytes of the list */
	char part[];
};

/* What has been received of an answer. */
struct sites_taken {
	struct site_list *list; /* @size bytes; NULL: nothing yet */
	size_t size, n;
};

/* @path: of the file, which the query's user probes are chosen by. */
void sites_question_init(struct sites_question *question, const struct site_query *query, const char *path,
			 size_t path_n);
/*
 * Takes a part of an answer. -EAGAIN: more parts follow; 0: *ret_list is the caller's; or the answer's
 * error, or -EBADMSG.
 */
int sites_answer_take(struct sites_taken *taken, const void *message, size_t n, struct site_list **ret_list);
void sites_taken_done(struct sites_taken *taken);
/* Serves until the owner closes the socket. Returns the exit status. */
int reader_sites_serve(int channel);
