// SPDX-License-Identifier: Apache-2.0
/* What a key or the mouse does to the state. */
#pragma once

#include "cmd/top/state.h"
#include "screen/terminal.h"

struct key_description {
	uint32_t key;
	const char *name, *help;
	void (*act)(struct top *top);
};
extern const struct key_description key_table[];
extern const unsigned key_table_n;

/* @columns: of the screen, for the mouse. */
void keys_take(struct top *top, const struct event *event, int columns);
