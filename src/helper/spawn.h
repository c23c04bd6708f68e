// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits.h>
#include <stdint.h>
#include <sys/types.h>

/* The helper's descriptors: of its socket, and of its own program, which it closes first. */
enum { HELPER_SOCKET = 3, HELPER_PROGRAM = 4 };

/*
 * The helper's executable: @configured if that is a path; else a program of this name (NULL: gpusonde-reader)
 * beside our own executable, or where it is installed; where it is to get any of @capabilities, beside it
 * only if nobody else can replace it there. Always returns a path, which need not exist.
 */
void helper_find_program(const char *configured, uint64_t capabilities, char ret_path[PATH_MAX]);
/* The same of a library that programs of others load. */
void helper_find_library(const char *name, char ret_path[PATH_MAX]);
/* Descriptor of a program for helper_spawn(), owned by the caller, or -errno. */
int helper_open_program(const char *path);
/*
 * Starts the program, called @name, with the arguments @role and our PID, and with those of @capabilities
 * that this process has. *ret_socket, SOCK_SEQPACKET and non-blocking, and *ret_pidfd belong to the caller.
 * -errno.
 */
int helper_spawn(int program, const char *name, const char *role, uint64_t capabilities, pid_t *ret_pid,
		 int *ret_pidfd, int *ret_socket);
