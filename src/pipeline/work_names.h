// SPDX-License-Identifier: Apache-2.0
/* Names of kernels, as CUPTI's plugin tells them in parts, by who tells them (a number of the caller's). */
#pragma once

#include <stdint.h>

#include "base/hashmap.h"
#include "base/row_list.h"
#include "model/cupti_wire.h"

struct work_names {
	struct row_list list; /* struct work_name */
	struct hashmap by;
};

void work_names_init(struct work_names *names, uint32_t max);
void work_names_done(struct work_names *names);
/*
 * Parts come in order; what does not fit what has come is not taken. Returns the bytes that a new name takes;
 * 0: it is none, or there is no room.
 */
uint32_t work_names_told(struct work_names *names, uint64_t owner, const struct cupti_name *told);
/* What it would return for a name that is new. */
uint32_t work_names_bytes(const struct cupti_name *told);
/* Its index plus one, which is valid until names are forgotten; 0: it was not told. */
uint32_t work_names_find(const struct work_names *names, uint64_t owner, uint64_t name);
/* By index plus one: as compiled, as far as it has come; demangled. "" for 0. */
const char *work_names_symbol(const struct work_names *names, uint32_t found);
const char *work_names_shown(struct work_names *names, uint32_t found);
/* All that it has told. */
void work_names_forget(struct work_names *names, uint64_t owner);
