// SPDX-License-Identifier: Apache-2.0
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "python/layout.h"
#include "python/lines.h"
#include "python/text.h"

static void check_text(const uint8_t *data, size_t size, unsigned width)
{
	struct strbuf out;

	strbuf_init(&out, 0);
	python_text(data, size, width, &out);
	if (!out.failed && !utf8_valid(out.data, out.len))
		abort();
	strbuf_done(&out);
}

static void check_offsets(const uint8_t *data, size_t size)
{
	struct trace_python python;
	uint32_t version;

	if (python_debug_offsets(data, size, &version, &python) < 0)
		return;
	/* What the kernel side reads at once, and the members of 8 bytes in it. */
	if (python.frame_n > TRACE_PYTHON_FRAME || python.code_n > TRACE_PYTHON_CODE ||
	    python.frame_back + 8 > python.frame_n || python.frame_code + 8 > python.frame_n ||
	    python.frame_at + 8 > python.frame_n || python.frame_owner >= python.frame_n ||
	    python.code_name + 8 > python.code_n || python.code_file + 8 > python.code_n ||
	    python.code_lines + 8 > python.code_n || python.code_first_line + 4 > python.code_n)
		abort();
}

/*
 * The input as debug offsets, as a str, and as each kind of table of lines: the first four bytes are the
 * offset.
 */
int fuzz_one(const uint8_t *data, size_t size)
{
	uint32_t offset = 0;

	check_offsets(data, size);
	for (unsigned width = 0; width < 5; width++)
		check_text(data, size, width);
	if (size < sizeof(offset))
		return 0;
	memcpy(&offset, data, sizeof(offset));
	for (unsigned kind = 0; kind <= TRACE_LINES_LOCATIONS; kind++)
		if (python_line((enum trace_lines)kind, data + sizeof(offset), size - sizeof(offset), 1,
				offset) > INT32_MAX)
			abort();
	return 0;
}
