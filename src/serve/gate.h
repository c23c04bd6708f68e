// SPDX-License-Identifier: Apache-2.0
/* Whether a request may be answered: who asks, and what that one may (access.h). Private to src/serve. */
#pragma once

#include "serve/request.h"

struct refusal {
	unsigned status;
	const char *text; /* cause and remedy in one line */
	struct http_header header; /* name NULL: none */
};

enum gate_result {
	GATE_OPEN,
	GATE_CLOSED, /* *ret_refusal says why */
	GATE_WAIT, /* the connection is suspended: to be asked again when it is resumed */
};

/* Sets request->who. On the HTTP thread. */
enum gate_result gate_pass(struct http *http, struct MHD_Connection *connection, struct conn *conn,
			   enum access_right right, struct http_request *request,
			   const struct refusal **ret_refusal);
/* False: by rules that are no longer the server's a certificate was asked for, or was not. */
bool gate_is_current(const struct http *http, const struct conn *conn);
