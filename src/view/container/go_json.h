// SPDX-License-Identifier: Apache-2.0
/*
 * JSON as Go's encoding/json writes it, byte for byte: for pages that stand in for those of Go programs.
 * Strings are safe in HTML, numbers have the fewest digits that tell them from all others.
 */
#pragma once

#include <stdint.h>

#include "base/strbuf.h"

/*
 * With its quotes. <, >, & and U+2028, U+2029 are escaped, and each byte that is no UTF-8 is written as
 * U+FFFD, escaped; a U+FFFD of the text itself is not.
 */
void go_json_string(struct strbuf *out, const char *text);

/*
 * Plain decimals from 1e-6 up to 1e21, else with an exponent (1e-7, 1e+21). NaN and infinities, which JSON
 * does not have, are written as 0.
 */
void go_json_number(struct strbuf *out, double value);

/* A time in UTC as RFC 3339, in quotes, with as many decimals as it has; from 1970 on. */
void go_json_time(struct strbuf *out, int64_t real_ns);
