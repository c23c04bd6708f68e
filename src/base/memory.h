// SPDX-License-Identifier: Apache-2.0
/* Resident memory, for programs that run for months and should not be seen. */
#pragma once

/*
 * Gives back free heap, and the pages of program and libraries that were touched, cannot have been changed, and can be read
 * from their files again: after start-up most of them (relocation, initialisers) are never needed again. What is in use comes
 * back at the next touch, from the page cache, for a minor fault each.
 */
void memory_give_back(void);
