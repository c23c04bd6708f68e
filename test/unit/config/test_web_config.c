// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <string.h>

#include "config/web_config.h"
#include "serve/access.h"

static struct strbuf records, errors;

static int start(_unused_ void **state)
{
	strbuf_init(&records, 0);
	strbuf_init(&errors, 0);
	return 0;
}

static int stop(_unused_ void **state)
{
	strbuf_done(&records);
	strbuf_done(&errors);
	return 0;
}

static void parse(const char *text)
{
	strbuf_reset(&records);
	strbuf_reset(&errors);
	assert_int_equal(web_config_parse("web.yml", text, strlen(text), &records, &errors), 0);
}

#define HASH "$2y$10$mDwo.lAisC94iLAyP81MCesa29IzH37oigHC/42V2pdJlUprsJPze"

static void users_and_headers(_unused_ void **state)
{
	struct access *access;

	parse("basic_auth_users:\n  alice: " HASH "\nhttp_server_config:\n  http2: true\n  headers:\n"
	      "    X-Frame-Options: deny\n    X-XSS-Protection:\n");
	assert_string_equal(errors.data, "");
	assert_int_equal(access_new(records.data, records.len, &access, NULL), 0);
	assert_string_equal(access_hash(access, "alice"), HASH);
	assert_string_equal(access_header(access, "X-Frame-Options"), "deny");
	assert_null(access_header(access, "X-XSS-Protection"));
	access_unref(access);
}

static void an_empty_file_asks_nothing(_unused_ void **state)
{
	parse("");
	assert_string_equal(errors.data, "");
	assert_int_equal(records.len, 0);
	parse("tls_server_config:\nbasic_auth_users:\n");
	assert_string_equal(errors.data, "");
	assert_int_equal(records.len, 0);
}

static void versions_ciphers_and_curves(_unused_ void **state)
{
	parse("tls_server_config:\n  cert: x\n  key: y\n  min_version: TLS12\n  max_version: TLS12\n"
	      "  cipher_suites: [TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256]\n  curve_preferences: [X25519]\n"
	      "  prefer_server_cipher_suites: false\n");
	assert_string_equal(errors.data, "");
	assert_non_null(memmem(records.data, records.len, "NORMAL:-VERS-ALL:+VERS-TLS1.2:-KX-ALL", 37));
	assert_non_null(memmem(records.data, records.len, "+ECDHE-RSA:+AES-128-GCM:+AEAD", 29));
	assert_non_null(memmem(records.data, records.len, ":-GROUP-ALL:+GROUP-X25519", 25));
	assert_null(memmem(records.data, records.len, "%SERVER_PRECEDENCE", 18));
}

static void mistakes_have_their_line(_unused_ void **state)
{
	static const struct {
		const char *text, *error;
	} rows[] = {
		{ "a: b\n", "web.yml:1: unknown key" },
		{ "\nbasic_auth_user: {}\n", "web.yml:2: unknown key \"basic_auth_user\": did you mean" },
		{ "tls_server_config: text\n", "web.yml:1: tls_server_config needs keys below it" },
		{ "tls_server_config:\n  cert: x\n", "web.yml:1: key_file is missing" },
		{ "tls_server_config:\n  key: x\n", "web.yml:1: cert_file is missing" },
		{ "tls_server_config:\n  cert_file: [a]\n", "web.yml:2: cert_file needs a single value" },
		{ "tls_server_config:\n  cert: x\n  cert_file: y\n  key: z\n",
		  "web.yml:3: cert_file is given as" },
		{ "tls_server_config:\n  cert: x\n  key: y\n  client_auth_type: Always\n",
		  "web.yml:4: client_auth" },
		{ "tls_server_config:\n  cert: x\n  key: y\n  client_ca: z\n", "needs client_auth_type" },
		{ "tls_server_config:\n  cert: x\n  key: y\n  client_allowed_sans: [a]\n",
		  "needs client_auth_type" },
		{ "tls_server_config:\n  cert: x\n  key: y\n  min_version: TLS13\n  max_version: TLS12\n",
		  "newer" },
		{ "tls_server_config:\n  cert: x\n  key: y\n  cipher_suites: [TLS_NULL]\n",
		  "web.yml:4: cipher" },
		{ "tls_server_config:\n  cert: x\n  key: y\n  curve_preferences: [CurveP256, CurveP256, "
		  "CurveP256, CurveP256, CurveP256, CurveP256, CurveP256, CurveP256, CurveP256]\n",
		  "web.yml:1: cipher_suites or curve_preferences has too many" },
		{ "tls_server_config:\n  cert: x\n  key: y\n  curve_preferences: [P1]\n",
		  "web.yml:4: curve" },
		{ "http_server_config:\n  http2: perhaps\n", "web.yml:2: http2 must be true or false" },
		{ "http_server_config:\n  headers:\n    Server: x\n", "web.yml:3: unknown key" },
		{ "http_server_config:\n  headers:\n    X-XSS-Protection: \"a\\nb: c\"\n", "web.yml:3: " },
		{ "basic_auth_users:\n  alice: secret\n",
		  "web.yml:2: a user of basic_auth_users has no bcrypt" },
		{ "basic_auth_users:\n  \"a:b\": " HASH "\n", "web.yml:2: a user" },
		{ "basic_auth_users:\n  a: b\n  a: c\n", "web.yml:3: " },
		{ "x: [\n", "web.yml:" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		parse(rows[i].text);
		if (!strstr(errors.data, rows[i].error))
			fail_msg("%s: %s", rows[i].text, errors.data);
		assert_null(strstr(errors.data, "secret"));
	}
}

#define CASE(name_) cmocka_unit_test_setup_teardown(name_, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(users_and_headers),
		CASE(an_empty_file_asks_nothing),
		CASE(versions_ciphers_and_curves),
		CASE(mistakes_have_their_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
