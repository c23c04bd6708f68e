// SPDX-License-Identifier: Apache-2.0
/*
 * Host functions (stubs) of kernels: <<<>>> passes the address of one to the runtime. Found without running
 * the program: by decoding the code that registers them (each call of __cudaRegisterFunction has a host
 * function and its kernel's name), and by their symbols, which are derived from the kernel's. The first works
 * with stripped files, too: the call is recognised by its arguments.
 *
 * A stub of CUDA 12 and later asks the runtime for a handle once (__cudaGetKernel) and stores it in a
 * variable, whose address is reported, too.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/kernel.h"

struct stub {
	uint64_t address; /* of the host function, as linked */
	uint64_t size; /* 0 not known */
	const char *symbol; /* the kernel's, mangled; valid in the callback only */
	enum kernel_source source; /* KERNEL_SOURCE_REGISTERED or _SYMBOL */
	uint64_t handle_address; /* of the variable, as linked; 0: none was found */
};

typedef int stub_fn(const struct stub *stub, void *userdata);

/*
 * All stubs of an executable or library; registered ones first. @debug_fd: its symbols in a file of their
 * own, or -1. Stops with @fn's result if that is not 0. -ENOEXEC: not a supported ELF file. The number of
 * decoded bytes, the CPU time and what is told are bounded by the file's size. Calls and stubs beyond that
 * are counted in *ret_skipped, and so are those that could not be decoded.
 *
 * The same host function may come several times: once for each variable that has its handle (a template's
 * stub is in every object file), and with several names where linkers have folded equal functions. Of _SYMBOL
 * there are only functions that are passed to a launch and were not seen to be registered, sometimes with a
 * name that no kernel has: the caller, which knows the kernels' names, can filter these.
 */
int stubs_read(int fd, int debug_fd, stub_fn *fn, void *userdata, uint64_t *ret_skipped);

/*
 * The separate debug file of @fd, by build-id and .gnu_debuglink, below @root (that of the process). -ENOENT.
 */
int stub_debug_file(int fd, const char *root, const char *path, int *ret_fd);
