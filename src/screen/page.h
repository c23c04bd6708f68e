// SPDX-License-Identifier: Apache-2.0
/*
 * A page of text, as tables print it, on a canvas: its colours (SGR) become roles, lines that are longer than
 * the canvas is wide go on in the next row, at a blank where there is one.
 */
#pragma once

#include "base/strbuf.h"
#include "screen/canvas.h"

/*
 * Draws the rows from @scroll on into the canvas' first @rows rows; where some are left out above, the first
 * rows have the warning that the page begins with, and the titles of the table that the next one is of.
 * Returns how many rows the page has. -ENOMEM.
 */
int page_draw(struct canvas *canvas, const struct strbuf *page, int rows, int scroll);
