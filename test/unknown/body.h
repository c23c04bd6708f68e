// SPDX-License-Identifier: Apache-2.0
/* What body.c keeps for caller.c. */
#pragma once

#include <stdint.h>

enum { UNKNOWN_ARGUMENTS = 9 };

struct unknown_last {
	uint64_t arguments[UNKNOWN_ARGUMENTS];
	uint64_t calls;
};
