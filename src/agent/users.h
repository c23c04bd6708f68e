// SPDX-License-Identifier: Apache-2.0
/*
 * Names of users for the page /api/v1/users. The directory (files, LDAP, SSSD) may hang, and its modules are
 * loaded into the process that asks: so getent(1) asks, a process of its own that has a few seconds, started
 * on a thread of its own (answers.h). Names and that there is none are kept for a while. Any thread may ask.
 */
#pragma once

#include <stdint.h>

#include "base/macro.h"
#include "serve/http.h"

enum { USERS_MAX = 1024 };

struct users;

struct users_config {
	/*
	 * On the thread of the service: the numbers that are to have names, each once. Returns how many, at
	 * most @max.
	 */
	unsigned (*list)(uint32_t *ret_uids, unsigned max, void *userdata);
	void *userdata;
	const char *program; /* NULL: getent, where Debian and others have it */
};

/* -errno. */
int users_new(const struct users_config *config, struct users **ret_users);
/* Waits a second at most. */
void users_free(struct users *users);
DEFINE_CLEANUP(struct users *, users_free, users_freep)

int users_page(struct users *users, const struct http_request *request, struct http_reply *reply);
