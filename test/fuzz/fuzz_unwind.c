// SPDX-License-Identifier: Apache-2.0
/*
 * Any bytes as .eh_frame, of x86-64 or arm64 by the first bit: rows rise, lie in their function, and say what
 * the kernel side knows. And as a perf map.
 */
#include "fuzz.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>

#include "base/text.h"
#include "unwind/eh_frame.h"
#include "unwind/perf_map.h"

struct told {
	const struct eh_function *function;
	uint64_t pc;
	unsigned rows;
};

static int on_row(uint64_t pc, const struct unwind_rule *rule, void *userdata)
{
	struct told *told = userdata;

	if (pc < told->pc || pc < told->function->start || pc > told->function->end ||
	    rule->kind > UNWIND_SIGNAL || rule->fp_saved > UNWIND_AT_FP || rule->ra_saved > UNWIND_AT_FP)
		abort();
	told->pc = pc;
	told->rows++;
	return 0;
}

static int on_line(uint64_t address, uint64_t size, const char *name, void *userdata)
{
	(void)userdata;
	if (size == 0 || address + size < address || !text_is_printable(name))
		abort();
	return 0;
}

int fuzz_one(const uint8_t *data, size_t size)
{
	struct eh_frame frame = { .address = 0x10000 };
	uint32_t at = 0, before = 0;
	size_t whole;
	int r;

	if (size < 1)
		return 0;
	perf_map_parse((const char *)data, size, on_line, NULL, &whole);
	frame.machine = data[0] & 1 ? EM_AARCH64 : EM_X86_64;
	frame.data = data + 1;
	frame.n = size - 1;
	for (;;) {
		struct eh_function function;
		struct told told = { &function, 0, 0 };

		r = eh_frame_next(&frame, &at, &function);
		if (r == -ENODATA)
			return 0;
		if (at <= before || at > frame.n || (r == 1 && function.start >= function.end))
			abort();
		before = at;
		if (r == 1 && eh_rows(&frame, &function, on_row, &told) != 0)
			abort();
	}
}
