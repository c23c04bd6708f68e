// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/strbuf.h"

/*
 * Appends @text so that it can stand in a path or as a value of a query: what is no letter, digit or one of
 * "-_~." becomes %XX.
 */
void url_add(struct strbuf *url, const char *text);
/* Whether @name may stand for a segment of a path: not empty, "." or "..". */
bool url_is_segment(const char *name);
