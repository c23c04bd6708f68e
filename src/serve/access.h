// SPDX-License-Identifier: Apache-2.0
/*
 * Who may ask for what: TLS, users with hashed passwords, bearer tokens, and what each of them may. It is
 * made of records, which the agent reads from files (config/web_access.h) and hands to the process that
 * listens, which can open none.
 *
 * Records are what a configuration says, one after the other; access_new() makes of them what the server
 * needs, and says what is wrong with them, so that the agent finds out before anybody is refused.
 *
 * An access is immutable; any thread may have references.
 */
#pragma once

#include <gnutls/gnutls.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"
#include "base/strbuf.h"

/* What a page needs of who asks for it; the column of web/routes.def. */
enum access_right {
	ACCESS_VIEWS,
	ACCESS_CONTROL, /* to have the agent do something: over TLS, by somebody who is known */
	ACCESS_RECORDINGS,
	ACCESS_PROBES, /* nothing: whether the agent lives */
	ACCESS_LOCAL, /* the UNIX socket */
};

enum access_kind {
	ACCESS_CERTIFICATE = 1, /* PEM, of this server with its chain */
	ACCESS_KEY, /* PEM */
	ACCESS_CLIENT_CA, /* PEM */
	ACCESS_CLIENT_AUTH, /* a digit: enum access_client_auth */
	ACCESS_CLIENT_SAN, /* one that a client's certificate must have one of */
	ACCESS_PRIORITY, /* GnuTLS's text for versions, ciphers and curves */
	ACCESS_USER, /* name; bcrypt hash */
	ACCESS_TOKEN, /* name; SHA-256 of the token */
	ACCESS_MAY, /* name is a digit: enum access_right; text who has it, "*": every known user */
	ACCESS_HEADER, /* of all replies: name; value */
	ACCESS_ORIGIN, /* whose pages' scripts may ask, beside our own: "https://gpus.example" */
	ACCESS_LIMIT, /* of each client: name is nanoseconds between requests, text how many at once */
	ACCESS_KINDS,
};

enum access_client_auth {
	CLIENT_AUTH_NONE,
	CLIENT_AUTH_REQUEST,
	CLIENT_AUTH_REQUIRE_ANY,
	CLIENT_AUTH_VERIFY_IF_GIVEN,
	CLIENT_AUTH_REQUIRE_AND_VERIFY,
};

enum {
	ACCESS_RECORDS_MAX = 1024,
	ACCESS_BYTES_MAX = 2 << 20,
	ACCESS_NAME_MAX = 128, /* with the zero byte */
	ACCESS_DIGEST_BYTES = 32, /* SHA-256 */
};

struct access_record {
	enum access_kind kind;
	const char *name; /* terminated; "" where the kind has one text alone */
	const char *text; /* terminated; of a token, its digest's bytes */
	size_t text_n;
};

struct access {
	atomic_uint refs;
	char *bytes; /* what the records' texts lie in */
	struct access_record *records;
	unsigned n;
	unsigned users, tokens;
	int64_t interval_ns; /* between requests of a client; 0: no limit */
	unsigned burst;
	enum access_client_auth client_auth;
	gnutls_certificate_credentials_t credentials; /* NULL: no TLS */
	gnutls_priority_t priority;
};

/* Appends a record. */
void access_put(struct strbuf *records, enum access_kind kind, const char *name, const void *text,
		size_t text_n);
/* Frees records, and leaves nothing in memory: a private key may be among them. */
void access_forget(struct strbuf *records);
/* -EINVAL: what is wrong and what to do is one line in @why, which may be NULL; -ENOMEM. */
int access_new(const void *records, size_t n, struct access **ret_access, struct strbuf *why);
struct access *access_ref(struct access *access);
void access_unref(struct access *access);
DEFINE_CLEANUP(struct access *, access_unref, access_unrefp)

static inline bool access_has_tls(const struct access *access)
{
	return access && access->credentials;
}

/* Whether it must be known who asks: there are users, tokens, or verified certificates without exception. */
bool access_asks(const struct access *access);
/* Whether @access leaves out some of what @than asks of clients: TLS, who they are, certificates. */
bool access_asks_less(const struct access *access, const struct access *than);
/* Whether @name has the right; "": nobody is asked who it is. */
bool access_may(const struct access *access, enum access_right right, const char *name);
/* Whether anybody may have the agent do something over the network, which only TLS and names allow. */
bool access_allows_control(const struct access *access);
/* Whether a user or a token has this name. */
bool access_is_known(const struct access *access, const char *name);
/* The bcrypt hash of a user; NULL: there is no such user. */
const char *access_hash(const struct access *access, const char *user);
/* That of any user, to compute with for one who is not there; NULL: there are none. */
const char *access_first_hash(const struct access *access);
/* The name of a token's owner; NULL: it is none. Takes as long for each. */
const char *access_token_owner(const struct access *access, const char *token);
/* Whether scripts of this origin's pages may ask. */
bool access_allows_origin(const struct access *access, const char *origin);
/* What is asked of clients, in words: "TLS, users, tokens"; "" for nothing. */
void access_describe(const struct access *access, char *ret_text, size_t size);
/* What all replies are to have as this header; NULL: nothing is said of it. */
const char *access_header(const struct access *access, const char *name);
/* SHA-256. */
void access_digest(const void *text, size_t n, uint8_t ret_digest[static ACCESS_DIGEST_BYTES]);
