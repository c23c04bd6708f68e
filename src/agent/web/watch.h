// SPDX-License-Identifier: Apache-2.0
/*
 * Who may ask the process that listens (config/web_access.h), read at the start, at a reload, and again
 * when the files say something else: a certificate is renewed while the agent runs.
 *
 * Files may lie where reading hangs, so a thread that lives for one look reads them; there is no second one
 * while it does. The start and a reload wait for them, as for the configuration.
 */
#pragma once

#include "agent/web/web.h"
#include "config/options.h"

struct web_watch;

/* -EINVAL: what is wrong has been logged, and nothing may be served. */
int web_watch_new(struct web *web, const struct options *options, struct web_watch **ret_watch);
void web_watch_free(struct web_watch *watch);
/* A reload: as web_watch_new(); after an error nothing has changed. */
int web_watch_configure(struct web_watch *watch, const struct options *options);
/*
 * Once a second or so: looks every WEB_WATCH_NS, and takes what a look has found, but nothing by which less
 * is asked of clients than before: a file may be being written. A reload takes that, too.
 */
void web_watch_tick(struct web_watch *watch);

#define WEB_WATCH_NS (5 * NSEC_PER_SEC)
