// SPDX-License-Identifier: Apache-2.0
/* The library whose functions --probe names, and calls_named.c calls. */
#pragma once

int named_leaf(int n, const char *text);
int named_outer(int n, const char *text);
int named_recursive(int n);
void *named_alloc(unsigned long size);
/* As C++ names a function, which may throw. */
int cpp_named(int n) __asm__("_Z9cpp_namedi");
