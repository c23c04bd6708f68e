// SPDX-License-Identifier: Apache-2.0
/*
 * Prometheus' web configuration file: TLS, users, headers. Errors are lines with location, cause and remedy;
 * no secret is quoted.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/strbuf.h"

/*
 * Appends records (serve/access.h) for what the file @name says, @n bytes of @text, and reads the files that
 * it names, below its own folder if their paths are relative. What is wrong is appended to @errors. -ENOMEM.
 */
int web_config_parse(const char *name, const void *text, size_t n, struct strbuf *records,
		     struct strbuf *errors);
/* The file of the server's key, if the file @name can be read and names one. */
bool web_config_key_file(const char *name, char ret_path[static PATH_MAX]);
