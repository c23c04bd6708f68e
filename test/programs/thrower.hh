// SPDX-License-Identifier: Apache-2.0
#pragma once

/*
 * Functions that call back: an exception that the callback throws goes through them. With C's names and with C++'s, with a
 * frame that the unwinder has to clean up and without.
 */
extern "C" {
void thrower_plain(void (*callback)(void *), void *data);
void thrower_with_cleanup(void (*callback)(void *), void *data);
int thrower_cleaned(void); /* how many frames were cleaned up so far */
}

namespace thrower
{
void plain(void (*callback)(void *), void *data);
void with_cleanup(void (*callback)(void *), void *data);
/* Calls itself @depth times before it calls back. */
void deep(int depth, void (*callback)(void *), void *data);
}
