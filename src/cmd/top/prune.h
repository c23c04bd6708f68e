// SPDX-License-Identifier: Apache-2.0
/*
 * An agent's document without what the screen never shows (JSON_BRIEF), which would be parsed each second
 * and then forgotten: most of it, where the agent is of a version without ?brief=yes. Members that are null
 * go, too; the reader takes a missing member for null.
 */
#pragma once

#include "base/strbuf.h"

/* Appends what is left of the text to @out. Any text is safe; what is no JSON is left to the parser. */
void prune(const char *text, size_t length, struct strbuf *out);
