// SPDX-License-Identifier: Apache-2.0
#include "cmd/flag_words.h"

#include <ctype.h>
#include <string.h>

void flag_words(const char *placeholder, struct strbuf *ret_words)
{
	strbuf_reset(ret_words);
	if (!strchr(placeholder, '|'))
		return;
	for (const char *p = placeholder; *p; p++) {
		if (!islower((unsigned char)*p) && !isdigit((unsigned char)*p) && !strchr("|_-", *p)) {
			strbuf_reset(ret_words);
			return;
		}
		strbuf_addc(ret_words, *p == '|' ? ' ' : *p);
	}
}
