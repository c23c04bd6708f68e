// SPDX-License-Identifier: Apache-2.0
/*
 * Which image CUDA chooses for a device: that of the exact architecture; else the highest lower one of the
 * same major version; 'a' on that architecture alone, 'f' on later ones of its family; else PTX, the newest
 * not above, which is compiled when it is loaded. Tegra's chips take only machine code compiled for them.
 */
#pragma once

#include <stdbool.h>

#include "cubin/cubin.h"

/*
 * How well an image suits a device of @sm: 0: not at all; higher is better; PTX is always below machine code.
 * Within one architecture the more specific variant ('a', 'f') is better, and code that was not compiled for
 * debugging.
 */
uint32_t cubin_suits(const struct cubin_image *image, uint16_t sm);
