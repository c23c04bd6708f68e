// SPDX-License-Identifier: Apache-2.0
#include "screen/sparkline.h"

#include <math.h>

enum { EIGHTHS = 8, BLOCK_LOWEST = 0x2581 };

void sparkline_draw(struct canvas *canvas, int row, int column, int rows, int width, enum role role,
		    sparkline_fn *value, const void *userdata)
{
	static const char levels[EIGHTHS + 1] = "_.,-=+*#";

	for (int i = 0; i < width; i++) {
		double share = value(userdata, i, width);
		long height = share < 0 ? 0 : lround(fmin(share, 1) * rows * EIGHTHS);

		if (share >= 0 && height == 0)
			height = 1; /* known: not the same as unknown */
		for (int k = 0; k < rows; k++) {
			long level = height - (long)(rows - 1 - k) * EIGHTHS;

			if (level <= 0)
				continue;
			level = level > EIGHTHS ? EIGHTHS : level;
			canvas_put(canvas, row + k, column + i, role, BLOCK_LOWEST + (wchar_t)level - 1,
				   levels[level - 1]);
		}
	}
}
