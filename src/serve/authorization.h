// SPDX-License-Identifier: Apache-2.0
/* The Authorization header: Basic (RFC 7617) or Bearer (RFC 6750). */
#pragma once

enum { AUTHORIZATION_TEXT_MAX = 256 }; /* of a user, password or token, with the zero byte */

enum authorization_scheme { AUTHORIZATION_BASIC, AUTHORIZATION_BEARER };

struct authorization {
	enum authorization_scheme scheme;
	char user[AUTHORIZATION_TEXT_MAX]; /* Basic */
	char secret[AUTHORIZATION_TEXT_MAX]; /* password or token */
};

/* -EINVAL: of neither scheme, longer than that, or not what the scheme says. */
int authorization_parse(const char *header, struct authorization *ret_authorization);
