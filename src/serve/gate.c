// SPDX-License-Identifier: Apache-2.0
#include "serve/gate.h"

#include <endian.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "serve/address.h"
#include "serve/authorization.h"
#include "serve/limit.h"
#include "serve/origin.h"
#include "serve/tls.h"
#include "serve/verify.h"

#define REALM "realm=\"gpusonde\""

static const struct refusal unknown_user = {
	MHD_HTTP_UNAUTHORIZED,
	"401 unauthorized: a user of basic_auth_users with its password, or a token of web.tokens, is "
	"needed\n",
	{ MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Basic " REALM ", charset=\"UTF-8\"" },
};
static const struct refusal unknown_token = {
	MHD_HTTP_UNAUTHORIZED,
	"401 unauthorized: a token of web.tokens is needed, as Authorization: Bearer TOKEN\n",
	{ MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer " REALM },
};
static const struct refusal not_permitted = {
	MHD_HTTP_FORBIDDEN,
	"403 forbidden: who asks may not have this page; web.views, web.recordings and web.control say "
	"who may\n",
	{ 0 },
};
static const struct refusal local_only = {
	MHD_HTTP_FORBIDDEN,
	"403 forbidden: this is served on the agent's UNIX socket only\n",
	{ 0 },
};
static const struct refusal tls_only = {
	MHD_HTTP_FORBIDDEN,
	"403 forbidden: the agent is told what to do over TLS, or on its UNIX socket, only\n",
	{ 0 },
};
static const struct refusal foreign_origin = {
	MHD_HTTP_FORBIDDEN,
	"403 forbidden: a script of another website asks; if it is to, add its origin to web.origins\n",
	{ 0 },
};
static const struct refusal too_often = {
	MHD_HTTP_TOO_MANY_REQUESTS,
	"429 too many requests: rate_limit of web.config_file says how many a client may send; ask again\n",
	{ MHD_HTTP_HEADER_RETRY_AFTER, "1" },
};
static const struct refusal too_many = {
	MHD_HTTP_TOO_MANY_REQUESTS,
	"429 too many requests: other passwords are being verified; ask again\n",
	{ MHD_HTTP_HEADER_RETRY_AFTER, "1" },
};

/* Where a client is: its IPv4 address, or the first half of its IPv6 one, which is a household's. */
static uint64_t client_place(int fd)
{
	struct address peer = { .len = sizeof(peer.in6) };
	uint64_t place = 0;

	if (getpeername(fd, &peer.sa, &peer.len) < 0)
		return 0;
	if (peer.sa.sa_family == AF_INET)
		return ntohl(peer.in.sin_addr.s_addr);
	if (peer.sa.sa_family != AF_INET6)
		return 0;
	if (IN6_IS_ADDR_V4MAPPED(&peer.in6.sin6_addr)) {
		memcpy((char *)&place + 4, peer.in6.sin6_addr.s6_addr + 12, 4);
		return be64toh(place);
	}
	memcpy(&place, peer.in6.sin6_addr.s6_addr, sizeof(place));
	return be64toh(place);
}

static gnutls_session_t session_of(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);

	return info ? info->tls_session : NULL;
}

bool gate_is_current(const struct http *http, const struct conn *conn)
{
	return !conn->access || conn->access == http->access ||
	       (conn->access->client_auth == CLIENT_AUTH_NONE &&
		http->access->client_auth == CLIENT_AUTH_NONE);
}

/* The answer to a name and a password; who it is stands in request->who already. */
static enum gate_result check_password(struct http *http, struct MHD_Connection *connection,
				       struct conn *conn, const struct authorization *a,
				       const struct refusal **ret_refusal)
{
	/* There was no memory for it. */
	if (!http->verify) {
		*ret_refusal = &too_many;
		return GATE_CLOSED;
	}
	switch (verify_ask(http->verify, http->access, a->user, a->secret, client_place(conn->fd),
			   connection)) {
	case VERIFY_RIGHT:
		return GATE_OPEN;
	case VERIFY_WAIT:
		return GATE_WAIT;
	case VERIFY_BUSY:
		*ret_refusal = &too_many;
		return GATE_CLOSED;
	case VERIFY_WRONG:
		break;
	}
	*ret_refusal = &unknown_user;
	return GATE_CLOSED;
}

static enum gate_result check_authorization(struct http *http, struct MHD_Connection *connection,
					    struct conn *conn, struct authorization *a,
					    struct http_request *request, const struct refusal **ret_refusal)
{
	const char *owner;

	if (a->scheme == AUTHORIZATION_BASIC) {
		if (strlen(a->user) >= sizeof(request->who))
			return GATE_CLOSED;
		strcpy(request->who, a->user);
		return check_password(http, connection, conn, a, ret_refusal);
	}
	owner = access_token_owner(http->access, a->secret);
	if (!owner || strlen(owner) >= sizeof(request->who))
		return GATE_CLOSED;
	strcpy(request->who, owner);
	return GATE_OPEN;
}

static enum gate_result authenticate(struct http *http, struct MHD_Connection *connection, struct conn *conn,
				     struct http_request *request, const struct refusal **ret_refusal)
{
	const struct access *access = http->access;
	const char *header =
		MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION);
	struct authorization a;
	enum gate_result result = GATE_CLOSED;

	*ret_refusal = access->users ? &unknown_user : &unknown_token;
	if (!access->users && !access->tokens)
		return tls_client_name(session_of(connection), access, request->who, sizeof(request->who)) ==
				       0 ?
			       GATE_OPEN :
			       GATE_CLOSED;
	if (header && authorization_parse(header, &a) == 0) {
		result = check_authorization(http, connection, conn, &a, request, ret_refusal);
		explicit_bzero(&a, sizeof(a));
	}
	return result;
}

static bool asks_too_often(struct http *http, struct conn *conn)
{
	const struct access *access = http->access;

	/* Once for a request, though it be asked again when its password has been verified. */
	if (!access || !access->interval_ns || !http->limit || conn->counted)
		return false;
	conn->counted = true;
	return !limit_take(http->limit, client_place(conn->fd), clock_mono_ns(), access->interval_ns,
			   access->burst);
}

/*
 * Behind a proxy the Host is often the agent's, and the page's own scripts have another Origin. The browser,
 * whose word scripts cannot change, says that they are of one site. Who may be the Host is checked anyway.
 */
static bool is_foreign(const struct http *http, struct MHD_Connection *connection, enum access_right right)
{
	const char *origin = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ORIGIN);
	const char *site = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Sec-Fetch-Site");

	if (site && STRV_EQ(site, "same-origin"))
		return false;
	/* A website that may read (web.origins) may not act in a user's name; nor may forms. */
	if (right == ACCESS_CONTROL && site && !STRV_EQ(site, "none"))
		return true;
	if (!origin || (right != ACCESS_CONTROL && access_allows_origin(http->access, origin)))
		return false;
	return !origin_is_own(origin,
			      MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST));
}

static const struct refusal *refusal_of(const struct http *http, enum access_right right)
{
	if (right == ACCESS_LOCAL || (right == ACCESS_CONTROL && !access_asks(http->access)))
		return &local_only;
	return right == ACCESS_CONTROL && !access_has_tls(http->access) ? &tls_only : &not_permitted;
}

/* Where nobody is asked who it is. Where nothing at all is said, everybody may. */
static bool anybody_may(const struct access *access, enum access_right right)
{
	if (right == ACCESS_CONTROL || right == ACCESS_LOCAL)
		return false;
	return !access || access->n == 0 || access_may(access, right, "");
}

enum gate_result gate_pass(struct http *http, struct MHD_Connection *connection, struct conn *conn,
			   enum access_right right, struct http_request *request,
			   const struct refusal **ret_refusal)
{
	enum gate_result result;

	if (conn->origin == CONN_LOCAL || right == ACCESS_PROBES)
		return GATE_OPEN;
	if (asks_too_often(http, conn) || is_foreign(http, connection, right)) {
		*ret_refusal = is_foreign(http, connection, right) ? &foreign_origin : &too_often;
		return GATE_CLOSED;
	}
	if (!access_asks(http->access)) {
		*ret_refusal = refusal_of(http, right);
		return anybody_may(http->access, right) ? GATE_OPEN : GATE_CLOSED;
	}
	result = authenticate(http, connection, conn, request, ret_refusal);
	if (result != GATE_OPEN)
		return result;
	if (access_may(http->access, right, request->who) &&
	    (right != ACCESS_CONTROL || access_allows_control(http->access)))
		return GATE_OPEN;
	*ret_refusal = refusal_of(http, right);
	return GATE_CLOSED;
}
