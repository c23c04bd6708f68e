// SPDX-License-Identifier: Apache-2.0
/*
 * Opens the addresses that are served, and says in the log which these are, or why one cannot be opened and
 * what to do. Descriptors belong to the caller.
 */
#pragma once

#include "serve/address.h"

/*
 * 0 or the error of listen_tcp_text(), logged as an error. @flag: the option's, for remedies. @asks: whether
 * clients must say who they are.
 */
int bind_http(const char *address, const char *flag, bool asks, int ret_fds[ADDRESS_MAX], unsigned *ret_n);
/* These log a warning: atop's addresses may belong to another program. 0 or -errno. */
int bind_atop(const char *address, int *ret_fd);
int bind_atop_abstract(const char *name, int *ret_fd);
