// SPDX-License-Identifier: Apache-2.0
#include "screen/bar.h"

#include <math.h>

enum { EIGHTHS = 8, BLOCK_FULL = 0x2588, BLOCK_LIGHT = 0x2591 };

void bar_draw(struct canvas *canvas, int row, int column, int width, enum role role, double share)
{
	bool known = share >= 0;
	long filled = known ? lround(fmin(share, 1) * width * EIGHTHS) : 0;

	/* What works a little does not look idle. */
	if (share > 0 && filled == 0)
		filled = 1;
	for (int i = 0; i < width; i++) {
		long left = filled - (long)i * EIGHTHS;

		if (!known)
			canvas_put(canvas, row, column + i, ROLE_DIM, 0xb7, '-');
		else if (left >= EIGHTHS)
			canvas_put(canvas, row, column + i, role, BLOCK_FULL, '#');
		else if (left > 0)
			canvas_put(canvas, row, column + i, role, BLOCK_FULL + (wchar_t)(EIGHTHS - left),
				   left >= EIGHTHS / 2 ? '#' : '+');
		else
			canvas_put(canvas, row, column + i, ROLE_DIM, BLOCK_LIGHT, '.');
	}
}
