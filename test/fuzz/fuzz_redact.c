// SPDX-License-Identifier: Apache-2.0
/* Any bytes as a text and as labels of a support archive: a secret is in neither, and labels stay lines. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "cmd/doctor/redact.h"

#define SECRET "swordfish"

static unsigned lines_of(const char *text)
{
	unsigned n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

int fuzz_one(const uint8_t *data, size_t size)
{
	_cleanup_(redactor_freep) struct redactor *redactor = NULL;
	_cleanup_free_ char *text = strndup((const char *)data, size);
	unsigned redacted[REDACT_KINDS] = { 0 };
	struct strbuf out;

	if (!text || redactor_new(false, &redactor) < 0)
		return 0;
	strbuf_init(&out, 0);
	redactor_secrets(redactor, SECRET);
	redactor_learn_labels(redactor, text);
	redact_text(redactor, text, &out, redacted);
	if (strstr(out.data, SECRET))
		abort();
	strbuf_reset(&out);
	redact_labels(redactor, text, &out, redacted);
	if (lines_of(out.data) != lines_of(text))
		abort();
	strbuf_done(&out);
	return 0;
}
