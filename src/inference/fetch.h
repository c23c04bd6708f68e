// SPDX-License-Identifier: Apache-2.0
/*
 * A server's page, by one request: 2 seconds, 8 MiB and 200 ms of CPU time at most, HTTP/1.1 without TLS, no
 * redirection.
 */
#pragma once

#include <curl/curl.h>

#include "inference/protocol.h"

/* Fills all of *ret_answer but its index. */
void page_fetch(CURL *easy, const struct page_asked *asked, struct page_answer *ret_answer);
