// SPDX-License-Identifier: Apache-2.0
/*
 * What libcurl's clients share: why a request failed, as one table has it (model/net_failures.def), and the
 * words for it. Without a state; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <curl/curl.h>

#include "model/net_failure.h"

/* What a remedy is about. */
enum net_place { NET_PLACE_NONE, NET_PLACE_NAME, NET_PLACE_CA, NET_PLACE_CERTIFICATE, NET_PLACES };

/* Where a user of this client says each of them; NULL: nowhere, and the remedy is left out. */
struct net_places {
	const char *of[NET_PLACES];
};

/* Of a request that ended with @code, not CURLE_OK. @words: of its CURLOPT_ERRORBUFFER. */
enum net_failure net_failure_of(CURL *easy, CURLcode code, const char *words);
/* Whether certificates or keys may be what is wrong. */
bool net_failure_is_tls(enum net_failure failure);
/* "remedy by place: words", or @words alone. @words "": libcurl's of @code. */
void net_advise(enum net_failure failure, const struct net_places *places, const char *words, char *buf,
		size_t size);
/* "what it is (remedy by place: words)". */
void net_explain(enum net_failure failure, const struct net_places *places, const char *words, char *buf,
		 size_t size);
