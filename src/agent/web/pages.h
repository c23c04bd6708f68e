// SPDX-License-Identifier: Apache-2.0
/*
 * Answers the process that listens (src/web): a thread renders the pages that it asks for.
 *
 * Invariants
 *  1. A question is a page's number and numbers (web/protocol.h), which handlers check. Pages for the UNIX
 *     socket only are refused; so are those that have the agent do something, unless somebody may over the
 *     network, and then they are few. No text of a client gets here but who it is.
 *  2. However much is asked, the thread takes at most WEB_PAGES_SHARE of a core, and memory for one page of
 *     each socket: who does not read an answer gets no further one, and long ones lie in the same memory.
 */
#pragma once

#include "serve/atop_server.h"
#include "serve/http.h"

struct web_pages;

/* Of each second, in nanoseconds. A snapshot of the largest machine takes a tenth of it. */
#define WEB_PAGES_SHARE (600 * NSEC_PER_MSEC)

struct web_pages_config {
	const struct http_route *routes; /* as many as enum web_page has */
	void *userdata; /* of their handlers */
	const struct atop_source *atop; /* NULL: atop is not served */
	void *atop_userdata;
};

/* What @config points to must remain valid, and is used by the thread alone. */
int web_pages_new(const struct web_pages_config *config, struct web_pages **ret_pages);
void web_pages_free(struct web_pages *pages);

/* Whether the process may have the agent do something (access_allows_control()); at first it may not. */
void web_pages_allow_control(struct web_pages *pages, bool allowed);

/*
 * Answers on two new sockets in place of the former ones, for pages and for atop; the other ends belong to
 * the caller.
 */
int web_pages_connect(struct web_pages *pages, int *ret_page_channel, int *ret_atop_channel);
