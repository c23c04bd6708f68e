// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"

/*
 * Appends a str object's characters of @width bytes (1, 2, 4) as UTF-8; control characters, surrogates and
 * what is no character as '?'. @n: bytes.
 */
void python_text(const uint8_t *data, size_t n, unsigned width, struct strbuf *out);
