// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <curl/curl.h>

/*
 * What all requests of ours have in common: HTTP/1.1, with TLS or not; no redirection to elsewhere, no proxy,
 * no other protocol; gzip is taken; the user agent. The options of before are gone. @words: the buffer for
 * errors, of CURL_ERROR_SIZE bytes.
 */
void net_set_up(CURL *easy, char *words);
