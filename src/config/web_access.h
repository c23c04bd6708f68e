// SPDX-License-Identifier: Apache-2.0
/*
 * Who may ask the process that listens for what: Prometheus' web configuration (web.config_file), a folder of
 * tokens (web.tokens), and the options that say whom pages are for. The result are the records of
 * serve/access.h, which have been tried.
 */
#pragma once

#include "base/strbuf.h"
#include "config/options.h"

/* The options that it is made of. */
enum { WEB_ACCESS_OPTIONS = 6 };
extern const enum option_id web_access_options[WEB_ACCESS_OPTIONS];

/*
 * @texts: of these options, NULL or "" for none. Appends records to @records, none where nobody is asked for
 * anything; what is wrong, as lines with location, cause and remedy, to @errors. -ENOMEM. It waits for files.
 */
int web_access_read(const char *const texts[WEB_ACCESS_OPTIONS], struct strbuf *records,
		    struct strbuf *errors);
/* The same with the texts of @options. */
int web_access_of(const struct options *options, struct strbuf *records, struct strbuf *errors);

/* Whether any of it is in files, which may change. */
bool web_access_has_files(char *const texts[WEB_ACCESS_OPTIONS]);

/* Whether an address would be open to everybody who can reach it, which web.open alone allows. */
bool web_is_exposed(const char *address, bool asks);
