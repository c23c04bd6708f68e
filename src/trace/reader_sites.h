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
	char path[256]; /* its end, from which the name is taken */
};

struct sites_answer {
	int32_t error; /* negative errno, or 0 */
	uint32_t n;
	struct site_entry at[];
};

void sites_question_init(struct sites_question *question, const struct site_query *query, const char *path);
/* Decodes an answer; its error, or -EBADMSG. */
int sites_answer_take(const void *message, size_t n, struct site_list **ret_list);
/* Serves until the owner closes the socket. Returns the exit status. */
int reader_sites_serve(int channel);
