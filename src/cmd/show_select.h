// SPDX-License-Identifier: Apache-2.0
/* The flags of gpusonde ps that say which processes are shown, and how. */
#pragma once

#include "config/cmdline.h"
#include "view/fields/select.h"
#include "view/groups.h"

struct show_select {
	bool any; /* one of the flags is set */
	bool some; /* one that leaves processes out */
	struct selection processes;
	enum group_by by; /* GROUP_NONE: each process */
};

/* False: a flag was refused, with an error. */
bool show_select_parse(const struct invocation *inv, struct show_select *ret_select);
