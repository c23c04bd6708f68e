// SPDX-License-Identifier: Apache-2.0
/*
 * The file with debugging symbols of a stripped one, in /usr/lib/debug: by build-id, or by the name and the
 * checksum in .gnu_debuglink, below the folder of the stripped file. It is sought there only: what lies
 * beside the file is its owner's.
 */
#pragma once

#include <stdint.h>

#include "elf/elf.h"

/* Replaced by tests. */
extern const char *debug_file_root;

/*
 * @fd: of @code. @end_ns: CPU time of the thread (clock_thread_cpu_ns()) until which checksums are made:
 * -ETIME. -ENOENT: there is none.
 */
int debug_file_open(struct elf_file *code, int fd, int64_t end_ns, int *ret_fd);
