// SPDX-License-Identifier: Apache-2.0
#include "store/tier.h"

#include "base/clock.h"

const struct tier store_tiers[TIERS] = {
	{ "1s", NSEC_PER_SEC, 120, 10, false },
	{ "10s", 10 * NSEC_PER_SEC, 180, 6, true },
	{ "1min", 60 * NSEC_PER_SEC, 120, 1, true },
};
