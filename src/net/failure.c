// SPDX-License-Identifier: Apache-2.0
#include "net/failure.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "base/text.h"

/* Of OpenSSL's verification (openssl/x509_vfy.h). UNSPECIFIED is what libcurl begins with. */
enum { X509_OK = 0, X509_UNSPECIFIED = 1, X509_NOT_YET_VALID = 9, X509_HAS_EXPIRED = 10 };

static const struct {
	const char *words, *remedy;
	enum net_place place;
} failures[NET_FAILURES] = {
#define NET_FAILURE(id_, name_, words_, remedy_, place_) \
	[NET_FAILED_##id_] = { words_, remedy_, NET_PLACE_##place_ },
#include "model/net_failures.def"
};

static const struct {
	CURLcode code;
	enum net_failure failure;
} codes[] = {
	{ CURLE_COULDNT_RESOLVE_HOST, NET_FAILED_CONNECT },
	{ CURLE_COULDNT_RESOLVE_PROXY, NET_FAILED_CONNECT },
	{ CURLE_COULDNT_CONNECT, NET_FAILED_CONNECT },
	{ CURLE_OPERATION_TIMEDOUT, NET_FAILED_TIMEOUT },
	{ CURLE_SSL_CACERT_BADFILE, NET_FAILED_TLS_CA },
	{ CURLE_SSL_CERTPROBLEM, NET_FAILED_TLS_CLIENT },
	{ CURLE_SSL_CONNECT_ERROR, NET_FAILED_TLS },
	{ CURLE_SSL_CIPHER, NET_FAILED_TLS },
	{ CURLE_OUT_OF_MEMORY, NET_FAILED_LOCAL },
	{ CURLE_URL_MALFORMAT, NET_FAILED_LOCAL },
	{ CURLE_UNSUPPORTED_PROTOCOL, NET_FAILED_LOCAL },
	{ CURLE_FAILED_INIT, NET_FAILED_LOCAL },
};

static bool is_openssl(void)
{
	const char *version = curl_version_info(CURLVERSION_NOW)->ssl_version;

	return version && strstr(version, "OpenSSL");
}

/* OpenSSL says why it ends a handshake; after one that it did not end libcurl looks at the name itself. */
static enum net_failure rejected(CURL *easy)
{
	long result = -1;

	if (!is_openssl() || curl_easy_getinfo(easy, CURLINFO_SSL_VERIFYRESULT, &result) != CURLE_OK)
		return NET_FAILED_TLS;
	switch (result) {
	case X509_OK:
	case X509_UNSPECIFIED:
		return NET_FAILED_TLS_NAME;
	case X509_NOT_YET_VALID:
	case X509_HAS_EXPIRED:
		return NET_FAILED_TLS_TIME;
	default:
		return NET_FAILED_TLS_CA;
	}
}

/*
 * In TLS 1.3 a server says it where its answer is waited for; only words tell it from a connection that
 * broke.
 */
static bool is_alert_about_client(const char *words)
{
	return strstr(words, "alert") && (strstr(words, "certificate") || strstr(words, "unknown ca"));
}

enum net_failure net_failure_of(CURL *easy, CURLcode code, const char *words)
{
	if (code == CURLE_PEER_FAILED_VERIFICATION)
		return rejected(easy);
	if (is_alert_about_client(words))
		return NET_FAILED_TLS_CLIENT;
	for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
		if (codes[i].code == code)
			return codes[i].failure;
	return NET_FAILED_TRANSPORT;
}

void net_advise(enum net_failure failure, const struct net_places *places, const char *words, char *buf,
		size_t size)
{
	const char *remedy = failures[failure].remedy, *place = places->of[failures[failure].place];

	if (remedy && place)
		snprintf(buf, size, "%s by %s: %s", remedy, place, words);
	else if (remedy && failures[failure].place == NET_PLACE_NONE)
		snprintf(buf, size, "%s: %s", remedy, words);
	else
		snprintf(buf, size, "%s", words);
	utf8_sanitize(buf);
}

void net_explain(enum net_failure failure, const struct net_places *places, const char *words, char *buf,
		 size_t size)
{
	char advice[300];

	net_advise(failure, places, words, advice, sizeof(advice));
	snprintf(buf, size, "%s (%s)", failures[failure].words, advice);
	utf8_sanitize(buf);
}
