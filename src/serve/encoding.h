// SPDX-License-Identifier: Apache-2.0
/* Content-Encoding: pages in fewer bytes, for clients that take them. */
#pragma once

#include "base/strbuf.h"

enum http_encoding { HTTP_PLAIN, HTTP_GZIP, HTTP_ZSTD, HTTP_ENCODINGS };

/*
 * The best for a header Accept-Encoding, NULL: none. Of those that are wanted equally, the last. HTTP_PLAIN
 * unless one is named: "*" is said by clients that only pass bodies on. It is never refused, not by q=0.
 */
enum http_encoding encoding_negotiate(const char *accept_encoding);
/* Of headers. */
const char *encoding_name(enum http_encoding encoding);
/* Appends @from, encoded by one that is not HTTP_PLAIN. 0 or -ENOMEM. */
int encoding_apply(enum http_encoding encoding, const struct strbuf *from, struct strbuf *out);
