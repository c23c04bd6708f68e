// SPDX-License-Identifier: Apache-2.0
/* A canvas as a file. */
#pragma once

#include "base/strbuf.h"
#include "screen/canvas.h"

/* As text: lines without blanks at their ends. -ENOMEM. */
int canvas_as_text(const struct canvas *canvas, struct strbuf *out);
/* As an SVG picture, with colours, that needs no other file. @title: its name for screen readers. -ENOMEM. */
int canvas_as_svg(const struct canvas *canvas, const char *title, struct strbuf *out);
