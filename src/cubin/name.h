// SPDX-License-Identifier: Apache-2.0
/* Names of kernels for people: demangled by libiberty, and folded. Bounded in time, memory and stack for whatever bytes a file has. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * The demangled name, ended by NUL, cut to fit. False: @symbol is no mangled name, or too deep: @buf has @symbol itself, made valid UTF-8
 * without control characters.
 */
bool kernel_name_demangle(const char *symbol, char *buf, size_t size);

/*
 * From a demangled name: without return type, parameters and namespaces, template arguments folded:
 * "void at::native::f<4, at::F<float>>(int, float*)" is "f<...>". Lambdas and anonymous namespaces stay recognisable.
 */
void kernel_name_brief(const char *name, char *buf, size_t size);
