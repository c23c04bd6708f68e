// SPDX-License-Identifier: Apache-2.0
/*
 * A tar archive (POSIX ustar) in memory. Written here and not by libarchive, which would bring libxml2 and
 * ICU into the program that is the agent, too: names are ours and short, and all is a regular file of mode
 * 0600.
 */
#pragma once

#include <stdint.h>

#include "base/strbuf.h"

enum { ARCHIVE_NAME_MAX = 99 };

/* Appends a file. -ENAMETOOLONG; -ENOMEM, also if @tar has reached its limit. */
int archive_add(struct strbuf *tar, const char *name, const void *data, size_t n, int64_t time_s);
/* Nothing follows. -ENOMEM. */
int archive_end(struct strbuf *tar);
