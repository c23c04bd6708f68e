// SPDX-License-Identifier: Apache-2.0
/* Sizes as people write them: 256MiB. */
#pragma once

#include <stdint.h>

#include "base/strbuf.h"

/* A whole number of KiB, MiB or GiB. -EINVAL. */
int size_parse(const char *text, int64_t *ret_bytes);
/* In the largest unit that is exact, KiB at least. */
void size_describe(int64_t bytes, struct strbuf *out);
