// SPDX-License-Identifier: Apache-2.0
#include "view/families.h"

#include <stdio.h>
#include <string.h>

#include "base/glob.h"
#include "base/macro.h"

enum { NAME_MAX_BYTES = 256 };
#define HELP "# HELP "
#define END_MARK "# EOF"

static bool begins_with(const char *line, const char *end, const char *text)
{
	size_t n = strlen(text);

	return (size_t)(end - line) >= n && memcmp(line, text, n) == 0;
}

static const char *line_end(const char *line, const char *end)
{
	const char *newline = memchr(line, '\n', (size_t)(end - line));

	return newline ? newline + 1 : end;
}

static void copy_name(const char *from, const char *end, char ret_name[static NAME_MAX_BYTES])
{
	size_t n = 0;

	while (from + n < end && n < NAME_MAX_BYTES - 1 && !strchr(" {\n", from[n]))
		n++;
	memcpy(ret_name, from, n);
	ret_name[n] = '\0';
}

/* OpenMetrics' comments have the name without _total and _info, which samples have. */
static void family_name(const char *block, const char *end, char ret_name[static NAME_MAX_BYTES])
{
	char sample[NAME_MAX_BYTES];
	const char *line = block;
	size_t n;

	copy_name(block + strlen(HELP), end, ret_name);
	while (line < end && *line == '#')
		line = line_end(line, end);
	copy_name(line, end, sample);
	n = strlen(ret_name);
	if (strncmp(sample, ret_name, n) == 0 &&
	    (STRV_EQ(sample + n, "_total") || STRV_EQ(sample + n, "_info")))
		memcpy(ret_name, sample, strlen(sample) + 1);
}

/* The end of the family that begins at @block: the next one, or the end mark. */
static const char *block_end(const char *block, const char *end)
{
	const char *line = line_end(block, end);

	while (line < end && !begins_with(line, end, HELP) && !begins_with(line, end, END_MARK))
		line = line_end(line, end);
	return line;
}

void families_of_page(const struct strbuf *page, const char *list, struct strbuf *out)
{
	const char *block = page->data, *end = page->data + page->len, *next;

	for (; block < end; block = next) {
		char name[NAME_MAX_BYTES];

		next = block_end(block, end);
		if (begins_with(block, next, HELP)) {
			family_name(block, next, name);
			if (!glob_list_has(list, name))
				continue;
		}
		strbuf_add(out, block, (size_t)(next - block));
	}
}
