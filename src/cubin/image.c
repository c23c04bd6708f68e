// SPDX-License-Identifier: Apache-2.0
/*
 * Kernels of an ELF image. A kernel K has .text.K, .nv.info.K, .nv.constant0.K and, where it uses them,
 * .nv.shared.K and .nv.local.K; the latter four refer to the first by its number (sh_info), so no name is
 * searched. A bit of its symbol distinguishes it from a device function.
 */
#include "cubin/private.h"

#include <errno.h>
#include <string.h>

enum {
	SECTION_CUDA_INFO = 0x70000000, /* .nv.info, .nv.info.K */
	SECTION_CUDA_COMPAT = 0x70000086,
	SYMBOL_ENTRY = 0x10, /* in st_other; cuobjdump shows it as ENTRY */
	ABI_NEW = 0x41, /* e_ident[EI_OSABI] from CUDA 12.8 or so on; before 0x33 */
	FLAG_ACCELERATED_OLD = 0x800, /* e_flags of sm_90a before that */
	RESERVED_SHARED = 1024, /* in .nv.shared.K of linked images from sm_90 on */
	NO_SLOT = 0,
	STEPS = 64, /* symbols between two calls of ops.stop */
};

/* Sections that are read as a whole, by their place in `pieces`. */
enum { PIECE_NAMES, PIECE_SYMBOLS, PIECE_STRINGS, PIECE_INDICES, PIECE_COMPAT, PIECES_FIXED };

struct image {
	struct content *content;
	Elf64_Ehdr header;
	const Elf64_Shdr *sections;
	size_t n;
	struct kernel_arch arch;
	uint32_t *slots; /* of each section: of the kernel whose code it is; NO_SLOT */
	struct facts *facts; /* from 1 on */
	uint32_t facts_n;
	struct piece *pieces;
	/* of each piece behind the fixed ones: the kernel's slot; NO_SLOT: of the whole image */
	uint32_t *owners;
	size_t pieces_n;
	bool debug;
};

static uint32_t slot_of(const struct image *image, uint32_t section)
{
	return section < image->n ? image->slots[section] : NO_SLOT;
}

/* Reads up to @n bytes of a section's name, enough to compare the beginning. */
static bool name_begins(const struct image *image, const Elf64_Shdr *section, const char *with, size_t n)
{
	const struct piece *names = &image->pieces[PIECE_NAMES];

	return section->sh_name < names->size && names->size - section->sh_name >= n &&
	       memcmp(names->bytes + section->sh_name, with, n) == 0;
}
#define BEGINS(image, section, literal) name_begins(image, section, literal, sizeof(literal) - 1)

static void absent(struct facts *facts)
{
	*facts = (struct facts){ .frame_bytes = -1 };
	for (int i = 0; i < KERNEL_FIGURES; i++)
		facts->figures[i] = -1;
	facts->figures[KERNEL_STATIC_SHARED] = 0;
	facts->figures[KERNEL_RESERVED_SHARED] = 0;
	facts->figures[KERNEL_LOCAL] = 0;
}

static int64_t section_bytes(const Elf64_Shdr *section)
{
	return section->sh_size > INT64_MAX ? -1 : (int64_t)section->sh_size;
}

/* Lists the sections with code, each of which may be a kernel's. */
static int find_code(struct image *image)
{
	struct reader *reader = image->content->reader;
	int r = reader_need(reader, &reader->slots, image->n * sizeof(*image->slots) + 1);

	if (r < 0)
		return r;
	image->slots = reader->slots.bytes;
	for (size_t i = 0; i < image->n; i++) {
		const Elf64_Shdr *section = &image->sections[i];
		bool code = section->sh_type == SHT_PROGBITS && (section->sh_flags & SHF_EXECINSTR);

		image->slots[i] = code ? ++image->facts_n : NO_SLOT;
	}
	r = reader_need(reader, &reader->facts, (image->facts_n + 1ull) * sizeof(*image->facts));
	if (r < 0)
		return r;
	image->facts = reader->facts.bytes;
	for (size_t i = 0; i < image->n; i++) {
		const Elf64_Shdr *section = &image->sections[i];
		struct facts *facts = &image->facts[image->slots[i]];

		if (image->slots[i] == NO_SLOT)
			continue;
		absent(facts);
		facts->figures[KERNEL_CODE] = section_bytes(section);
		/* Older images have it only here; later ones also have an attribute. */
		facts->figures[KERNEL_BARRIERS] = section->sh_flags >> 20 & 0x7f;
		if (section->sh_info >> 24)
			facts->figures[KERNEL_REGISTERS] = section->sh_info >> 24;
	}
	return 0;
}

static void add_piece(struct image *image, size_t at, const Elf64_Shdr *section)
{
	image->pieces[at] = (struct piece){ section->sh_offset, section->sh_size, NULL };
}

/* By type, since their names are not read yet. */
static int list_pieces(struct image *image)
{
	struct buffer *buffer = &image->content->reader->pieces;
	size_t most = image->n + PIECES_FIXED;
	int r = reader_need(image->content->reader, buffer,
			    most * (sizeof(*image->pieces) + sizeof(*image->owners)));
	uint32_t names = image->header.e_shstrndx;

	if (r < 0)
		return r;
	image->pieces = buffer->bytes;
	image->owners = (uint32_t *)(image->pieces + most);
	memset(image->pieces, 0, PIECES_FIXED * sizeof(*image->pieces));
	image->pieces_n = PIECES_FIXED;
	if (names == SHN_XINDEX && image->n > 0)
		names = image->sections[0].sh_link;
	if (names < image->n)
		add_piece(image, PIECE_NAMES, &image->sections[names]);
	for (size_t i = 0; i < image->n; i++) {
		const Elf64_Shdr *section = &image->sections[i];

		switch (section->sh_type) {
		case SHT_SYMTAB:
			add_piece(image, PIECE_SYMBOLS, section);
			if (section->sh_link < image->n)
				add_piece(image, PIECE_STRINGS, &image->sections[section->sh_link]);
			break;
		case SHT_SYMTAB_SHNDX:
			add_piece(image, PIECE_INDICES, section);
			break;
		case SECTION_CUDA_COMPAT:
			add_piece(image, PIECE_COMPAT, section);
			break;
		case SECTION_CUDA_INFO:
			image->owners[image->pieces_n] = slot_of(image, section->sh_info);
			add_piece(image, image->pieces_n++, section);
			break;
		}
	}
	return 0;
}

/* Memory that a kernel declares, by the sections that belong to its code. */
static void read_sections(struct image *image)
{
	for (size_t i = 0; i < image->n; i++) {
		const Elf64_Shdr *section = &image->sections[i];
		uint32_t slot = slot_of(image, section->sh_info);
		int64_t *figures = image->facts[slot].figures;

		if (BEGINS(image, section, ".debug_info"))
			image->debug = true;
		if (slot == NO_SLOT)
			continue;
		if (BEGINS(image, section, ".nv.constant0.")) {
			figures[KERNEL_CONSTANT] = section_bytes(section);
		} else if (BEGINS(image, section, ".nv.local.")) {
			figures[KERNEL_LOCAL] = section_bytes(section);
		} else if (BEGINS(image, section, ".nv.shared.")) {
			bool reserved = image->header.e_type == ET_EXEC && image->arch.sm >= 90;
			int64_t all = section_bytes(section),
				system = reserved && all >= RESERVED_SHARED ? RESERVED_SHARED : 0;

			figures[KERNEL_RESERVED_SHARED] = system;
			figures[KERNEL_STATIC_SHARED] = all - system;
		}
	}
}

static size_t symbols_n(const struct image *image)
{
	return image->pieces[PIECE_SYMBOLS].size / sizeof(Elf64_Sym);
}

/* The slot of the kernel that the symbol defines; NO_SLOT. */
static uint32_t kernel_of(const struct image *image, size_t i, Elf64_Sym *ret_symbol)
{
	const struct piece *indices = &image->pieces[PIECE_INDICES];
	uint32_t section;

	memcpy(ret_symbol, image->pieces[PIECE_SYMBOLS].bytes + i * sizeof(*ret_symbol), sizeof(*ret_symbol));
	if (ELF64_ST_TYPE(ret_symbol->st_info) != STT_FUNC || !(ret_symbol->st_other & SYMBOL_ENTRY))
		return NO_SLOT;
	section = ret_symbol->st_shndx;
	if (section == SHN_XINDEX && (i + 1) * sizeof(section) <= indices->size)
		memcpy(&section, indices->bytes + i * sizeof(section), sizeof(section));
	return slot_of(image, section);
}

static struct facts *facts_of(uint32_t number, void *userdata)
{
	const struct image *image = userdata;
	uint32_t slot = NO_SLOT;
	Elf64_Sym symbol;

	if (number < symbols_n(image))
		slot = kernel_of(image, number, &symbol);
	return slot == NO_SLOT ? NULL : &image->facts[slot];
}

static void read_attributes(struct image *image)
{
	for (size_t i = PIECES_FIXED; i < image->pieces_n; i++) {
		const struct piece *piece = &image->pieces[i];
		bool right =
			image->owners[i] == NO_SLOT ?
				info_of_image(piece->bytes, piece->size, facts_of, image) :
				info_of_kernel(piece->bytes, piece->size, &image->facts[image->owners[i]]);

		if (!right)
			content_bad(image->content, piece->offset,
				    "attributes that end in the middle of one");
	}
}

/* The end of an image in memory. */
static uint64_t extent_of(const struct image *image)
{
	uint64_t end = image->header.e_shoff + image->n * sizeof(*image->sections);
	uint64_t segments =
		image->header.e_phoff + (uint64_t)image->header.e_phnum * image->header.e_phentsize;

	end = MAX(end, segments);
	for (size_t i = 0; i < image->n; i++)
		if (image->sections[i].sh_type != SHT_NOBITS)
			end = MAX(end, image->sections[i].sh_offset + image->sections[i].sh_size);
	return end;
}

/* For an image outside of a fatbin, where no entry has these data. */
static void complete(const struct image *image, struct cubin_image *ret_image)
{
	const struct piece *compat = &image->pieces[PIECE_COMPAT];
	uint32_t flags = image->header.e_flags;
	bool accelerated = info_accelerated(compat->bytes, compat->size);

	ret_image->arch.sm = flags & 0xff;
	if (image->header.e_ident[EI_OSABI] == ABI_NEW)
		ret_image->arch.sm = flags >> 8 & 0xff;
	else
		accelerated = flags & FLAG_ACCELERATED_OLD;
	ret_image->arch.variant = accelerated ? 'a' : 0;
	ret_image->relocatable = image->header.e_type == ET_REL;
	if (image->content->size == UINT64_MAX)
		ret_image->bytes = ret_image->uncompressed_bytes = extent_of(image);
}

/* 1: its name is longer than @left. */
static int report_kernel(const struct image *image, const struct cubin_image *of, const struct facts *facts,
			 const Elf64_Sym *symbol, uint64_t *left)
{
	const struct piece *strings = &image->pieces[PIECE_STRINGS];
	struct reader *reader = image->content->reader;
	struct cubin_kernel kernel = { .arch = of->arch, .parameters_bytes = facts->parameters_bytes };
	const char *name = (const char *)strings->bytes + symbol->st_name, *end;

	if (symbol->st_name >= strings->size ||
	    !(end = memchr(name, '\0', strings->size - symbol->st_name))) {
		content_bad(image->content, strings->offset + symbol->st_name, "a kernel's name has no end");
		return 0;
	}
	if ((uint64_t)(end - name) >= *left)
		return 1;
	*left -= (uint64_t)(end - name) + 1;
	kernel.symbol = name;
	kernel.symbol_n = (size_t)(end - name);
	memcpy(kernel.figures, facts->figures, sizeof(kernel.figures));
	memcpy(kernel.required_block, facts->required_block, sizeof(kernel.required_block));
	memcpy(kernel.cluster, facts->cluster, sizeof(kernel.cluster));
	if (facts->stack_unknown)
		kernel.figures[KERNEL_STACK] = -1;
	else if (kernel.figures[KERNEL_STACK] < 0)
		kernel.figures[KERNEL_STACK] = facts->frame_bytes;
	return MIN(reader->ops->kernel(of, &kernel, reader->userdata), 0);
}

static int tell_kernels(const struct image *image, const struct cubin_image *of)
{
	const struct piece *strings = &image->pieces[PIECE_STRINGS];
	/* Names may be suffixes of others, but not all of them. */
	uint64_t left = strings->size * OVERLAP_MAX;

	for (size_t i = 0; i < symbols_n(image); i++) {
		Elf64_Sym symbol;
		uint32_t slot = kernel_of(image, i, &symbol);
		int r = slot == NO_SLOT ? 0 : report_kernel(image, of, &image->facts[slot], &symbol, &left);

		if (r > 0)
			return content_bad(
				image->content, strings->offset + symbol.st_name,
				"names of kernels are more than %d times their table: those from symbol "
				"%zu of %zu on are not read",
				OVERLAP_MAX, i, symbols_n(image));
		if (r == 0 && i % STEPS == 0)
			r = reader_stopped(image->content->reader);
		if (r < 0)
			return r;
	}
	return 0;
}

int image_kernels(struct content *content, struct cubin_image *of, bool bare)
{
	struct reader *reader = content->reader;
	struct image image = { .content = content };
	int r = content_headers(content, &image.header, &image.sections, &image.n);

	if (r == 0)
		r = find_code(&image);
	if (r == 0)
		r = list_pieces(&image);
	if (r == 0)
		r = content_pieces(content, image.pieces, image.pieces_n);
	if (r < 0)
		return r;
	if (bare)
		complete(&image, of);
	image.arch = of->arch;
	read_sections(&image);
	if (bare) {
		of->debug = image.debug;
		r = reader->ops->image(of, reader->userdata);
		if (r != 0 || reader->passing || !reader->ops->kernel)
			return MIN(r, 0);
	}
	read_attributes(&image);
	return tell_kernels(&image, of);
}

int cubin_bare(struct reader *reader, const struct range *range)
{
	struct cubin_image of = { .number = reader->images++,
				  .container = reader->containers++,
				  .kind = CUBIN_ELF,
				  .offset = range->offset,
				  .bytes = range->size,
				  .uncompressed_bytes = range->size };
	struct content content = { .reader = reader, .stored = *range, .size = range->size };
	int r = team_part(reader);

	if (r < 0)
		return r;
	r = image_kernels(&content, &of, true);
	reader_settle(reader);
	return r == -EBADMSG ? 0 : r;
}
