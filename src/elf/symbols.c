// SPDX-License-Identifier: Apache-2.0
/*
 * Symbol tables, read in blocks: hundreds of thousands of symbols take no more memory than ten. Names lie anywhere in the table of strings, mostly
 * in the order of the symbols; pieces of it are kept, so that few are read twice. Some linkers scatter them, so pieces are small.
 */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "elf/private.h"

enum {
	BLOCK_SYMBOLS = 4096,
	PIECE_BYTES = 1024,
	PIECES = 512,
	PIECE_READS_MAX = 1 << 22, /* a second or two; only names scattered on purpose take as many */
	SECTIONS_MAX = 1 << 16,
	BLOCK_SECTIONS = 64,
};

struct piece {
	uint64_t number; /* of this piece in the table of strings, from 1; 0: nothing is here */
	size_t n;
	char bytes[PIECE_BYTES];
};

struct table {
	struct elf_file *file;
	uint64_t at, count; /* symbols */
	uint64_t names_at, names_size;
	uint32_t reads; /* of pieces */
	bool dynamic;
	elf_symbol_fn *fn;
	void *userdata;
	Elf64_Sym block[BLOCK_SYMBOLS];
	struct piece pieces[PIECES];
	char name[ELF_NAME_MAX + 1];
};

static int piece_get(struct table *t, uint64_t number, const struct piece **ret_piece)
{
	struct piece *p = &t->pieces[number % PIECES];

	if (p->number != number + 1) {
		uint64_t at = number * PIECE_BYTES;
		int r;

		if (t->reads == PIECE_READS_MAX)
			return -ENOENT;
		t->reads++;
		p->number = 0;
		r = elf_read(t->file, t->names_at + at, p->bytes,
			     MIN(t->names_size - at, (uint64_t)PIECE_BYTES), &p->n);
		if (r < 0)
			return r;
		p->number = number + 1;
	}
	*ret_piece = p;
	return 0;
}

/* Into t->name; -ENOENT where it does not end within the table, the file and the limit. */
static int read_name(struct table *t, uint64_t at)
{
	size_t done = 0;

	while (at < t->names_size && done < ELF_NAME_MAX) {
		const struct piece *p;
		size_t from = at % PIECE_BYTES, n;
		const char *end;
		int r = piece_get(t, at / PIECE_BYTES, &p);

		if (r < 0)
			return r;
		if (from >= p->n)
			break;
		n = MIN(p->n - from, (size_t)ELF_NAME_MAX - done);
		end = memchr(p->bytes + from, 0, n);
		if (end)
			n = (size_t)(end - (p->bytes + from));
		memcpy(t->name + done, p->bytes + from, n);
		done += n;
		at += n;
		if (end) {
			t->name[done] = '\0';
			return done > 0 ? 0 : -ENOENT;
		}
	}
	return -ENOENT;
}

/* Functions that are here; resolvers of indirect ones (STT_GNU_IFUNC) are not what their name says. */
static bool wanted(const Elf64_Sym *sym)
{
	return ELF64_ST_TYPE(sym->st_info) == STT_FUNC && sym->st_shndx != SHN_UNDEF &&
	       sym->st_shndx != SHN_ABS && sym->st_shndx != SHN_COMMON;
}

static int offer(struct table *t, const Elf64_Sym *sym)
{
	const struct elf_segment *s = elf_segment_of_address(t->file, sym->st_value);
	struct elf_symbol symbol = {
		.name = t->name,
		.address = sym->st_value,
		.size = sym->st_size,
		.dynamic = t->dynamic,
	};
	int r = -ENOENT;

	if (s && s->executable) {
		symbol.offset = s->offset + (sym->st_value - s->address);
		if (symbol.offset < t->file->size)
			r = read_name(t, sym->st_name);
	}
	if (r == -ENOENT) {
		t->file->skipped++;
		return 0;
	}
	if (r < 0)
		return r;
	/* Linkers write versions into names of .symtab, name@VERSION; in .dynsym these are elsewhere. */
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
			r = wanted(&t->block[i]) ? offer(t, &t->block[i]) : 0;
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

static int read_section(const struct elf_file *file, uint64_t index, Elf64_Shdr *ret_section)
{
	return elf_read_all(file, file->sections_at + index * sizeof(*ret_section), ret_section,
			    sizeof(*ret_section));
}

/* A file of 2^16 sections and more says their number in the first one. */
static int count_sections(const struct elf_file *file, uint64_t *ret_count)
{
	Elf64_Shdr first;
	int r;

	*ret_count = file->sections_n;
	if (file->sections_n > 0 || file->sections_at == 0)
		return 0;
	r = read_section(file, 0, &first);
	if (r == 0)
		*ret_count = MIN(first.sh_size, (uint64_t)SECTIONS_MAX);
	return r;
}

/* The first section of @type and its strings. -ENOENT: there is none, or none that can be read. */
static int find_table(struct elf_file *file, uint64_t sections, uint32_t type, struct table *t)
{
	Elf64_Shdr block[BLOCK_SECTIONS], names;

	for (uint64_t done = 0; done < sections; done += BLOCK_SECTIONS) {
		size_t got, n = (size_t)MIN(sections - done, (uint64_t)BLOCK_SECTIONS);
		int r = elf_read(file, file->sections_at + done * sizeof(*block), block, n * sizeof(*block),
				 &got);

		if (r < 0)
			return r;
		for (size_t i = 0; i < got / sizeof(*block); i++) {
			const Elf64_Shdr *s = &block[i];

			if (s->sh_type != type)
				continue;
			if (s->sh_entsize != sizeof(Elf64_Sym) || s->sh_link >= sections)
				return -ENOENT;
			r = read_section(file, s->sh_link, &names);
			if (r < 0)
				return r == -ENOEXEC ? -ENOENT : r;
			if (names.sh_type != SHT_STRTAB || s->sh_offset > INT64_MAX / 2 ||
			    names.sh_offset > INT64_MAX / 2)
				return -ENOENT;
			t->at = s->sh_offset;
			t->count = s->sh_size / sizeof(Elf64_Sym);
			t->names_at = names.sh_offset;
			t->names_size = MIN(names.sh_size, (uint64_t)INT64_MAX / 2);
			return 0;
		}
		if (got < n * sizeof(*block))
			break;
	}
	return -ENOENT;
}

int elf_functions(struct elf_file *file, elf_symbol_fn *fn, void *userdata)
{
	static const uint32_t types[] = { SHT_DYNSYM, SHT_SYMTAB };
	_cleanup_free_ struct table *t = malloc(sizeof(*t));
	uint64_t sections;
	int r = count_sections(file, &sections);

	if (!t)
		return -ENOMEM;
	if (r < 0)
		return r == -ENOEXEC ? 0 : r;
	t->file = file;
	t->fn = fn;
	t->userdata = userdata;
	t->reads = 0;
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		r = find_table(file, sections, types[i], t);
		if (r == -ENOENT)
			continue;
		if (r < 0)
			return r;
		t->dynamic = types[i] == SHT_DYNSYM;
		for (size_t k = 0; k < PIECES; k++)
			t->pieces[k].number = 0;
		r = read_table(t);
		if (r != 0)
			return r;
	}
	return 0;
}
