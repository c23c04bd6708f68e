// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>

/*
 * A moment as people write it: "10m" or "24h" ago; "2026-01-31", "2026-01-31T23:59", "... 23:59:59.5", in
 * UTC, or with an offset ("Z", "+01:00"); seconds since 1970. -EINVAL.
 */
int moment_parse(const char *text, int64_t now_ns, int64_t *ret_real_ns);
