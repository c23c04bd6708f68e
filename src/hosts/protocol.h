// SPDX-License-Identifier: Apache-2.0
/*
 * Between "gpusonde top HOST..." (cmd/top/hosts.h) and gpusonde-hosts, the process that asks agents of other
 * machines over HTTP: once HOSTS_BEGIN, then a HOSTS_ROUND whenever pages are wanted anew. Each host that is
 * not being asked still is asked for them then, one after the other, the first last; what it says comes in
 * parts, and at the end of its round one HOSTS_END, with the reason if it failed. A slow host delays nobody.
 */
#pragma once

#include <stdint.h>

#include "helper/message.h"

enum {
	HOSTS_MAX = 256,
	HOSTS_PATHS = 8,
	HOSTS_PATH_MAX = 64,
	HOSTS_PEM_MAX = 20 << 10,
	HOSTS_URLS_MAX = HOSTS_MAX * 256, /* the longest of top's (host_list.h) */
	HOSTS_TOKEN_MAX = 4096,
	HOSTS_WORDS_MAX = 240,
	HOSTS_PART_MAX = 96 << 10,
	HOSTS_PAGE_MAX = 32 << 20, /* bytes of a page */
};

enum { HOSTS_BEGIN = 1, HOSTS_ROUND, HOSTS_PART, HOSTS_END };

struct hosts_begin {
	char version[QUESTION_VERSION_BYTES];
	uint32_t message, n; /* of URLs */
	char ca[HOSTS_PEM_MAX], certificate[HOSTS_PEM_MAX], key[HOSTS_PEM_MAX]; /* PEM; "" */
	char urls[HOSTS_URLS_MAX]; /* one after the other, each with its NUL; without a slash at the end */
	char paths[HOSTS_PATHS][HOSTS_PATH_MAX];
};

struct hosts_round {
	uint32_t message, pages; /* bits, by their paths' numbers */
	char token[HOSTS_TOKEN_MAX]; /* ""; is sent over TLS, and to this machine, only */
};

/* So many bytes of the page, of @rest more. */
struct hosts_part {
	uint32_t message, host, path, n, rest;
	char data[HOSTS_PART_MAX];
};

struct hosts_end {
	uint32_t message, host;
	uint32_t failed;
	char words[HOSTS_WORDS_MAX]; /* why */
};
