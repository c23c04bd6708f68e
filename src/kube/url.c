// SPDX-License-Identifier: Apache-2.0
#include "kube/url.h"

#include <string.h>

#include "base/macro.h"

static bool is_plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("-_~.", c));
}

void url_add(struct strbuf *url, const char *text)
{
	for (; *text; text++)
		if (is_plain(*text))
			strbuf_addc(url, *text);
		else
			strbuf_addf(url, "%%%02X", (unsigned char)*text);
}

bool url_is_segment(const char *name)
{
	return *name && !STRV_EQ(name, ".") && !STRV_EQ(name, "..");
}
