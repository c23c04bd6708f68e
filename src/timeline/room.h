// SPDX-License-Identifier: Apache-2.0
/* Removes the oldest of a program's own files in a folder, so that all of them together have a bound. */
#pragma once

#include <stdint.h>

enum { ROOM_FILES_MAX = 4096 };

/*
 * Files are those whose name begins with @prefix and ends with @ending, and the order of names is that of
 * age. Removes from the oldest on until they have at most @bytes, and there are fewer than ROOM_FILES_MAX.
 * -errno of reading the folder, a descriptor that stays open.
 */
int timeline_make_room(int folder, const char *prefix, const char *ending, uint64_t bytes);
