// SPDX-License-Identifier: Apache-2.0
/* How often frames are kept. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { TIERS = 3 };

struct tier {
	const char *name;
	int64_t period_ns;
	uint32_t block_frames, put_frames; /* frames of a block, and until it is put into the file again */
	bool slow; /* takes frames with all tables alone */
};
extern const struct tier store_tiers[TIERS];
