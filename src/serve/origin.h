// SPDX-License-Identifier: Apache-2.0
/*
 * The Origin header, by which a browser says whose page's script asks. A script of another website can send
 * requests here through its visitors' browsers, with what they are known by; it is refused.
 */
#pragma once

#include <stdbool.h>

/* Whether @origin ("https://NAME[:PORT]") is the page's own, whose Host header is @host (or NULL). */
bool origin_is_own(const char *origin, const char *host);
