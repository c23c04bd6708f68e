// SPDX-License-Identifier: Apache-2.0
/*
 * Words that the loader sets, by the relocations in the dynamic section, which also exist in files without
 * sections. Packed relocations (DT_RELR) are not included: their words are already in place.
 */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>

#include "elf/private.h"

enum { BLOCK_RELOCATIONS = 1024, DYNAMIC_MAX = 4096 };

/* How a relocation's word is computed. */
struct form {
	uint16_t machine;
	uint32_t type;
	bool symbol, addend;
	bool constant; /* in the linker's own table: programs never write there */
};

static const struct form forms[] = {
	{ EM_X86_64, R_X86_64_RELATIVE, .addend = true },
	{ EM_X86_64, R_X86_64_64, .symbol = true, .addend = true },
	{ EM_X86_64, R_X86_64_GLOB_DAT, .symbol = true, .constant = true },
	{ EM_X86_64, R_X86_64_JUMP_SLOT, .symbol = true, .constant = true },
	{ EM_AARCH64, R_AARCH64_RELATIVE, .addend = true },
	{ EM_AARCH64, R_AARCH64_ABS64, .symbol = true, .addend = true },
	{ EM_AARCH64, R_AARCH64_GLOB_DAT, .symbol = true, .addend = true, .constant = true },
	{ EM_AARCH64, R_AARCH64_JUMP_SLOT, .symbol = true, .addend = true, .constant = true },
};

struct dynamic {
	uint64_t relocations, relocations_size, plt, plt_size, symbols, names, names_size;
	bool plt_has_addends;
};

struct slots {
	struct elf_file *file;
	elf_slot_fn *fn;
	void *userdata;
	struct elf_pieces symbols, names;
	Elf64_Rela block[BLOCK_RELOCATIONS];
	char name[ELF_NAME_MAX + 1];
};

static const struct form *form_of(uint16_t machine, uint64_t type)
{
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++)
		if (forms[i].machine == machine && forms[i].type == type)
			return &forms[i];
	return NULL;
}

static int read_dynamic(const struct elf_file *file, struct dynamic *ret_dynamic)
{
	uint64_t n = MIN(file->dynamic_size / sizeof(Elf64_Dyn), (uint64_t)DYNAMIC_MAX);
	struct dynamic dynamic = { 0 };

	for (uint64_t i = 0; i < n; i++) {
		Elf64_Dyn entry;
		int r = elf_read_all(file, file->dynamic_at + i * sizeof(entry), &entry, sizeof(entry));

		if (r < 0)
			return r == -ENOEXEC ? -ENOENT : r;
		switch (entry.d_tag) {
		case DT_NULL:
			i = n;
			break;
		case DT_RELA:
			dynamic.relocations = entry.d_un.d_ptr;
			break;
		case DT_RELASZ:
			dynamic.relocations_size = entry.d_un.d_val;
			break;
		case DT_JMPREL:
			dynamic.plt = entry.d_un.d_ptr;
			break;
		case DT_PLTRELSZ:
			dynamic.plt_size = entry.d_un.d_val;
			break;
		case DT_PLTREL:
			dynamic.plt_has_addends = entry.d_un.d_val == DT_RELA;
			break;
		case DT_SYMTAB:
			dynamic.symbols = entry.d_un.d_ptr;
			break;
		case DT_STRTAB:
			dynamic.names = entry.d_un.d_ptr;
			break;
		case DT_STRSZ:
			dynamic.names_size = entry.d_un.d_val;
			break;
		}
	}
	*ret_dynamic = dynamic;
	return 0;
}

/* Opens at most the rest of one segment, since the number of dynamic symbols is not stored anywhere else. */
static int open_pieces(const struct elf_file *file, uint64_t address, uint64_t size,
		       struct elf_pieces *pieces)
{
	const struct elf_segment *s = elf_segment_of_address(file, address);

	if (!s)
		return -ENOENT;
	elf_pieces_init(pieces, file, s->offset + (address - s->address),
			MIN(size, s->size - (address - s->address)));
	return 0;
}

static int offer(struct slots *of, const Elf64_Rela *relocation)
{
	const struct form *form = form_of(of->file->machine, ELF64_R_TYPE(relocation->r_info));
	struct elf_slot slot = { .address = relocation->r_offset };
	Elf64_Sym symbol;
	int r;

	if (!form)
		return 0;
	slot.constant = form->constant || slot.address - of->file->relro_address < of->file->relro_size;
	slot.value = form->addend ? (uint64_t)relocation->r_addend : 0;
	if (form->symbol) {
		r = elf_pieces_read(&of->symbols, ELF64_R_SYM(relocation->r_info) * sizeof(symbol), &symbol,
				    sizeof(symbol));
		if (r == 0)
			r = elf_pieces_text(&of->names, symbol.st_name, of->name);
		if (r == -ENOENT) {
			of->file->skipped++;
			return 0;
		}
		if (r < 0)
			return r;
		slot.name = of->name;
		slot.imported = symbol.st_shndx == SHN_UNDEF;
		if (!slot.imported)
			slot.value += symbol.st_value;
	}
	return of->fn(&slot, of->userdata);
}

static int read_relocations(struct slots *of, uint64_t address, uint64_t size)
{
	const struct elf_segment *s = elf_segment_of_address(of->file, address);
	uint64_t count, at;

	if (size == 0 || !s)
		return 0;
	at = s->offset + (address - s->address);
	count = MIN(size, s->size - (address - s->address)) / sizeof(Elf64_Rela);
	of->file->skipped += count - MIN(count, (uint64_t)ELF_SYMBOLS_MAX);
	count = MIN(count, (uint64_t)ELF_SYMBOLS_MAX);
	for (uint64_t done = 0; done < count;) {
		size_t n = (size_t)MIN(count - done, (uint64_t)BLOCK_RELOCATIONS), got;
		int r = elf_read(of->file, at + done * sizeof(Elf64_Rela), of->block, n * sizeof(Elf64_Rela),
				 &got);

		for (size_t i = 0; r == 0 && i < got / sizeof(Elf64_Rela); i++) {
			r = i % ELF_CHECK == 0 ? elf_check_limits(of->file) : 0;
			if (r == 0)
				r = offer(of, &of->block[i]);
		}
		if (r != 0)
			return r;
		if (got < n * sizeof(Elf64_Rela))
			break;
		done += n;
	}
	return 0;
}

int elf_slots(struct elf_file *file, elf_slot_fn *fn, void *userdata)
{
	_cleanup_free_ struct slots *of = NULL;
	struct dynamic dynamic;
	int r = read_dynamic(file, &dynamic);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	of = malloc(sizeof(*of));
	if (!of)
		return -ENOMEM;
	of->file = file;
	of->fn = fn;
	of->userdata = userdata;
	if (open_pieces(file, dynamic.symbols, UINT64_MAX, &of->symbols) < 0 ||
	    open_pieces(file, dynamic.names, dynamic.names_size, &of->names) < 0)
		return 0;
	r = read_relocations(of, dynamic.relocations, dynamic.relocations_size);
	if (r == 0 && dynamic.plt_has_addends)
		r = read_relocations(of, dynamic.plt, dynamic.plt_size);
	return r;
}
