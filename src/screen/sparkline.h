// SPDX-License-Identifier: Apache-2.0
/* Shares of the last minutes, oldest first, a column each: "▁▂▅▇█". */
#pragma once

#include "screen/canvas.h"

/* Value @i of @n, the oldest first: 0 to 1; negative: not known. */
typedef double sparkline_fn(const void *userdata, int i, int n);

/* @rows: its height. The newest value stands at the right end. */
void sparkline_draw(struct canvas *canvas, int row, int column, int rows, int width, enum role role,
		    sparkline_fn *value, const void *userdata);
