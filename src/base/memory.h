// SPDX-License-Identifier: Apache-2.0
/*
 * Reduces resident memory of programs that run for months.
 */
#pragma once

/*
 * Gives back free heap, and the pages of program and libraries that were touched, were not changed by
 * anybody, and can be read from their files again: after start-up most of them (relocation, initialisers) are
 * never needed again. What is in use comes back at the next touch, from the page cache, for a minor fault
 * each. Segments in which somebody patched a page (breakpoints, hooks) and the driver's libraries stay as
 * they are; so does everything where /proc/self/pagemap cannot be read.
 */
void memory_give_back(void);
