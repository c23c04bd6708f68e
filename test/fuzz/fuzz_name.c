// SPDX-License-Identifier: Apache-2.0
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cubin/name.h"

enum { NAME_BYTES = 64 << 10 };

static void check_text(const char *text, size_t size)
{
	size_t n = strnlen(text, size);

	if (n >= size || !utf8_valid(text, n))
		abort();
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
			abort();
}

/*
 * Names are text, the same each time, and a smaller buffer has the beginning of them; brief ones are no
 * longer than what they are made of.
 */
int fuzz_one(const uint8_t *data, size_t size)
{
	char *symbol = malloc(size + 1), *name = malloc(NAME_BYTES), *again = malloc(NAME_BYTES);
	char cut[24];
	bool done;

	if (!symbol || !name || !again)
		abort();
	memcpy(symbol, data, size);
	symbol[size] = '\0';
	done = kernel_name_demangle(symbol, name, NAME_BYTES);
	check_text(name, NAME_BYTES);
	if (kernel_name_demangle(symbol, again, NAME_BYTES) != done || strcmp(name, again) != 0)
		abort();
	/* What is not demangled is the symbol, or the end of it: of a static kernel the file is left out. */
	if (!done && strlen(symbol) < NAME_BYTES && strlen(name) > strlen(symbol))
		abort();
	kernel_name_demangle(symbol, cut, sizeof(cut));
	check_text(cut, sizeof(cut));
	kernel_name_brief(name, again, NAME_BYTES);
	check_text(again, NAME_BYTES);
	if (strlen(again) > strlen(name) + 5 * (strlen(name) / 2 + 1))
		abort();
	kernel_name_brief(name, cut, sizeof(cut));
	check_text(cut, sizeof(cut));
	/* As it comes: not only what the demangler writes. */
	kernel_name_brief(symbol, again, NAME_BYTES);
	if (!utf8_valid(again, strlen(again)))
		abort();
	free(symbol);
	free(name);
	free(again);
	return 0;
}
