// SPDX-License-Identifier: Apache-2.0
/*
 * Symbol tables, read in blocks, so that memory does not depend on the number of symbols.
 */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "elf/private.h"

enum { BLOCK_SYMBOLS = 4096 };

enum wanted { WANTED_FUNCTIONS, WANTED_ENTRIES, WANTED_OBJECTS };

struct table {
	struct elf_file *file; /* that contains the symbols */
	const struct elf_file *code; /* that contains the functions */
	uint64_t at, count; /* symbols */
	bool dynamic;
	enum wanted wanted;
	elf_symbol_fn *fn;
	void *userdata;
	Elf64_Sym block[BLOCK_SYMBOLS];
	struct elf_pieces names;
	char name[ELF_NAME_MAX + 1];
};

/* Whether the symbol is defined here and of a requested kind. */
static bool wanted(const struct table *t, const Elf64_Sym *sym, enum elf_kind *ret_kind)
{
	if (sym->st_shndx == SHN_UNDEF || sym->st_shndx == SHN_ABS || sym->st_shndx == SHN_COMMON)
		return false;
	if (t->wanted == WANTED_OBJECTS) {
		*ret_kind = ELF_OBJECT;
		return ELF64_ST_TYPE(sym->st_info) == STT_OBJECT;
	}
	switch (ELF64_ST_TYPE(sym->st_info)) {
	case STT_FUNC:
		*ret_kind = ELF_FUNCTION;
		return true;
	case STT_GNU_IFUNC:
		*ret_kind = ELF_INDIRECT;
		return t->wanted == WANTED_ENTRIES;
	case STT_NOTYPE: /* local ones mark places for the linker */
		*ret_kind = ELF_UNTYPED;
		return t->wanted == WANTED_ENTRIES && ELF64_ST_BIND(sym->st_info) != STB_LOCAL;
	default:
		return false;
	}
}

static int offer(struct table *t, const Elf64_Sym *sym, enum elf_kind kind)
{
	const struct elf_segment *s = elf_segment_of_address(t->code, sym->st_value);
	struct elf_symbol symbol = {
		.name = t->name,
		.address = sym->st_value,
		.size = sym->st_size,
		.dynamic = t->dynamic,
		.kind = kind,
	};
	int r = -ENOENT;

	elf_count_steps(t->file, ELF_STEPS_SYMBOL);
	if (kind == ELF_OBJECT) {
		r = elf_pieces_text(&t->names, sym->st_name, t->name);
	} else if (s && s->executable) {
		symbol.offset = s->offset + (sym->st_value - s->address);
		if (symbol.offset < t->code->size)
			r = elf_pieces_text(&t->names, sym->st_name, t->name);
	}
	if (r == -ENOENT) {
		t->file->skipped += kind == ELF_FUNCTION;
		return 0;
	}
	if (r < 0)
		return r;
	/*
	 * Linkers append versions to names in .symtab, name@VERSION; for .dynsym they are stored elsewhere.
	 */
	if (!t->dynamic)
		t->name[strcspn(t->name, "@")] = '\0';
	return t->fn(&symbol, t->userdata);
}

static int read_table(struct table *t)
{
	uint64_t count = MIN(t->count, (uint64_t)ELF_SYMBOLS_MAX);

	t->file->skipped += t->count - count;
	for (uint64_t done = 0; done < count;) {
		size_t n = (size_t)MIN(count - done, (uint64_t)BLOCK_SYMBOLS), got;
		int r = elf_read(t->file, t->at + done * sizeof(Elf64_Sym), t->block, n * sizeof(Elf64_Sym),
				 &got);

		if (r < 0)
			return r;
		got /= sizeof(Elf64_Sym);
		for (size_t i = 0; i < got; i++) {
			enum elf_kind kind;

			r = i % ELF_CHECK == 0 ? elf_check_limits(t->file) : 0;
			if (r < 0)
				return r;
			r = wanted(t, &t->block[i], &kind) ? offer(t, &t->block[i], kind) : 0;
			if (r != 0)
				return r;
		}
		if (got < n) { /* the file ends here */
			t->file->skipped += count - done - got;
			break;
		}
		done += n;
	}
	return 0;
}

/* -ENOENT: no section of @type, or none that can be read. */
static int find_table(struct table *t, uint32_t type)
{
	struct elf_section section, names;
	int r = elf_section_of_type(t->file, type, &section);

	if (r == 0 && section.entry_size != sizeof(Elf64_Sym))
		return -ENOENT;
	if (r == 0)
		r = elf_section_at(t->file, section.link, &names);
	if (r < 0)
		return r;
	if (names.type != SHT_STRTAB || section.offset > INT64_MAX / 2 || names.offset > INT64_MAX / 2)
		return -ENOENT;
	t->at = section.offset;
	t->count = section.size / sizeof(Elf64_Sym);
	elf_pieces_init(&t->names, t->file, names.offset, MIN(names.size, (uint64_t)INT64_MAX / 2));
	return 0;
}

static int read_tables(struct elf_file *file, const struct elf_file *code, enum wanted wanted,
		       elf_symbol_fn *fn, void *userdata)
{
	static const uint32_t types[] = { SHT_DYNSYM, SHT_SYMTAB };
	_cleanup_free_ struct table *t = malloc(sizeof(*t));
	int r;

	if (!t)
		return -ENOMEM;
	t->file = file;
	t->code = code;
	t->wanted = wanted;
	t->fn = fn;
	t->userdata = userdata;
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		r = find_table(t, types[i]);
		if (r == -ENOENT)
			continue;
		if (r < 0)
			return r;
		t->dynamic = types[i] == SHT_DYNSYM;
		r = read_table(t);
		if (r != 0)
			return r;
	}
	return 0;
}

int elf_functions_of(struct elf_file *file, const struct elf_file *code, elf_symbol_fn *fn, void *userdata)
{
	return read_tables(file, code, WANTED_FUNCTIONS, fn, userdata);
}

int elf_entries(struct elf_file *file, elf_symbol_fn *fn, void *userdata)
{
	return read_tables(file, file, WANTED_ENTRIES, fn, userdata);
}

int elf_functions(struct elf_file *file, elf_symbol_fn *fn, void *userdata)
{
	return elf_functions_of(file, file, fn, userdata);
}

int elf_objects(struct elf_file *file, elf_symbol_fn *fn, void *userdata)
{
	return read_tables(file, file, WANTED_OBJECTS, fn, userdata);
}
