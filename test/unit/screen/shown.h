// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "test.h"

#include "screen/export.h"

/* The canvas has this text. */
static inline void assert_shown(const struct canvas *canvas, const char *wanted)
{
	struct strbuf out;

	strbuf_init(&out, 0);
	assert_int_equal(canvas_as_text(canvas, &out), 0);
	assert_string_equal(out.data, wanted);
	strbuf_done(&out);
}
