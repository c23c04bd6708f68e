// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Who has taken an address that we want? Looked up in /proc: the socket's inode, then the process that holds
 * it. Fills @ret_who with words such as "nginx (PID 812)"; "another program" when it cannot be told, for want
 * of permission say.
 */
void port_owner(uint16_t port, char *ret_who, size_t size);
void abstract_owner(const char *name, char *ret_who, size_t size);

/* Where it cannot be found out, for want of permission. */
#define PORT_OWNER_UNKNOWN "another program"

/* ADDR:0, for whichever is free: only the log can say which it is. */
bool asks_for_any_port(const char *address);
