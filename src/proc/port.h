// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Which program uses an address that we want? Looks in /proc for the socket's inode, then for the process
 * that has it open. Fills @ret_who with e.g. "nginx (PID 812)", or PORT_OWNER_UNKNOWN if it cannot be
 * determined.
 */
void port_owner(uint16_t port, char *ret_who, size_t size);
void abstract_owner(const char *name, char *ret_who, size_t size);

/* Used if permissions are missing to determine the program. */
#define PORT_OWNER_UNKNOWN "another program"

/* ADDR:0: any free port; which one was chosen is only visible in the log. */
bool asks_for_any_port(const char *address);
