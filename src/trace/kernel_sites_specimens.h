// SPDX-License-Identifier: Apache-2.0
/*
 * A function for each kind of instruction that exists on this machine. Only kernel_sites.c's children call
 * them.
 */
#pragma once

#include "trace/site.h"

struct specimen {
	enum site_kind kind;
	void (*function)(void);
	const void *site; /* the instruction */
};

extern const struct specimen specimens[];
extern const unsigned specimens_n;
