// SPDX-License-Identifier: Apache-2.0
/*
 * One POST at a time to the server, by libcurl. Redirections are not followed; what the server answers is its
 * status alone: its words are not read, since they could repeat the key.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/macro.h"
#include "push/protocol.h"

struct post;

struct post_result {
	long status; /* HTTP's; 0: there was no answer */
	enum net_failure failure; /* NET_OK: it did not fail */
	char words[230]; /* why it failed, printable; "": it did not */
};

/* Copies @settings. 0 or -ENOMEM. */
int post_new(const struct push_settings *settings, struct post **ret_post);
void post_free(struct post *post);
DEFINE_CLEANUP(struct post *, post_free, post_freep)

/* @data must stay until it has ended, and none may be under way. 0 or -ENOMEM. */
int post_begin(struct post *post, const char *key, const void *data, size_t n);
/* Goes on. True: it has just ended, as *ret_result says. */
bool post_step(struct post *post, struct post_result *ret_result);
/* Waits until it can go on, @fd is readable, or for @timeout_ms. True: @fd is readable. */
bool post_wait(struct post *post, int fd, int timeout_ms);
