// SPDX-License-Identifier: Apache-2.0
/*
 * One function of ours for each kind of instruction that exists on this machine; called by kernel_sites.c's
 * children and nobody else.
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
