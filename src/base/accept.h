// SPDX-License-Identifier: Apache-2.0
/* Headers Accept and Accept-Encoding: what clients take, and how gladly (RFC 9110). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum {
	ACCEPT_QUALITY_ONE = 1000, /* in units of 0.001: a quality has three decimals at most */
	ACCEPT_RANGES_MAX = 64, /* further ones are to be ignored */
};

struct accept_range {
	const char *name; /* "text/plain", "gzip"; not ended by NUL */
	size_t name_n;
	const char *version; /* value of its version parameter, or NULL */
	size_t version_n;
	const char *proto, *encoding; /* the same of its parameters of these names, as of protobuf */
	size_t proto_n, encoding_n;
	int quality; /* 0 to ACCEPT_QUALITY_ONE; -1: malformed */
};

/* Parses the range at @header; returns the begin of the next one, NULL after the last. */
const char *accept_next(const char *header, struct accept_range *ret_range);
/* Whether this is its name; case does not count. */
bool accept_is(const struct accept_range *range, const char *name);
