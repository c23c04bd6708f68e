// SPDX-License-Identifier: Apache-2.0
#include "net/transfer.h"

#include "config.h"

void net_set_up(CURL *easy, char *words)
{
	curl_easy_reset(easy);
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(easy, CURLOPT_PROXY, "");
	curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, "gzip");
	curl_easy_setopt(easy, CURLOPT_USERAGENT, "gpusonde/" GPUSONDE_VERSION);
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, words);
}
