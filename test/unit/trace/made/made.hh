// SPDX-License-Identifier: Apache-2.0
/* libmade.so: a library above CUDA, made up for tests. Results are 0 or a code unless said otherwise. */
#pragma once

#include <stddef.h>
#include <stdint.h>

extern "C" {
int madeInit(void);
void *madeAlloc(size_t size); /* NULL: failed */
int madeFree(void *memory);
int madeCopy(void *to, const void *from, size_t size); /* from the host */
int madeFail(int code); /* after a call of CUDA that fails */
int madeRepeat(int times, void *to, const void *from, size_t size); /* calls itself, then madeCopy() */
int madeTail(void *memory); /* jumps to cuMemFree_v2() */
int madeCall(void (*fn)(void *), void *userdata); /* @fn may leave by longjmp() */
int madeNote(int value); /* a number that says nothing about success */
int madeThrow(void *to, const void *from, size_t size); /* copies, then throws an int */
}
