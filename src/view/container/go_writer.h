// SPDX-License-Identifier: Apache-2.0
/*
 * Documents as Go's encoding/json indents them, by two blanks. Objects and arrays are opened and closed in
 * turn; an empty one is "{}" or "[]".
 */
#pragma once

#include <stdbool.h>

#include "view/container/go_json.h"

enum { GO_DEPTH_MAX = 8 };

struct go_writer {
	struct strbuf *out;
	unsigned depth;
	bool filled[GO_DEPTH_MAX]; /* what is open at that depth has something in it */
};

/* @name: of the member, NULL in an array or for the whole. @bracket: '{' or '['. */
void go_open(struct go_writer *w, const char *name, char bracket);
/* @bracket: '}' or ']'. Closing the whole ends the line. */
void go_close(struct go_writer *w, char bracket);
/* What comes before a value. */
void go_name(struct go_writer *w, const char *name);

void go_text(struct go_writer *w, const char *name, const char *text);
void go_number(struct go_writer *w, const char *name, double value);
void go_null(struct go_writer *w, const char *name);
void go_time(struct go_writer *w, const char *name, int64_t real_ns);
