// SPDX-License-Identifier: Apache-2.0
/*
 * Answers of pages that read files, or let a process of its own do it: a thread of its own makes one after
 * the other, so that a disk that hangs holds no page. Who asks gets 202 meanwhile, and asks again.
 *
 * Bounds: ANSWERS answers of a few seconds, each of at most ANSWER_BYTES_MAX. Any thread may ask.
 */
#pragma once

#include "base/macro.h"
#include "serve/http.h"

enum { ANSWERS = 8, ANSWER_BYTES_MAX = 2 << 20 };

/* Compared byte by byte: to be zeroed before it is filled. */
struct question {
	uint32_t page; /* a number of who answers */
	int64_t now_ns; /* what "now" and "ago" are of, in real time; 0: the clock's */
	int64_t numbers[HTTP_NUMBERS]; /* struct http_request's */
	char text[HTTP_TEXT_MAX]; /* the same */
};

struct answer {
	struct strbuf body;
	unsigned status; /* of HTTP; 200 before it is made */
	const char *content_type; /* static; NULL: plain text */
};

struct answers_config {
	const char *name; /* of the thread: at most 15 characters */
	const char *stuck; /* what a browser is told when one takes too long, with the likely cause */
	int64_t slow_ns; /* after which it is */
	/* What stands for this answer while it is made, as HTML; NULL: JSON does. May be NULL. */
	const char *(*pending_html)(const struct question *question);
	/* On the thread. */
	void (*make)(const struct question *question, struct answer *answer, void *userdata);
	/* On the thread: nothing was asked for a while, or the service ends. May be NULL. */
	void (*idle)(void *userdata);
	/* On any thread, when the service ends: what make() waits for. May be NULL. */
	void (*interrupt)(void *userdata);
	void *userdata;
};

struct answers;

/* -errno. */
int answers_new(const struct answers_config *config, struct answers **ret_answers);
/*
 * Waits a second at most. False: the kernel holds the thread, which goes on using the userdata: both are left
 * behind.
 */
bool answers_free(struct answers *answers);
/* A question from a request. */
struct question question_of(uint32_t page, int64_t now_ns, const struct http_request *request);
/* Replies with the answer, or that it is being made. */
int answers_reply(struct answers *answers, const struct question *question, struct http_reply *reply);
