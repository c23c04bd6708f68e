// SPDX-License-Identifier: Apache-2.0
#include "net/failure.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "base/text.h"

/* Of OpenSSL's verification (openssl/x509_vfy.h). UNSPECIFIED is what libcurl begins with. */
enum {
	X509_OK = 0,
	X509_UNSPECIFIED = 1,
	X509_NO_ISSUER = 2,
	X509_NOT_YET_VALID = 9,
	X509_HAS_EXPIRED = 10,
	X509_SELF_SIGNED = 18,
	X509_SELF_SIGNED_IN_CHAIN = 19,
	X509_NO_ISSUER_LOCALLY = 20,
	X509_UNVERIFIED_LEAF = 21,
	X509_UNTRUSTED = 27,
};

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

	/* "(OpenSSL/...)" is one of several, and not the one in use. */
	return version && strncmp(version, "OpenSSL/", strlen("OpenSSL/")) == 0;
}

/* OpenSSL says why it ends a handshake; after one that it did not end libcurl looks at the name itself. */
static enum net_failure rejected(CURL *easy)
{
	long result = -1, proxy = X509_OK;

	if (!is_openssl() || curl_easy_getinfo(easy, CURLINFO_SSL_VERIFYRESULT, &result) != CURLE_OK)
		return NET_FAILED_TLS;
	/* A proxy's certificate is no matter of the server's. */
	curl_easy_getinfo(easy, CURLINFO_PROXY_SSL_VERIFYRESULT, &proxy);
	if (proxy > X509_UNSPECIFIED)
		return NET_FAILED_TLS;
	switch (result) {
	case X509_OK:
	case X509_UNSPECIFIED:
		return NET_FAILED_TLS_NAME;
	case X509_NOT_YET_VALID:
	case X509_HAS_EXPIRED:
		return NET_FAILED_TLS_TIME;
	case X509_NO_ISSUER:
	case X509_SELF_SIGNED:
	case X509_SELF_SIGNED_IN_CHAIN:
	case X509_NO_ISSUER_LOCALLY:
	case X509_UNVERIFIED_LEAF:
	case X509_UNTRUSTED:
		return NET_FAILED_TLS_CA;
	default:
		return NET_FAILED_TLS; /* a key that is too short, a wrong purpose, ... */
	}
}

/*
 * In TLS 1.3 a server says it where its answer is waited for; only words tell it from a connection that
 * broke.
 */
static bool is_alert_about_client(CURLcode code, const char *words)
{
	if (code != CURLE_SSL_CONNECT_ERROR && code != CURLE_RECV_ERROR && code != CURLE_SEND_ERROR)
		return false;
	return strstr(words, "alert") && (strstr(words, "certificate") || strstr(words, "unknown ca"));
}

/* OpenSSL's errors are numbered; a connection that broke in the handshake has none. */
static bool is_broken_handshake(CURLcode code, const char *words)
{
	return code == CURLE_SSL_CONNECT_ERROR && is_openssl() && !strstr(words, "error:");
}

bool net_failure_is_tls(enum net_failure failure)
{
	switch (failure) {
	case NET_FAILED_TLS_NAME:
	case NET_FAILED_TLS_TIME:
	case NET_FAILED_TLS_CA:
	case NET_FAILED_TLS_CLIENT:
	case NET_FAILED_TLS:
		return true;
	default:
		return false;
	}
}

enum net_failure net_failure_of(CURL *easy, CURLcode code, const char *words)
{
	if (code == CURLE_PEER_FAILED_VERIFICATION)
		return rejected(easy);
	if (is_alert_about_client(code, words))
		return NET_FAILED_TLS_CLIENT;
	if (is_broken_handshake(code, words))
		return NET_FAILED_TRANSPORT;
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
