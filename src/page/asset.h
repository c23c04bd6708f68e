// SPDX-License-Identifier: Apache-2.0
/*
 * src/page is the web page at / of the agent: HTML, a style sheet and ES modules, which are compressed into
 * gpusonde-web when it is built. What the page shows it reads from /api/v1 like any other client; nothing of
 * it is loaded from elsewhere, and nothing is made by a tool first, so that a browser shows these very files.
 *
 *   index.html  what is there before the scripts
 *   app.js      starts: header, tabs, the address's hash
 *   data.js     the documents of /api/v1, kept current
 *   dom.js, table.js, chart.js, format.js   what views are made with
 *   views/      a file for each tab; views.js is their table
 */
#pragma once

#include <stddef.h>

#include "base/strbuf.h"

struct asset {
	const char *path; /* "/page/app.js" */
	const char *content_type;
	const char *tag; /* quoted, for ETag: changes with the content */
	size_t plain_bytes;
	size_t bytes;
	const char *data; /* gzip */
};

#define ASSET_INDEX "/page/index.html"

/* Ends with a path of NULL. */
extern const struct asset assets[];

/* NULL: there is no such file. */
const struct asset *asset_find(const char *path);

/* Appends the file, decompressed. -EIO, -ENOMEM. */
int asset_unpack(const struct asset *asset, struct strbuf *out);
