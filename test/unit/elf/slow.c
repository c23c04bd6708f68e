// SPDX-License-Identifier: Apache-2.0
#include "elf/slow.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

enum {
	FUNCTION = 16 << 10, /* as much as is searched of one */
	LONGEST = 4095, /* of a name */
	PUSH = 0x53,
};

static const char probed[] = "cuMemAlloc_v2";

struct layout {
	size_t code_at, symbols_at, names_at, sections_at, size;
};

/* In this order, from low to high; names begin with an empty one. */
static struct layout layout_of(size_t code, unsigned symbols, size_t names)
{
	struct layout layout = { .code_at = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr) };

	layout.symbols_at = (layout.code_at + code + 7) & ~(size_t)7;
	layout.names_at = layout.symbols_at + (symbols + 1) * sizeof(Elf64_Sym);
	layout.sections_at = (layout.names_at + names + 7) & ~(size_t)7;
	layout.size = layout.sections_at + 4 * sizeof(Elf64_Shdr);
	return layout;
}

static void put_headers(uint8_t *file, const struct layout *l, size_t code)
{
	const Elf64_Ehdr header = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(Elf64_Ehdr),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 1,
		.e_shoff = l->sections_at,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = 4,
	};
	const Elf64_Phdr segment = {
		.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = l->size, .p_memsz = l->size
	};
	const Elf64_Shdr sections[] = {
		{ .sh_type = SHT_NULL },
		{ .sh_type = SHT_PROGBITS,
		  .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
		  .sh_addr = l->code_at,
		  .sh_offset = l->code_at,
		  .sh_size = code },
		{ .sh_type = SHT_DYNSYM,
		  .sh_offset = l->symbols_at,
		  .sh_size = l->names_at - l->symbols_at,
		  .sh_link = 3,
		  .sh_entsize = sizeof(Elf64_Sym) },
		{ .sh_type = SHT_STRTAB, .sh_offset = l->names_at, .sh_size = l->sections_at - l->names_at },
	};

	memcpy(file, &header, sizeof(header));
	memcpy(file + header.e_phoff, &segment, sizeof(segment));
	memcpy(file + l->sections_at, sections, sizeof(sections));
}

static void put_symbol(uint8_t *file, const struct layout *l, unsigned i, size_t name, size_t address,
		       size_t size)
{
	const Elf64_Sym symbol = { .st_name = (uint32_t)name,
				   .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
				   .st_shndx = 1,
				   .st_value = address,
				   .st_size = size };

	memcpy(file + l->symbols_at + (i + 1) * sizeof(symbol), &symbol, sizeof(symbol));
}

/* From @at on: movabs instructions whose constants look like jumps to @first. The rest returns. */
static void put_jumps(uint8_t *code, size_t first, size_t at, size_t end)
{
	for (; at + 10 <= end; at += 10) {
		int32_t back = (int32_t)first - (int32_t)(at + 7);

		memcpy(code + at, "\x48\xb8\xe9....\x90\x90\x90", 10);
		memcpy(code + at + 3, &back, sizeof(back));
	}
	memset(code + at, 0xc3, end - at);
}

static void put_functions(uint8_t *file, const struct layout *l, enum slow_kind kind, unsigned n)
{
	uint8_t *code = file + l->code_at;

	if (kind == SLOW_OVERLAPS) {
		memset(code, PUSH, n);
		put_jumps(code, 0, n, n + FUNCTION);
	}
	for (unsigned i = 0; i < n; i++) {
		size_t at = kind == SLOW_JUMPS ? (size_t)i * FUNCTION : kind == SLOW_OVERLAPS ? i : 0;

		if (kind == SLOW_JUMPS) {
			code[at] = PUSH;
			put_jumps(code + at, 0, 1, FUNCTION);
		}
		put_symbol(file, l, i, 1, l->code_at + at, kind == SLOW_NAMES ? 1 : FUNCTION);
	}
	memcpy(file + l->names_at + 1, probed, sizeof(probed));
	if (kind != SLOW_NAMES)
		return;
	code[0] = PUSH;
	memset(file + l->names_at + 1, 'c', LONGEST);
	memcpy(file + l->names_at + 1 + LONGEST + 1, probed, sizeof(probed));
	put_symbol(file, l, n - 1, 1 + LONGEST + 1, l->code_at, 1);
}

static uint8_t *make_function(size_t *ret_size)
{
	uint8_t *code = calloc(1, 1 + FUNCTION);

	if (!code)
		abort();
	code[1] = PUSH;
	put_jumps(code + 1, 0, 1, FUNCTION);
	*ret_size = 1 + FUNCTION;
	return code;
}

uint8_t *slow_make(enum slow_kind kind, unsigned n, size_t *ret_size)
{
	size_t code = kind == SLOW_JUMPS ? (size_t)n * FUNCTION : kind == SLOW_OVERLAPS ? n + FUNCTION : 1;
	size_t names = 1 + sizeof(probed) + (kind == SLOW_NAMES ? LONGEST + 1 : 0);
	struct layout layout = layout_of(code, n, names);
	uint8_t *file;

	if (kind == SLOW_FUNCTION)
		return make_function(ret_size);
	file = calloc(1, layout.size);
	if (!file)
		abort();
	put_headers(file, &layout, code);
	put_functions(file, &layout, kind, n);
	*ret_size = layout.size;
	return file;
}
