// SPDX-License-Identifier: Apache-2.0
#include "python/loop.h"

#include <capstone/capstone.h>
#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"

enum { LOOP_MAX = 1 << 20 /* bytes that are looked at; they are 60 to 120 KiB */, STUBS = 3 };

struct search {
	struct elf_file *elf;
	uint64_t start, end; /* of the loop */
	struct {
		uint64_t start, size;
	} stubs[STUBS];
	uint64_t part, part_n; /* what was found; 0: nothing yet */
};

/* Of a procedure linkage table the unwind tables have one entry for all stubs: jumps lead into its middle. */
static void find_stubs(struct search *s)
{
	static const char *const sections[STUBS] = { ".plt", ".plt.sec", ".plt.got" };
	uint64_t offset, size;

	for (int i = 0; i < STUBS; i++)
		if (elf_section(s->elf, sections[i], &offset, &size) == 0 &&
		    elf_address(s->elf, offset, &s->stubs[i].start) == 0)
			s->stubs[i].size = size;
}

static void take_jump(struct search *s, uint64_t to)
{
	uint64_t start, end;

	if (s->part_n || (to >= s->start && to < s->end))
		return;
	for (int i = 0; i < STUBS; i++)
		if (to - s->stubs[i].start < s->stubs[i].size)
			return;
	/* A function is entered where it begins, by a call at a function's end. */
	if (elf_part(s->elf, to, &start, &end) < 0 || to == start || (s->start >= start && s->start < end))
		return;
	s->part = start;
	s->part_n = end - start;
}

static void search_x86(struct search *s, const uint8_t *code, size_t n)
{
	uint64_t at = s->start;
	cs_insn *insn;
	csh handle;

	if (cs_open(CS_ARCH_X86, CS_MODE_64, &handle) != CS_ERR_OK)
		return;
	insn = cs_malloc(handle);
	while (insn && !s->part_n && cs_disasm_iter(handle, &code, &n, &at, insn)) {
		const uint8_t *bytes = insn->bytes;
		bool jump = insn->size == 5 && bytes[0] == 0xe9;
		bool condition = insn->size == 6 && bytes[0] == 0x0f && (bytes[1] & 0xf0) == 0x80;
		int32_t by;

		if (!jump && !condition)
			continue;
		memcpy(&by, bytes + insn->size - sizeof(by), sizeof(by));
		take_jump(s, at + (uint64_t)(int64_t)by);
	}
	if (insn)
		cs_free(insn, 1);
	cs_close(&handle);
}

/* The signed number of @bits bits from bit @low on, in instructions. */
static uint64_t words(uint32_t insn, unsigned low, unsigned bits)
{
	return (uint64_t)((int64_t)((uint64_t)insn << (64 - low - bits)) >> (64 - bits)) * 4;
}

static void search_arm64(struct search *s, const uint8_t *code, size_t n)
{
	for (size_t i = 0; i + 4 <= n && !s->part_n; i += 4) {
		uint32_t insn;

		memcpy(&insn, code + i, sizeof(insn));
		if ((insn & 0xfc000000) == 0x14000000) /* b */
			take_jump(s, s->start + i + words(insn, 0, 26));
		else if ((insn & 0xff000000) == 0x54000000 /* b.cond */ ||
			 (insn & 0x7e000000) == 0x34000000 /* cbz, cbnz */)
			take_jump(s, s->start + i + words(insn, 5, 19));
		else if ((insn & 0x7e000000) == 0x36000000) /* tbz, tbnz */
			take_jump(s, s->start + i + words(insn, 5, 14));
	}
}

int python_loop_part(struct elf_file *elf, uint64_t loop, uint64_t loop_n, uint64_t *ret_part,
		     uint64_t *ret_n)
{
	size_t n = (size_t)MIN(loop_n, (uint64_t)LOOP_MAX);
	struct search s = { .elf = elf, .start = loop, .end = loop + n };
	_cleanup_free_ uint8_t *code = malloc(n);
	int r;

	if (!code)
		return -ENOMEM;
	r = elf_data(elf, loop, code, n, &n);
	if (r < 0)
		return r;
	find_stubs(&s);
	if (elf_machine(elf) == EM_X86_64)
		search_x86(&s, code, n);
	else if (elf_machine(elf) == EM_AARCH64)
		search_arm64(&s, code, n);
	if (!s.part_n)
		return -ENOENT;
	*ret_part = s.part;
	*ret_n = s.part_n;
	return 0;
}
