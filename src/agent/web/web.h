// SPDX-License-Identifier: Apache-2.0
/*
 * The process that listens (src/web), as the agent's main loop owns it: starts it, opens the addresses and
 * hands them over, asks every WEB_PING_NS whether it is alive, and replaces it when it has ended, hangs or
 * does nothing but compute.
 *
 * Invariants
 *  1. The agent has no listening TCP socket but while it hands it over, so that its end or hanging frees
 *     the addresses.
 *  2. Nothing here waits for the process but a change of addresses, for at most WEB_UNLISTEN_MS.
 */
#pragma once

#include "agent/web/pages.h"
#include "config/options.h"
#include "model/model.h"
#include "serve/http.h"

/*
 * It is replaced when it has not answered for so many intervals of pings, or for one in which it used most
 * of a core.
 */
enum { WEB_HUNG_PINGS = 3 };
enum { WEB_UNLISTEN_MS = 1000 };

struct web_config {
	const char *program; /* NULL: gpusonde-web, where it was built or is installed */
	const char *socket; /* NULL, or where systemd starts it; copied */
	unsigned max_connections;
	const char *hosts; /* copied; NULL: "" */
	struct web_pages *pages; /* NULL in tests of programs that ask for none */
	bool open; /* addresses beyond loopback may be served to everybody */
	int64_t ping_ns; /* 0: WEB_PING_NS */
	const char *flag; /* that names the address, for remedies; NULL: the agent's; static */
};

struct web;

int web_new(sd_event *event, const struct web_config *config, struct web **ret_web);
/* The process ends, and frees the addresses. */
void web_free(struct web *web);

/*
 * Who may ask for what, from now on: records of serve/access.h, copied; none: everybody, in plain HTTP. Where
 * TLS comes or goes, addresses are opened anew. -EPERM: less would be asked of clients than before, and must
 * not be (@may_ask_less). -EACCES, which has been logged: an address beyond loopback would be open to
 * everybody. After these two nothing has changed.
 */
int web_set_access(struct web *web, const struct strbuf *records, bool may_ask_less);
/* access_describe() of it. */
void web_describe_access(const struct web *web, char *ret_text, size_t size);
/* struct web_config's, from the next web_listen() on. */
void web_set_open(struct web *web, bool open);

/* Addresses of HTTP. On that of the exporter, pages have the DCGM exporter's names (web/routes.def). */
enum web_address { WEB_ADDRESS_HTTP, WEB_ADDRESS_CONTAINER, WEB_ADDRESS_EXPORTER, WEB_ADDRESSES };

/*
 * Serves HTTP on these addresses, NULL for none, in place of the former ones. On failure, which has been
 * logged, these are closed. -EACCES: one is beyond loopback, and nobody would be asked who it is.
 */
int web_listen(struct web *web, const char *const addresses[WEB_ADDRESSES]);
/* The same for atop's addresses, either of which may be NULL. What cannot be opened is logged. */
void web_listen_atop(struct web *web, const char *address, const char *name);
/* Tries again what could not be opened for a replaced process. */
void web_listen_again(struct web *web);

/* Any thread may read the snapshot; the process is told of it without waking it. */
void web_publish(struct web *web, const struct snapshot *snapshot);
/* The first ones: since the last call. */
struct web_figures {
	double requests, evicted, replaced, streams_dropped, refused[HTTP_REFUSALS];
	unsigned connections, streams, atop_clients;
};

void web_take_figures(struct web *web, struct web_figures *ret_figures);
/* 0: none runs. */
pid_t web_pid(const struct web *web);
