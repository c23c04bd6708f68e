// SPDX-License-Identifier: Apache-2.0
#include "elf/slow.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

enum {
	FUNCTION = 16 << 10, /* as much as is searched of one */
	LONGEST = 4095, /* of a name */
	PUSH = 0x53,
	RETURN = 0xc3,
	VARIABLES = 0x10000000,
	VARIABLES_BYTES = 0x10000000,
	/* in SLOW_STUBS: functions, then calls of them; registers by their numbers */
	HOST = 0,
	REGISTER,
	GET_KERNEL,
	CALLS = 16,
	CALL_BYTES = 19,
	RCX = 1,
	RSI = 6,
	RDI = 7,
};

static const char probed[] = "cuMemAlloc_v2", registers[] = "__cudaRegisterFunction",
		  gets_kernel[] = "__cudaGetKernel";

struct layout {
	size_t code_at, symbols_at, names_at, sections_at, size;
};

/* In this order, from low to high; names begin with an empty one. */
static struct layout layout_of(size_t code, unsigned symbols, size_t names)
{
	struct layout layout = { .code_at = sizeof(Elf64_Ehdr) + 2 * sizeof(Elf64_Phdr) };

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
		.e_phnum = 2,
		.e_shoff = l->sections_at,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = 4,
	};
	const Elf64_Phdr segments[] = {
		{ .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = l->size, .p_memsz = l->size },
		{ .p_type = PT_LOAD,
		  .p_flags = PF_R | PF_W,
		  .p_vaddr = VARIABLES,
		  .p_memsz = VARIABLES_BYTES },
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
	memcpy(file + header.e_phoff, segments, sizeof(segments));
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

/* lea @to(%rip), %rsi; lea @more(%rip), register; call @function. All are addresses. */
static void put_call(uint8_t *file, size_t at, unsigned reg, int32_t host, int32_t more, int32_t function)
{
	int32_t end = (int32_t)at;
	const struct {
		uint8_t opcode[3], n;
		int32_t to;
	} parts[] = {
		{ { 0x48, 0x8d, 0x05 | RSI << 3 }, 3, host },
		{ { 0x48, 0x8d, (uint8_t)(0x05 | reg << 3) }, 3, more },
		{ { 0xe8 }, 1, function },
	};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		int32_t distance;

		memcpy(file + end, parts[i].opcode, parts[i].n);
		end += parts[i].n + (int32_t)sizeof(distance);
		distance = parts[i].to - end;
		memcpy(file + end - sizeof(distance), &distance, sizeof(distance));
	}
}

/* Names are one of @n letters and what is left of it. */
static uint8_t *make_stubs(unsigned n, size_t *ret_size)
{
	size_t code = CALLS + 2 * (size_t)n * CALL_BYTES;
	size_t names = 1 + sizeof(registers) + sizeof(gets_kernel);
	struct layout l = layout_of(code, 2, names + n + 1);
	uint8_t *file = calloc(1, l.size);
	int32_t code_at = (int32_t)l.code_at;

	if (!file)
		abort();
	put_headers(file, &l, code);
	memset(file + l.code_at, RETURN, CALLS);
	memcpy(file + l.names_at + 1, registers, sizeof(registers));
	memcpy(file + l.names_at + 1 + sizeof(registers), gets_kernel, sizeof(gets_kernel));
	memset(file + l.names_at + names, 'k', n);
	put_symbol(file, &l, 0, 1, l.code_at + REGISTER, 1);
	put_symbol(file, &l, 1, 1 + sizeof(registers), l.code_at + GET_KERNEL, 1);
	for (unsigned i = 0; i < n; i++) {
		size_t at = l.code_at + CALLS + 2 * (size_t)i * CALL_BYTES;

		put_call(file, at, RCX, code_at + HOST, (int32_t)(l.names_at + names + i),
			 code_at + REGISTER);
		put_call(file, at + CALL_BYTES, RDI, code_at + HOST, VARIABLES + 8 * (int32_t)i,
			 code_at + GET_KERNEL);
	}
	*ret_size = l.size;
	return file;
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
	if (kind == SLOW_STUBS)
		return make_stubs(n, ret_size);
	file = calloc(1, layout.size);
	if (!file)
		abort();
	put_headers(file, &layout, code);
	put_functions(file, &layout, kind, n);
	*ret_size = layout.size;
	return file;
}
