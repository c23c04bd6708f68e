// SPDX-License-Identifier: Apache-2.0
/* A share as a bar: "████▌     ". */
#pragma once

#include "screen/canvas.h"

/* @share: 0 to 1, cut; negative: unknown, and drawn so that it does not look like zero. */
void bar_draw(struct canvas *canvas, int row, int column, int width, enum role role, double share);
