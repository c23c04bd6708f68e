// SPDX-License-Identifier: Apache-2.0
/*
 * The command line's side of the control socket: one HTTP/1.0 request and one reply, limited in time and
 * size. Blocking.
 */
#pragma once

#include "base/strbuf.h"

enum { CONTROL_TIMEOUT_MS = 3000, CONTROL_REPLY_MAX = 64 << 20 };

/*
 * Sends "METHOD TARGET" to the agent at this UNIX socket ("@name" is abstract) and appends the body of its
 * reply to @ret_body, which must have been initialised; the status code goes to @ret_status, whatever it is.
 * -ENOENT and -ECONNREFUSED: no agent runs there. -EACCES: one may, but not for us. -ETIMEDOUT: it did not
 * answer in time. -EMSGSIZE: its reply is too long. -EPROTO: that is not HTTP, or the body broke off.
 */
int control_request(const char *socket_path, const char *method, const char *target, struct strbuf *ret_body,
		    unsigned *ret_status);
