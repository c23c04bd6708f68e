// SPDX-License-Identifier: Apache-2.0
/* Shared by the files of view/stacks*.c. */
#pragma once

#include "view/stacks.h"

struct stack_weight_info {
	const char *name, *unit, *title;
};
extern const struct stack_weight_info stack_weight_infos[STACK_WEIGHTS];
