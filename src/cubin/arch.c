// SPDX-License-Identifier: Apache-2.0
#include "cubin/arch.h"

/*
 * Chips outside the compatible series: they run only what was compiled for them, and no other chip of their
 * major version does. The CUDA Programming Guide documents this for Tegra; nvlink 13.0 agrees, and adds
 * sm_88.
 */
static bool stands_alone(uint16_t sm)
{
	static const uint16_t alone[] = { 53, 62, 72, 87, 88, 101 };

	for (unsigned i = 0; i < ARRAY_SIZE(alone); i++)
		if (alone[i] == sm)
			return true;
	return false;
}

static bool takes_within_major(uint16_t image, uint16_t sm)
{
	if (image == sm)
		return true;
	return image / 10 == sm / 10 && image < sm && !stands_alone(image) && !stands_alone(sm);
}

static bool takes(const struct cubin_image *image, uint16_t sm)
{
	struct kernel_arch arch = image->arch;

	if (arch.sm == 0 || sm == 0)
		return false;
	if (arch.variant == 'a')
		return arch.sm == sm;
	/*
	 * A family is the same line of chips as for machine code; PTX without a family is compiled for any
	 * architecture that is not older.
	 */
	if (image->kind == CUBIN_PTX && arch.variant == 0)
		return arch.sm <= sm;
	return takes_within_major(arch.sm, sm);
}

uint32_t cubin_suits(const struct cubin_image *image, uint16_t sm)
{
	uint32_t specific = image->arch.variant == 'a' ? 2 : image->arch.variant == 'f' ? 1 : 0;

	if (image->kind == CUBIN_OTHER || !takes(image, sm))
		return 0;
	return (image->kind == CUBIN_ELF ? 1U << 31 : 0) | (uint32_t)image->arch.sm << 3 | specific << 1 |
	       !image->debug;
}
