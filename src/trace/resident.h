// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>

#include "trace/site_list.h"

/*
 * Whether the pages of all chosen sites are in memory and whole, so that attaching waits for no server and
 * no program. @size: of the file. Of a file that is not ours mincore() tells only those who may write to it
 * or have CAP_FOWNER; others are told that all of it is: the helper that has listed the sites has just read
 * them.
 */
bool sites_resident(int fd, uint64_t size, const struct site_list *list);
