// SPDX-License-Identifier: Apache-2.0
#include "serve/access.h"

#include <errno.h>
#include <gnutls/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "serve/tls.h"

/* Before each record's texts, which both end with a zero byte that is not counted. */
struct head {
	uint32_t kind, name_n, text_n;
};

void access_put(struct strbuf *records, enum access_kind kind, const char *name, const void *text,
		size_t text_n)
{
	const struct head head = { kind, (uint32_t)strlen(name), (uint32_t)text_n };

	strbuf_add(records, &head, sizeof(head));
	strbuf_add(records, name, head.name_n + 1);
	strbuf_add(records, text, text_n);
	strbuf_addc(records, '\0');
}

void access_forget(struct strbuf *records)
{
	if (records->cap)
		explicit_bzero(records->data, records->cap);
	strbuf_done(records);
}

void access_digest(const void *text, size_t n, uint8_t ret_digest[static ACCESS_DIGEST_BYTES])
{
	gnutls_hash_fast(GNUTLS_DIG_SHA256, text, n, ret_digest);
}

/* The next record, whose texts stay where they are; its bytes, or 0: that is none. */
static size_t take_record(const char *at, size_t left, struct access_record *ret_record)
{
	struct head head;
	size_t n;

	if (left < sizeof(head))
		return 0;
	memcpy(&head, at, sizeof(head));
	n = sizeof(head) + (size_t)head.name_n + 1 + (size_t)head.text_n + 1;
	if (head.kind == 0 || head.kind >= ACCESS_KINDS || n > left || at[sizeof(head) + head.name_n] ||
	    at[n - 1] || strlen(at + sizeof(head)) != head.name_n)
		return 0;
	*ret_record = (struct access_record){
		.kind = (enum access_kind)head.kind,
		.name = at + sizeof(head),
		.text = at + sizeof(head) + head.name_n + 1,
		.text_n = head.text_n,
	};
	return n;
}

static void count_record(struct access *access, const struct access_record *record)
{
	access->users += record->kind == ACCESS_USER;
	access->tokens += record->kind == ACCESS_TOKEN;
	if (record->kind == ACCESS_LIMIT) {
		access->interval_ns = strtoll(record->name, NULL, 10);
		access->burst = (unsigned)strtoul(record->text, NULL, 10);
	}
	if (record->kind == ACCESS_CLIENT_AUTH)
		access->client_auth = (enum access_client_auth)(record->text[0] - '0');
}

static int take_records(struct access *access, size_t n)
{
	for (size_t at = 0; at < n;) {
		struct access_record *record = &access->records[access->n];
		size_t bytes =
			access->n < ACCESS_RECORDS_MAX ? take_record(access->bytes + at, n - at, record) : 0;

		if (!bytes || (record->kind == ACCESS_TOKEN && record->text_n != ACCESS_DIGEST_BYTES))
			return -EINVAL;
		count_record(access, record);
		access->n++;
		at += bytes;
	}
	return 0;
}

int access_new(const void *records, size_t n, struct access **ret_access, struct strbuf *why)
{
	_cleanup_(access_unrefp) struct access *access = calloc(1, sizeof(*access));
	int r;

	if (!access || n > ACCESS_BYTES_MAX)
		return access ? -EINVAL : -ENOMEM;
	atomic_init(&access->refs, 1);
	access->bytes = malloc(n ? n : 1);
	access->records = calloc(ACCESS_RECORDS_MAX, sizeof(*access->records));
	if (!access->bytes || !access->records)
		return -ENOMEM;
	memcpy(access->bytes, records, n);
	r = take_records(access, n);
	if (r < 0 && why)
		strbuf_addf(why, "there are more than %u users, tokens, names and the like\n",
			    ACCESS_RECORDS_MAX);
	if (r == 0)
		r = tls_prepare(access, why);
	if (r == 0)
		*ret_access = TAKE_PTR(access);
	return r;
}

struct access *access_ref(struct access *access)
{
	if (access)
		atomic_fetch_add(&access->refs, 1);
	return access;
}

void access_unref(struct access *access)
{
	if (!access || atomic_fetch_sub(&access->refs, 1) > 1)
		return;
	tls_done(access);
	/* A private key was among them. */
	for (unsigned i = 0; access->records && i < access->n; i++)
		explicit_bzero((char *)access->records[i].text, access->records[i].text_n);
	free(access->records);
	free(access->bytes);
	free(access);
}

bool access_asks(const struct access *access)
{
	return access &&
	       (access->users || access->tokens || access->client_auth == CLIENT_AUTH_REQUIRE_AND_VERIFY);
}

bool access_asks_less(const struct access *access, const struct access *than)
{
	if (!than)
		return false;
	return (access_has_tls(than) && !access_has_tls(access)) ||
	       ((than->users || than->tokens) && !access->users && !access->tokens) ||
	       access->client_auth < than->client_auth;
}

bool access_may(const struct access *access, enum access_right right, const char *name)
{
	for (unsigned i = 0; i < access->n; i++) {
		const struct access_record *record = &access->records[i];

		if (record->kind == ACCESS_MAY && record->name[0] - '0' == (int)right &&
		    (STRV_EQ(record->text, "*") || (*name && STRV_EQ(record->text, name))))
			return true;
	}
	return right == ACCESS_PROBES;
}

bool access_allows_control(const struct access *access)
{
	bool anybody = false;

	for (unsigned i = 0; access && i < access->n; i++)
		anybody |= access->records[i].kind == ACCESS_MAY &&
			   access->records[i].name[0] - '0' == ACCESS_CONTROL && *access->records[i].text;
	return anybody && access_has_tls(access) && access_asks(access);
}

bool access_is_known(const struct access *access, const char *name)
{
	for (unsigned i = 0; i < access->n; i++) {
		const struct access_record *record = &access->records[i];

		if ((record->kind == ACCESS_USER || record->kind == ACCESS_TOKEN) &&
		    STRV_EQ(record->name, name))
			return true;
	}
	return false;
}

const char *access_hash(const struct access *access, const char *user)
{
	for (unsigned i = 0; i < access->n; i++)
		if (access->records[i].kind == ACCESS_USER && STRV_EQ(access->records[i].name, user))
			return access->records[i].text;
	return NULL;
}

const char *access_first_hash(const struct access *access)
{
	for (unsigned i = 0; i < access->n; i++)
		if (access->records[i].kind == ACCESS_USER)
			return access->records[i].text;
	return NULL;
}

const char *access_token_owner(const struct access *access, const char *token)
{
	uint8_t digest[ACCESS_DIGEST_BYTES];
	const char *owner = NULL;

	access_digest(token, strlen(token), digest);
	for (unsigned i = 0; i < access->n; i++)
		if (access->records[i].kind == ACCESS_TOKEN &&
		    gnutls_memcmp(digest, access->records[i].text, sizeof(digest)) == 0)
			owner = access->records[i].name;
	return owner;
}

const char *access_header(const struct access *access, const char *name)
{
	for (unsigned i = 0; access && i < access->n; i++)
		if (access->records[i].kind == ACCESS_HEADER &&
		    strcasecmp(access->records[i].name, name) == 0)
			return access->records[i].text;
	return NULL;
}

void access_describe(const struct access *access, char *ret_text, size_t size)
{
	*ret_text = '\0';
	if (!access)
		return;
	snprintf(ret_text, size, "%s%s%s%s", access_has_tls(access) ? ", TLS" : "",
		 access->users ? ", users" : "", access->tokens ? ", tokens" : "",
		 access->client_auth == CLIENT_AUTH_REQUIRE_AND_VERIFY ? ", client certificates" : "");
	if (*ret_text)
		memmove(ret_text, ret_text + 2, strlen(ret_text + 2) + 1);
}

bool access_allows_origin(const struct access *access, const char *origin)
{
	for (unsigned i = 0; access && i < access->n; i++)
		if (access->records[i].kind == ACCESS_ORIGIN &&
		    strcasecmp(access->records[i].text, origin) == 0)
			return true;
	return false;
}
