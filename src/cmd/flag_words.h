// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/strbuf.h"

/*
 * The words of a placeholder "a|b|c", with blanks between them: what the value may be. Nothing if a part of
 * it is a placeholder itself.
 */
void flag_words(const char *placeholder, struct strbuf *ret_words);
