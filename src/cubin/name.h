// SPDX-License-Identifier: Apache-2.0
/*
 * Readable names of kernels: demangled by libiberty as c++filt does it, and folded. Bounded in time, memory
 * and stack for any input: names that would take more stay mangled. At most 2 MiB of stack and 1 MiB of heap,
 * and some tens of milliseconds; ordinary names take microseconds and 60 KiB.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * Longer symbols stay mangled. The longest of PyTorch 2.9, cuBLAS, cuDNN, cuSPARSE and NCCL have 2,489
 * characters.
 */
enum { KERNEL_NAME_MAX = 16 << 10 };

/*
 * The demangled name, ended by NUL, cut to fit. False: @symbol is not a mangled name, or nested too deeply:
 * @buf has @symbol itself, made valid UTF-8 without control characters.
 */
bool kernel_name_demangle(const char *symbol, char *buf, size_t size);

/*
 * From a demangled name: without return type, parameters and namespaces, template arguments folded: "void
 * at::native::f<4, at::F<float>>(int, float*)" is "f<...>". Lambdas and anonymous namespaces stay
 * recognisable: what is called in a lambda is "{lambda(int)#1}::operator()", an anonymous namespace is left
 * out like others but never taken for parameters.
 */
void kernel_name_brief(const char *name, char *buf, size_t size);
