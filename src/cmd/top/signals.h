// SPDX-License-Identifier: Apache-2.0
/* Signals that people send to processes. */
#pragma once

#include "cmd/top/state.h"

struct signal_description {
	int number;
	const char *name, *what;
};
extern const struct signal_description signal_table[];
extern const unsigned signal_table_n;

/* Sends the signal to the chosen process, if it is still that one, and says how that went. */
void signals_send(struct top *top, unsigned which);
