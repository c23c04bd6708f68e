// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <stdbool.h>
#include <string.h>

#include "base/macro.h"
#include "net/failure.h"

static const struct net_places places = { {
	[NET_PLACE_NAME] = "a.name",
	[NET_PLACE_CA] = "a.ca_file",
} };

static enum net_failure failure_of(CURLcode code, const char *words)
{
	CURL *easy = curl_easy_init();
	enum net_failure failure = net_failure_of(easy, code, words);

	curl_easy_cleanup(easy);
	return failure;
}

static bool is_openssl(void)
{
	return strncmp(curl_version_info(CURLVERSION_NOW)->ssl_version, "OpenSSL/", strlen("OpenSSL/")) == 0;
}

static void codes_of_libcurl_have_their_reasons(_unused_ void **state)
{
	assert_int_equal(failure_of(CURLE_COULDNT_CONNECT, ""), NET_FAILED_CONNECT);
	assert_int_equal(failure_of(CURLE_COULDNT_RESOLVE_HOST, ""), NET_FAILED_CONNECT);
	assert_int_equal(failure_of(CURLE_OPERATION_TIMEDOUT, ""), NET_FAILED_TIMEOUT);
	assert_int_equal(failure_of(CURLE_SSL_CONNECT_ERROR,
				    "error:0A00010B:SSL routines::wrong version number"),
			 NET_FAILED_TLS);
	/* Only of OpenSSL it is known that its errors have numbers. */
	assert_int_equal(failure_of(CURLE_SSL_CONNECT_ERROR, "SSL_connect: Connection reset by peer"),
			 is_openssl() ? NET_FAILED_TRANSPORT : NET_FAILED_TLS);
	assert_int_equal(failure_of(CURLE_SSL_CACERT_BADFILE, ""), NET_FAILED_TLS_CA);
	assert_int_equal(failure_of(CURLE_RECV_ERROR, "Connection reset by peer"), NET_FAILED_TRANSPORT);
	assert_int_equal(failure_of(CURLE_OUT_OF_MEMORY, ""), NET_FAILED_LOCAL);
}

/* As OpenSSL 3 says it in TLS 1.2 and 1.3. */
static void alerts_about_our_certificate_are_told_apart(_unused_ void **state)
{
	static const char required[] = "OpenSSL SSL_read: error:0A00045C:SSL routines::tlsv13 alert "
				       "certificate required, errno 0";
	static const char unknown[] = "error:0A000418:SSL routines::tlsv1 alert unknown ca";
	static const char version[] = "error:0A00042E:SSL routines::tlsv1 alert protocol version";

	assert_int_equal(failure_of(CURLE_RECV_ERROR, required), NET_FAILED_TLS_CLIENT);
	assert_int_equal(failure_of(CURLE_SSL_CONNECT_ERROR, unknown), NET_FAILED_TLS_CLIENT);
	assert_int_equal(failure_of(CURLE_SSL_CONNECT_ERROR, version), NET_FAILED_TLS);
	/* Names of hosts are words, too. */
	assert_int_equal(failure_of(CURLE_COULDNT_RESOLVE_HOST,
				    "Could not resolve host: alerts.certificates.svc"),
			 NET_FAILED_CONNECT);
}

static void expect_words(enum net_failure failure, const char *wanted)
{
	char text[200];

	net_explain(failure, &places, "details", text, sizeof(text));
	assert_string_equal(text, wanted);
}

static void a_remedy_names_the_clients_option(_unused_ void **state)
{
	expect_words(NET_FAILED_TLS_CA, "its certificate is not of a CA that is trusted (name its CA by "
					"a.ca_file: details)");
	expect_words(NET_FAILED_TLS_TIME, "its certificate has expired, or is not valid yet (renew it, or "
					  "set the clock that is wrong: details)");
	/* A client without such an option has no remedy. */
	expect_words(NET_FAILED_TLS_CLIENT, "it does not accept the client's certificate, or gets none "
					    "(details)");
	expect_words(NET_FAILED_CONNECT, "nobody answers there (details)");
}

static void what_is_too_long_is_cut(_unused_ void **state)
{
	char text[20];

	net_explain(NET_FAILED_TLS_CA, &places, "\xff", text, sizeof(text));
	assert_int_equal(strlen(text), sizeof(text) - 1);
	net_advise(NET_FAILED_CONNECT, &places, "\xff", text, sizeof(text));
	assert_null(strchr(text, '\xff'));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(codes_of_libcurl_have_their_reasons),
		cmocka_unit_test(alerts_about_our_certificate_are_told_apart),
		cmocka_unit_test(a_remedy_names_the_clients_option),
		cmocka_unit_test(what_is_too_long_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
