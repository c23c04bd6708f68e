// SPDX-License-Identifier: Apache-2.0
/*
 * Prometheus' web configuration file, and the Authorization header: whatever they hold, what comes out has no
 * line end that would begin another header, and no name or secret that does not fit.
 */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "config/web_config.h"
#include "serve/access.h"
#include "serve/authorization.h"

static void check_access(const struct access *access)
{
	for (unsigned i = 0; i < access->n; i++) {
		const struct access_record *record = &access->records[i];

		if (record->kind == ACCESS_HEADER && strpbrk(record->text, "\r\n"))
			abort();
		if (record->kind == ACCESS_USER &&
		    (strlen(record->name) >= ACCESS_NAME_MAX || record->text_n != 60))
			abort();
	}
	if (access->interval_ns && !access->burst)
		abort();
}

static void check_config(const uint8_t *data, size_t size)
{
	struct strbuf records, errors;
	struct access *access;

	strbuf_init(&records, ACCESS_BYTES_MAX);
	strbuf_init(&errors, 1 << 20);
	if (web_config_parse("fuzz", data, size, &records, &errors) < 0)
		abort();
	if (errors.len == 0 && !records.failed && access_new(records.data, records.len, &access, NULL) == 0) {
		check_access(access);
		access_unref(access);
	}
	strbuf_done(&records);
	strbuf_done(&errors);
}

static void check_header(const uint8_t *data, size_t size)
{
	char header[1024] = "";
	struct authorization a;

	memcpy(header, data, MIN(size, sizeof(header) - 1));
	if (authorization_parse(header, &a) == 0 &&
	    (!memchr(a.secret, '\0', sizeof(a.secret)) ||
	     (a.scheme == AUTHORIZATION_BASIC && !memchr(a.user, '\0', sizeof(a.user)))))
		abort();
}

int fuzz_one(const uint8_t *data, size_t size)
{
	check_config(data, size);
	check_header(data, size);
	return 0;
}
