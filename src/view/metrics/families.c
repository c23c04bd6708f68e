// SPDX-License-Identifier: Apache-2.0
#include "view/metrics/families.h"

#include <stdint.h>
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

/* ---- protobuf ---- */

static const char *read_varint(const char *at, const char *end, uint64_t *ret_value)
{
	uint64_t value = 0;

	for (unsigned shift = 0; at < end && shift < 64; shift += 7) {
		uint8_t byte = (uint8_t)*at++;

		value |= (uint64_t)(byte & 127) << shift;
		if (byte < 128) {
			*ret_value = value;
			return at;
		}
	}
	return NULL;
}

/* The name is the first field of a family of ours. */
void families_of_protobuf(const struct strbuf *page, const char *list, struct strbuf *out)
{
	const char *begin = page->data, *end = page->data + page->len;

	while (begin && begin < end) {
		uint64_t n = 0, name_n = 0;
		const char *at = read_varint(begin, end, &n), *name;
		char text[NAME_MAX_BYTES];

		if (!at || n > (uint64_t)(end - at) || n < 2)
			return;
		name = read_varint(at + 1, at + n, &name_n);
		if (!name || name_n >= sizeof(text) || name_n > (uint64_t)(at + n - name))
			return;
		memcpy(text, name, name_n);
		text[name_n] = '\0';
		if (glob_list_has(list, text))
			strbuf_add(out, begin, (size_t)(at + n - begin));
		begin = at + n;
	}
}
