// SPDX-License-Identifier: Apache-2.0
/*
 * TLS of the HTTP server. libmicrohttpd speaks it with GnuTLS, one session for each connection; which
 * certificate a session shows and which ones it asks for is ours (struct access), so that both can change
 * while the server runs. A handshake is never waited for: one that does not go on is a connection without a
 * request (conns.h).
 */
#pragma once

#include <gnutls/gnutls.h>

#include "base/strbuf.h"

struct access;

/* Sets access->credentials and ->priority by its records. -EINVAL with a line in @why (may be NULL). */
int tls_prepare(struct access *access, struct strbuf *why);
void tls_done(struct access *access);

/* Before the handshake. @access must outlive the session. 0, or -EPROTO. */
int tls_begin(gnutls_session_t session, const struct access *access);
/*
 * Of a session whose client has shown a certificate that was verified: its name, the first of the subject's
 * common name and its alternative names. -ENOENT: it has shown none.
 */
int tls_client_name(gnutls_session_t session, const struct access *access, char *ret_name, size_t size);
