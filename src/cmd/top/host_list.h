// SPDX-License-Identifier: Apache-2.0
/* The machines that "gpusonde top HOST..." and --hosts name, as addresses of their agents. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { HOST_NAME_TEXT = 64, HOST_URL_TEXT = 256, HOST_WHY_TEXT = 240 };

struct named_host {
	char name[HOST_NAME_TEXT]; /* as it was named, without what goes without saying */
	char url[HOST_URL_TEXT]; /* "http://name:9470", without a slash at the end */
};

struct host_list {
	uint32_t n;
	struct named_host *list;
};

void host_list_done(struct host_list *list);
/*
 * Adds "name", "name:port", "[::1]:port", "http://name:port" or "https://name/path"; what is there already
 * stays once. -EINVAL: it is none of these, or there are too many: why is said; -ENOMEM.
 */
int host_list_add(struct host_list *list, const char *text, char ret_why[static HOST_WHY_TEXT]);
/* Those of a file, one a line; "#" begins a comment. -errno, with a reason. */
int host_list_read(struct host_list *list, const char *path, char ret_why[static HOST_WHY_TEXT]);
