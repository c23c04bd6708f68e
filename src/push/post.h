// SPDX-License-Identifier: Apache-2.0
/*
 * One POST at a time to the server, by libcurl. Redirections are not followed. What a server answers is its
 * status; of kinds that want it (repeats_answers) also its first words about what it refuses, unless they
 * have anything of the key. With a password, which only its encoded form could tell, or with secret headers
 * they are not shown.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/macro.h"
#include "push/kind.h"

struct post;

struct post_result {
	long status; /* HTTP's; 0: there was no answer */
	enum net_failure failure; /* NET_OK: it did not fail */
	int64_t written; /* samples, as the server says; -1: it does not */
	uint64_t refused; /* samples of a batch that was taken, as struct push_kind's refused() says */
	int64_t retry_after_ns; /* the server asks to be left alone for so long; 0: it does not */
	char words[400]; /* why it failed, or refused samples, printable; "": neither */
};

/* Copies @settings. 0, -ENOMEM. */
int post_new(const struct push_kind *kind, const struct push_settings *settings, struct post **ret_post);
void post_free(struct post *post);
DEFINE_CLEANUP(struct post *, post_free, post_freep)

/* What is shown to the server in TLS, in PEM; "": nothing. Copied. */
void post_show(struct post *post, const char *certificate, const char *key);
/* Further headers of the requests to come, which may be secret: lines, each with its newline. Copied. */
void post_set_headers(struct post *post, const char *lines);
/* @batch must stay until it has ended, and none may be under way. @key "": there is none. 0 or -ENOMEM. */
int post_begin(struct post *post, const char *key, const struct batch *batch);
/* Goes on. True: it has just ended, as *ret_result says. */
bool post_step(struct post *post, struct post_result *ret_result);
/* Waits until it can go on, @fd (-1: none) is readable, or for @timeout_ms. True: @fd is readable. */
bool post_wait(struct post *post, int fd, int timeout_ms);
