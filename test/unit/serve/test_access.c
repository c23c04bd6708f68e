// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <string.h>

#include "serve/access.h"

static struct strbuf records;

static int start(_unused_ void **state)
{
	strbuf_init(&records, 0);
	return 0;
}

static int stop(_unused_ void **state)
{
	strbuf_done(&records);
	return 0;
}

static void put(enum access_kind kind, const char *name, const char *text)
{
	access_put(&records, kind, name, text, strlen(text));
}

static struct access *made(void)
{
	struct access *access = NULL;

	assert_int_equal(access_new(records.data, records.len, &access, NULL), 0);
	return access;
}

static void nothing_is_asked_by_none(_unused_ void **state)
{
	struct access *access = made();
	char words[64];

	assert_false(access_asks(access));
	assert_false(access_has_tls(access));
	access_describe(access, words, sizeof(words));
	assert_string_equal(words, "");
	access_unref(access);
	assert_false(access_asks(NULL));
}

static void users_and_rights(_unused_ void **state)
{
	struct access *access;
	char words[64];

	put(ACCESS_USER, "alice", "hash");
	put(ACCESS_MAY, "0", "*");
	put(ACCESS_MAY, "2", "alice");
	put(ACCESS_HEADER, "X-Frame-Options", "deny");
	access = made();
	assert_true(access_asks(access));
	assert_true(access_may(access, ACCESS_VIEWS, "bob"));
	assert_true(access_may(access, ACCESS_RECORDINGS, "alice"));
	assert_false(access_may(access, ACCESS_RECORDINGS, "bob"));
	assert_false(access_may(access, ACCESS_RECORDINGS, "*"));
	assert_false(access_may(access, ACCESS_CONTROL, "alice"));
	assert_true(access_may(access, ACCESS_PROBES, ""));
	assert_false(access_may(access, ACCESS_LOCAL, "alice"));
	assert_false(access_allows_control(access));
	assert_string_equal(access_hash(access, "alice"), "hash");
	assert_null(access_hash(access, "hash"));
	assert_true(access_is_known(access, "alice"));
	assert_string_equal(access_header(access, "x-frame-options"), "deny");
	access_describe(access, words, sizeof(words));
	assert_string_equal(words, "users");
	access_unref(access);
}

/* What a file that is only half written leaves out. */
static void less_is_noticed(_unused_ void **state)
{
	struct access *none = made(), *users, *tokens, *certificates;
	static const uint8_t digest[ACCESS_DIGEST_BYTES];

	put(ACCESS_USER, "alice", "hash");
	users = made();
	strbuf_reset(&records);
	access_put(&records, ACCESS_TOKEN, "prometheus", digest, sizeof(digest));
	tokens = made();
	put(ACCESS_CLIENT_AUTH, "", "4");
	certificates = made();
	assert_false(access_asks_less(none, NULL));
	assert_false(access_asks_less(none, none));
	assert_true(access_asks_less(none, users));
	assert_true(access_asks_less(none, tokens));
	assert_false(access_asks_less(users, tokens));
	assert_false(access_asks_less(tokens, users));
	assert_true(access_asks_less(tokens, certificates));
	assert_false(access_asks_less(certificates, tokens));
	access_unref(none);
	access_unref(users);
	access_unref(tokens);
	access_unref(certificates);
}

/* web.recordings: none, where nobody is asked who it is. */
static void nobody_is_not_everybody(_unused_ void **state)
{
	struct access *access;

	put(ACCESS_MAY, "0", "*");
	put(ACCESS_MAY, "2", "");
	access = made();
	assert_true(access_may(access, ACCESS_VIEWS, ""));
	assert_false(access_may(access, ACCESS_RECORDINGS, ""));
	assert_false(access_may(access, ACCESS_RECORDINGS, "alice"));
	access_unref(access);
}

static void tokens_are_known_by_their_digest(_unused_ void **state)
{
	uint8_t digest[ACCESS_DIGEST_BYTES];
	struct access *access;

	access_digest("secret", 6, digest);
	access_put(&records, ACCESS_TOKEN, "prometheus", digest, sizeof(digest));
	access = made();
	assert_string_equal(access_token_owner(access, "secret"), "prometheus");
	assert_null(access_token_owner(access, "secre"));
	assert_null(access_token_owner(access, ""));
	access_unref(access);
}

static void what_is_no_record_is_refused(_unused_ void **state)
{
	struct access *access = NULL;

	put(ACCESS_USER, "alice", "hash");
	for (size_t n = 1; n < records.len; n++)
		assert_int_equal(access_new(records.data, n, &access, NULL), -EINVAL);
	strbuf_reset(&records);
	put(ACCESS_TOKEN, "short", "digest");
	assert_int_equal(access_new(records.data, records.len, &access, NULL), -EINVAL);
	strbuf_reset(&records);
	for (unsigned i = 0; i <= ACCESS_RECORDS_MAX; i++)
		put(ACCESS_MAY, "0", "*");
	assert_int_equal(access_new(records.data, records.len, &access, NULL), -EINVAL);
}

static void a_certificate_must_be_one(_unused_ void **state)
{
	struct access *access = NULL;
	struct strbuf why;

	strbuf_init(&why, 0);
	put(ACCESS_CERTIFICATE, "", "no PEM");
	assert_int_equal(access_new(records.data, records.len, &access, &why), -EINVAL);
	assert_non_null(strstr(why.data, "key_file"));
	strbuf_reset(&why);
	put(ACCESS_KEY, "", "no PEM");
	assert_int_equal(access_new(records.data, records.len, &access, &why), -EINVAL);
	assert_non_null(strstr(why.data, "PEM"));
	strbuf_done(&why);
}

#define CASE(name_) cmocka_unit_test_setup_teardown(name_, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(nothing_is_asked_by_none),         CASE(users_and_rights),
		CASE(tokens_are_known_by_their_digest), CASE(what_is_no_record_is_refused),
		CASE(a_certificate_must_be_one),        CASE(less_is_noticed),
		CASE(nobody_is_not_everybody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
