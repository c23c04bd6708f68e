// SPDX-License-Identifier: Apache-2.0
#include "cubin/specimen.h"

#include <elf.h>
#include <lz4.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "test.h"

enum {
	FIXED = 5,
	PER_KERNEL = 5
}; /* sections: null, names, strings, symbols, .nv.info; code, attributes, constants, shared, local */

struct builder {
	struct strbuf bytes, names, strings;
	Elf64_Shdr sections[FIXED + PER_KERNEL * SPECIMEN_KERNELS];
	Elf64_Sym symbols[1 + SPECIMEN_KERNELS];
	uint32_t n;
};

static uint32_t name_of(struct builder *b, const char *prefix, const char *kernel)
{
	uint32_t at = (uint32_t)b->names.len;

	strbuf_addf(&b->names, "%s%s", prefix, kernel);
	strbuf_addc(&b->names, '\0');
	return at;
}

static Elf64_Shdr *add_section(struct builder *b, const char *prefix, const char *kernel, uint32_t type)
{
	Elf64_Shdr *section = &b->sections[b->n++];

	*section = (Elf64_Shdr){ .sh_name = name_of(b, prefix, kernel),
				 .sh_type = type,
				 .sh_offset = b->bytes.len };
	return section;
}

static void fill(struct builder *b, Elf64_Shdr *section, const void *bytes, size_t n)
{
	section->sh_offset = b->bytes.len;
	section->sh_size = n;
	strbuf_add(&b->bytes, bytes, n);
}

static void sized(struct strbuf *sb, uint8_t number, const uint32_t *words, uint16_t n)
{
	const uint8_t head[] = { 4, number, (uint8_t)(n * 4), 0 };

	strbuf_add(sb, head, sizeof(head));
	strbuf_add(sb, words, n * sizeof(*words));
}

static void add_attributes(struct builder *b, const struct specimen *specimen,
			   const struct specimen_kernel *k, uint32_t code)
{
	Elf64_Shdr *section = add_section(b, ".nv.info.", k->name, 0x70000000);
	struct strbuf info;

	strbuf_init(&info, 0);
	strbuf_add(&info, "\x01\x3e\x00\x00\x03\x19\x0c\x00", 8); /* no value; 12 bytes of parameters */
	if (k->max_threads)
		sized(&info, 0x05, (const uint32_t[]){ k->max_threads, 1, 1 }, 3);
	if (k->required[0])
		sized(&info, 0x10, k->required, 3);
	if (k->cluster[0])
		sized(&info, 0x3d, k->cluster, 3);
	if (specimen->attributes_cut)
		strbuf_add(&info, "\x04\x05\xff\x7f", 4); /* 32,767 bytes */
	section->sh_info = code;
	fill(b, section, info.data, info.len);
	strbuf_done(&info);
}

static void add_kernel(struct builder *b, const struct specimen *specimen, const struct specimen_kernel *k,
		       uint32_t symbol)
{
	uint32_t code = b->n;
	Elf64_Shdr *section = add_section(b, ".text.", k->name, SHT_PROGBITS);
	char *text = calloc(1, k->code + 1);

	section->sh_flags = SHF_ALLOC | SHF_EXECINSTR | (uint64_t)k->barriers << 20;
	section->sh_info = symbol | (specimen->abi == 0x33 ? k->registers << 24 : 0);
	fill(b, section, text, k->code);
	free(text);
	add_attributes(b, specimen, k, code);
	section = add_section(b, ".nv.constant0.", k->name, SHT_PROGBITS);
	section->sh_info = code;
	section->sh_size = k->constant;
	section = add_section(b, ".nv.shared.", k->name, SHT_NOBITS);
	section->sh_info = code;
	section->sh_size = k->shared;
	section = add_section(b, ".nv.local.", k->name, SHT_NOBITS);
	section->sh_info = code;
	section->sh_size = k->local;
	b->symbols[symbol] = (Elf64_Sym){ .st_name = (uint32_t)b->strings.len,
					  .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
					  .st_other = k->device_function ? 0 : 0x10,
					  .st_shndx = (uint16_t)code,
					  .st_size = k->code };
	strbuf_adds(&b->strings, k->name);
	strbuf_addc(&b->strings, '\0');
}

static void add_tables(struct builder *b, const struct specimen *specimen)
{
	struct strbuf info;

	strbuf_init(&info, 0);
	for (size_t i = 0; i < specimen->n; i++) {
		const struct specimen_kernel *k = &specimen->kernels[i];
		uint32_t symbol = (uint32_t)i + 1;

		if (specimen->abi != 0x33)
			sized(&info, 0x2f, (const uint32_t[]){ symbol, k->registers }, 2);
		sized(&info, 0x11, (const uint32_t[]){ symbol, k->frame }, 2);
		if (k->stack)
			sized(&info, 0x12, (const uint32_t[]){ symbol, k->stack }, 2);
	}
	fill(b, &b->sections[4], info.data, info.len);
	fill(b, &b->sections[3], b->symbols, (specimen->n + 1) * sizeof(*b->symbols));
	b->sections[3].sh_link = 2;
	fill(b, &b->sections[2], b->strings.data, b->strings.len);
	fill(b, &b->sections[1], b->names.data, b->names.len);
	strbuf_done(&info);
}

static Elf64_Ehdr header_of(const struct specimen *specimen)
{
	Elf64_Ehdr header = { .e_type = specimen->relocatable ? ET_REL : ET_EXEC,
			      .e_machine = 190,
			      .e_version = specimen->abi == 0x33 ? 0x80 : 1,
			      .e_shentsize = sizeof(Elf64_Shdr),
			      .e_shstrndx = 1 };

	memcpy(header.e_ident,
	       "\x7f"
	       "ELF\x02\x01\x01",
	       7);
	header.e_ident[7] = specimen->abi;
	header.e_ident[8] = specimen->abi == 0x33 ? 7 : 8;
	header.e_flags = specimen->abi == 0x33 ? 0x500u | specimen->sm | (uint32_t)specimen->sm << 16 |
							 (specimen->accelerated ? 0x800u : 0) :
						 0x6000004u | (uint32_t)specimen->sm << 8;
	return header;
}

uint8_t *specimen_cubin(const struct specimen *specimen, size_t *ret_n)
{
	struct builder *b = calloc(1, sizeof(*b));
	Elf64_Ehdr header = header_of(specimen);
	char *gap = calloc(1, specimen->gap + 1);
	uint8_t *bytes;

	assert_true(b && gap && specimen->n <= SPECIMEN_KERNELS);
	strbuf_init(&b->bytes, 0);
	strbuf_init(&b->names, 0);
	strbuf_init(&b->strings, 0);
	strbuf_add(&b->bytes, &header, sizeof(header));
	strbuf_addc(&b->strings, '\0');
	add_section(b, "", "", SHT_NULL);
	add_section(b, ".shstrtab", "", SHT_STRTAB);
	add_section(b, ".strtab", "", SHT_STRTAB);
	add_section(b, ".symtab", "", SHT_SYMTAB);
	add_section(b, ".nv.info", "", 0x70000000);
	for (size_t i = 0; i < specimen->n; i++)
		add_kernel(b, specimen, &specimen->kernels[i], (uint32_t)i + 1);
	if (specimen->accelerated && specimen->abi != 0x33)
		fill(b, add_section(b, ".nv.compat", "", 0x70000086), "\x02\x09\x01", 4);
	add_tables(b, specimen);
	strbuf_add(&b->bytes, gap, specimen->gap);
	header.e_shoff = b->bytes.len;
	header.e_shnum = (uint16_t)b->n;
	strbuf_add(&b->bytes, b->sections, b->n * sizeof(*b->sections));
	memcpy(b->bytes.data, &header, sizeof(header));
	*ret_n = b->bytes.len;
	bytes = (uint8_t *)strbuf_take(&b->bytes);
	assert_non_null(bytes);
	strbuf_done(&b->names);
	strbuf_done(&b->strings);
	free(gap);
	free(b);
	return bytes;
}

void specimen_fatbin(struct strbuf *out, const struct specimen_entry *entries, size_t n)
{
	static const char zeros[256];
	struct strbuf body;
	uint64_t size;

	strbuf_init(&body, 0);
	for (size_t i = 0; i < n; i++) {
		const struct specimen_entry *e = &entries[i];
		uint32_t header = e->header_bytes ? e->header_bytes : 64,
			 compressed = e->uncompressed ? (uint32_t)e->n : 0;
		uint64_t padded = (e->n + 7) / 8 * 8;
		uint16_t words[4] = { e->kind ? e->kind : 2, 0x0101, (uint16_t)header,
				      (uint16_t)(header >> 16) };
		uint32_t rest[8] = { compressed, 0, 0x00010008, e->arch };

		strbuf_add(&body, words, sizeof(words));
		strbuf_add(&body, &padded, 8);
		strbuf_add(&body, rest, 24);
		strbuf_add(&body, &e->flags, 8);
		strbuf_add(&body, zeros, 8);
		strbuf_add(&body, &e->uncompressed, 8);
		strbuf_add(&body, zeros, header - MIN(header, 64u));
		strbuf_add(&body, e->bytes, e->n);
		strbuf_add(&body, zeros, padded - e->n);
	}
	size = body.len;
	strbuf_add(out, "\x50\xed\x55\xba\x01\x00\x10\x00", 8);
	strbuf_add(out, &size, 8);
	strbuf_add(out, body.data, body.len);
	strbuf_done(&body);
}

struct specimen_entry specimen_compressed(const struct specimen_entry *entry)
{
	struct specimen_entry e = *entry;
	size_t room = ZSTD_compressBound(e.n) + (size_t)LZ4_compressBound((int)e.n);
	char *bytes = malloc(room);

	assert_non_null(bytes);
	e.uncompressed = e.n;
	if (e.flags & SPECIMEN_ZSTD)
		e.n = ZSTD_compress(bytes, room, entry->bytes, entry->n, 3);
	else
		e.n = (size_t)LZ4_compress_default(entry->bytes, bytes, (int)entry->n, (int)room);
	assert_true(e.n > 0 && e.n < room);
	e.bytes = bytes;
	return e;
}

static int image(const struct cubin_image *image, void *userdata)
{
	char arch[KERNEL_ARCH_TEXT];

	kernel_arch_text(image->arch, arch);
	strbuf_addf(userdata, "%u/%u %s %u %s %s%s%s %llu %llu\n", image->container, image->number,
		    cubin_kind_name(image->kind), image->kind_number, arch,
		    cubin_compression_name(image->compression), image->debug ? " debug" : "",
		    image->relocatable ? " relocatable" : "", (unsigned long long)image->offset,
		    (unsigned long long)image->uncompressed_bytes);
	return 0;
}

static int kernel(const struct cubin_image *of, const struct cubin_kernel *kernel, void *userdata)
{
	strbuf_addf(userdata, "%u %s", of->number, kernel->symbol);
	assert_int_equal(strlen(kernel->symbol), kernel->symbol_n);
	for (int i = 0; i < KERNEL_FIGURES; i++)
		strbuf_addf(userdata, " %lld", (long long)kernel->figures[i]);
	strbuf_addf(userdata, " %u,%u,%u %u,%u,%u %u\n", kernel->required_block[0], kernel->required_block[1],
		    kernel->required_block[2], kernel->cluster[0], kernel->cluster[1], kernel->cluster[2],
		    kernel->parameters_bytes);
	return 0;
}

static void trouble(uint64_t offset, const char *text, void *userdata)
{
	strbuf_addf(userdata, "! %llu %s\n", (unsigned long long)offset, text);
}

int specimen_read_source(const struct cubin_source *source, const struct cubin_limits *limits,
			 struct strbuf *out)
{
	static const struct cubin_ops ops = { .image = image, .kernel = kernel, .trouble = trouble };

	return cubin_read(source, limits, &ops, out);
}

int specimen_read(const void *bytes, size_t n, const struct cubin_limits *limits, struct strbuf *out)
{
	const struct cubin_memory memory = { bytes, n };
	struct cubin_source source;

	cubin_source_memory(&memory, &source);
	return specimen_read_source(&source, limits, out);
}

/* Without strstr(), for which a sanitizer looks at all of a text of megabytes each time. */
unsigned specimen_times(const char *text, const char *what)
{
	size_t length = strlen(what);
	unsigned n = 0;

	for (; *text; text++)
		if (*text == *what && strncmp(text, what, length) == 0) {
			n++;
			text += length - 1;
		}
	return n;
}

uint8_t *specimen_section(uint8_t *cubin, size_t i, Elf64_Shdr *ret_section)
{
	Elf64_Ehdr header;
	uint8_t *at;

	memcpy(&header, cubin, sizeof(header));
	at = cubin + header.e_shoff + i * sizeof(*ret_section);
	memcpy(ret_section, at, sizeof(*ret_section));
	return at;
}
