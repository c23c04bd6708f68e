// SPDX-License-Identifier: Apache-2.0
#include "serve/authorization.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "base/macro.h"

/* What follows the scheme's name; NULL: it is another scheme. */
static const char *after_scheme(const char *header, const char *name)
{
	size_t n = strlen(name);

	if (strncasecmp(header, name, n) != 0 || header[n] != ' ')
		return NULL;
	return header + n + strspn(header + n, " ");
}

static int copy_text(const char *from, size_t n, char to[static AUTHORIZATION_TEXT_MAX])
{
	if (n >= AUTHORIZATION_TEXT_MAX || memchr(from, '\0', n))
		return -EINVAL;
	memcpy(to, from, n);
	to[n] = '\0';
	return 0;
}

static int parse_pair(const char *pair, size_t n, struct authorization *a)
{
	const char *colon = memchr(pair, ':', n);

	if (!colon || copy_text(pair, (size_t)(colon - pair), a->user) < 0)
		return -EINVAL;
	return copy_text(colon + 1, n - (size_t)(colon + 1 - pair), a->secret);
}

static int parse_basic(const char *base64, struct authorization *a)
{
	const gnutls_datum_t encoded = { (unsigned char *)base64, (unsigned)strlen(base64) };
	gnutls_datum_t pair;
	int r;

	if (encoded.size == 0 || gnutls_base64_decode2(&encoded, &pair) < 0)
		return -EINVAL;
	r = parse_pair((const char *)pair.data, pair.size, a);
	explicit_bzero(pair.data, pair.size);
	gnutls_free(pair.data);
	return r;
}

int authorization_parse(const char *header, struct authorization *ret_authorization)
{
	struct authorization a = { .scheme = AUTHORIZATION_BASIC };
	const char *basic = after_scheme(header, "Basic"), *bearer = after_scheme(header, "Bearer");
	int r = -EINVAL;

	if (basic) {
		r = parse_basic(basic, &a);
	} else if (bearer && *bearer) {
		a.scheme = AUTHORIZATION_BEARER;
		r = copy_text(bearer, strlen(bearer), a.secret);
	}
	if (r == 0)
		*ret_authorization = a;
	explicit_bzero(&a, sizeof(a));
	return r;
}
