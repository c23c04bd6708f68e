// SPDX-License-Identifier: Apache-2.0
/* Which server a process is, by its name and its command line. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/cursor.h"
#include "model/server.h"

/* By the name that the kernel has, at most 15 bytes of it; SERVER_KINDS: of none. */
enum server_kind server_of_comm(const struct cursor *comm);
/* Programs that run others, by whose command line alone one can tell: Python. */
bool comm_hides_program(const struct cursor *comm);
/* By a command line: arguments, each with its NUL. SERVER_KINDS: of none. */
enum server_kind server_of_arguments(const char *arguments, size_t n);
/* The port that a command line of this kind chooses; 0: none. */
uint16_t port_of_arguments(enum server_kind kind, const char *arguments, size_t n);
