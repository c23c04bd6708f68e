// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>

#include "trace/site_list.h"

/*
 * Whether the pages of all chosen sites are in memory, so that attaching waits for no server and no program.
 * @size: of the file. Asks no file system. Kernels before 6.5 cannot say it (cachestat()): true.
 */
bool sites_resident(int fd, uint64_t size, const struct site_list *list);
