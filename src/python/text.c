// SPDX-License-Identifier: Apache-2.0
#include "python/text.h"

#include <stdbool.h>
#include <string.h>

static bool is_printable(uint32_t c)
{
	return c >= 0x20 && !(c >= 0x7f && c < 0xa0) && !(c >= 0xd800 && c < 0xe000) && c != 0x2028 &&
	       c != 0x2029 && c < 0x110000;
}

static void add_character(uint32_t c, struct strbuf *out)
{
	if (!is_printable(c))
		c = '?';
	if (c < 0x80) {
		strbuf_addc(out, (char)c);
	} else if (c < 0x800) {
		strbuf_addc(out, (char)(0xc0 | c >> 6));
		strbuf_addc(out, (char)(0x80 | (c & 0x3f)));
	} else if (c < 0x10000) {
		strbuf_addc(out, (char)(0xe0 | c >> 12));
		strbuf_addc(out, (char)(0x80 | (c >> 6 & 0x3f)));
		strbuf_addc(out, (char)(0x80 | (c & 0x3f)));
	} else {
		strbuf_addc(out, (char)(0xf0 | c >> 18));
		strbuf_addc(out, (char)(0x80 | (c >> 12 & 0x3f)));
		strbuf_addc(out, (char)(0x80 | (c >> 6 & 0x3f)));
		strbuf_addc(out, (char)(0x80 | (c & 0x3f)));
	}
}

void python_text(const uint8_t *data, size_t n, unsigned width, struct strbuf *out)
{
	if (width != 1 && width != 2 && width != 4)
		return;
	for (size_t i = 0; i + width <= n; i += width) {
		uint16_t two = 0;
		uint32_t c = data[i];

		if (width == 2) {
			memcpy(&two, data + i, sizeof(two));
			c = two;
		} else if (width == 4) {
			memcpy(&c, data + i, sizeof(c));
		}
		add_character(c, out);
	}
}
