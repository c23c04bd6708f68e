// SPDX-License-Identifier: Apache-2.0
/* Small files, or files of holes, that would keep a reader busy for hours. */
#include "test.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "cubin/specimen.h"

/* Zeros behind the bytes, of any size. */
struct sparse {
	struct strbuf bytes;
	uint64_t size, read; /* so far */
};

static ssize_t read_sparse(void *of, uint64_t offset, void *buf, size_t n)
{
	struct sparse *sparse = of;
	size_t there = offset < sparse->bytes.len ? MIN(n, sparse->bytes.len - (size_t)offset) : 0;

	memset(buf, 0, n);
	if (there)
		memcpy(buf, sparse->bytes.data + offset, there);
	sparse->read += n;
	return (ssize_t)n;
}

static void assert_read(struct sparse *sparse, struct strbuf *ret_text)
{
	const struct cubin_source source = { .read = read_sparse, .of = sparse, .size = sparse->size };

	strbuf_init(ret_text, 0);
	assert_int_equal(specimen_read_source(&source, NULL, ret_text), 0);
}

static void assert_once(const struct strbuf *text, const char *what)
{
	if (specimen_times(text->data, what) != 1)
		print_message("# %.2000s\n", text->data);
	assert_int_equal(specimen_times(text->data, what), 1);
}

static uint8_t *cubin_of(const struct specimen_kernel *kernels, size_t n, size_t *ret_n)
{
	const struct specimen specimen = { .abi = 0x41, .sm = 80, .kernels = kernels, .n = n };

	return specimen_cubin(&specimen, ret_n);
}

static void add_fatbin(struct strbuf *out)
{
	static const struct specimen_kernel kernel = { .name = "k", .registers = 8, .code = 256 };
	struct specimen_entry entry = { .arch = 80 };
	uint8_t *cubin = cubin_of(&kernel, 1, &entry.n);

	entry.bytes = cubin;
	specimen_fatbin(out, &entry, 1);
	free(cubin);
}

enum { NAMES_AT = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr), CONTENT_AT = 256 };

/* What is behind CONTENT_AT in @sparse becomes the content of @n equal sections of a host's file. */
static void add_sections(struct sparse *sparse, const char *name, unsigned n)
{
	const struct range_of {
		uint64_t at, n;
	} content = { CONTENT_AT, sparse->bytes.len - CONTENT_AT };
	Elf64_Ehdr header = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, 1 },
			      .e_machine = EM_X86_64,
			      .e_phoff = sizeof(header),
			      .e_phentsize = sizeof(Elf64_Phdr),
			      .e_phnum = 1,
			      .e_shentsize = sizeof(Elf64_Shdr),
			      .e_shoff = sparse->bytes.len,
			      .e_shnum = (uint16_t)(n + 1) };
	const Elf64_Phdr segment = { .p_type = PT_LOAD, .p_filesz = UINT32_MAX };
	Elf64_Shdr section = { .sh_offset = NAMES_AT, .sh_size = 64 };

	strbuf_add(&sparse->bytes, &section, sizeof(section));
	section = (Elf64_Shdr){ .sh_type = SHT_PROGBITS, .sh_offset = content.at, .sh_size = content.n };
	for (unsigned i = 0; i < n; i++)
		strbuf_add(&sparse->bytes, &section, sizeof(section));
	memcpy(sparse->bytes.data, &header, sizeof(header));
	memcpy(sparse->bytes.data + sizeof(header), &segment, sizeof(segment));
	memcpy(sparse->bytes.data + NAMES_AT, name, strlen(name) + 1);
	sparse->size = sparse->bytes.len;
}

static void sparse_init(struct sparse *sparse)
{
	static const char room[CONTENT_AT];

	*sparse = (struct sparse){ 0 };
	strbuf_init(&sparse->bytes, 0);
	strbuf_add(&sparse->bytes, room, sizeof(room));
}

static void sections_over_one_another(_unused_ void **state)
{
	struct sparse sparse;
	struct strbuf text;

	sparse_init(&sparse);
	add_fatbin(&sparse.bytes);
	add_sections(&sparse, ".nv_fatbin", 1000);
	assert_read(&sparse, &text);
	assert_once(&text, "0 k 8 ");
	assert_once(&text, "! 256 999 sections of images, of which this is the first, are not read");
	assert_int_equal(specimen_times(text.data, "\n"), 3);
	strbuf_done(&text);
	strbuf_done(&sparse.bytes);
}

/* Each of them says that the same container, with a large image, is its own. */
static void wrappers_of_the_same(_unused_ void **state)
{
	enum { WRAPPERS = 20, SIZE = 100 << 20 };
	const struct specimen_entry entry = { .arch = 80, .bytes = "no ELF image....", .n = 16 };
	const uint64_t payload = 64 + SIZE, size = SIZE;
	struct sparse sparse;
	struct strbuf text, first;
	size_t at = CONTENT_AT + 24 * WRAPPERS;

	sparse_init(&sparse);
	for (int i = 0; i < WRAPPERS; i++) {
		const uint64_t wrapper[3] = { 0x1466243B1, at, 0 };

		strbuf_add(&sparse.bytes, wrapper, sizeof(wrapper));
	}
	/* Behind the section headers, of which there are two. */
	add_sections(&sparse, ".nvFatBinSegment", 1);
	for (int i = 0; i < WRAPPERS; i++) {
		const uint64_t address = sparse.bytes.len;

		memcpy(sparse.bytes.data + CONTENT_AT + 24 * i + 8, &address, sizeof(address));
	}
	at = sparse.bytes.len;
	specimen_fatbin(&sparse.bytes, &entry, 1);
	memcpy(sparse.bytes.data + at + 8, &payload, sizeof(payload));
	memcpy(sparse.bytes.data + at + 16 + 8, &size, sizeof(size));
	sparse.size = at + 16 + payload;
	assert_read(&sparse, &text);
	assert_int_equal(specimen_times(text.data, "elf 2 sm_80"), WRAPPERS);
	assert_int_equal(specimen_times(text.data, "no ELF image of a CUDA device"), 8);
	/* The container is where all of them are: 16 bytes of it, 64 of the entry. */
	strbuf_init(&first, 0);
	strbuf_addf(&first, "! %zu kernels of 12 images, of which this is the first, are not read", at + 80);
	assert_once(&text, first.data);
	strbuf_done(&first);
	assert_once(&text, "kernels of 12 images, of which this is the first, are not read: "
			   "the file leads to more than 8 times its size");
	strbuf_done(&text);
	strbuf_done(&sparse.bytes);
}

static void a_terabyte_of_padding(_unused_ void **state)
{
	struct sparse sparse = { .size = 1ull << 40 };
	struct strbuf text;

	strbuf_init(&sparse.bytes, 0);
	add_fatbin(&sparse.bytes);
	assert_read(&sparse, &text);
	assert_once(&text, "0 k 8 ");
	assert_once(&text, "no container in 1048576 bytes behind the last one: ");
	assert_true(sparse.read < 2 << 20);
	strbuf_done(&text);
	/* A mebibyte less is padding. */
	strbuf_add(&sparse.bytes, (const char[8]){ 0 }, -sparse.bytes.len % 8);
	for (int i = 0; i < (1 << 20) - 8; i += 8)
		strbuf_add(&sparse.bytes, (const char[8]){ 0 }, 8);
	add_fatbin(&sparse.bytes);
	sparse.size = sparse.bytes.len;
	assert_read(&sparse, &text);
	assert_once(&text, "1 k 8 ");
	assert_null(strstr(text.data, "! "));
	strbuf_done(&text);
	strbuf_done(&sparse.bytes);
}

/* More entries than may be walked: of memory, of which nobody knows how much there is. */
static void entries_led_to_again(_unused_ void **state)
{
	enum { WRAPPERS = 400, ENTRIES = 1000 };
	struct specimen_entry entries[ENTRIES];
	struct sparse sparse;
	struct strbuf text;
	uint64_t at;

	for (unsigned i = 0; i < ENTRIES; i++)
		entries[i] = (struct specimen_entry){ .kind = 8, .bytes = "", .n = 0 };
	sparse_init(&sparse);
	for (int i = 0; i < WRAPPERS; i++)
		strbuf_add(&sparse.bytes, (const uint64_t[3]){ 0x1466243B1 }, 24);
	add_sections(&sparse, ".nvFatBinSegment", 1);
	at = sparse.bytes.len;
	for (int i = 0; i < WRAPPERS; i++)
		memcpy(sparse.bytes.data + CONTENT_AT + 24 * i + 8, &at, sizeof(at));
	specimen_fatbin(&sparse.bytes, entries, ENTRIES);
	sparse.size = sparse.bytes.len;
	assert_read(&sparse, &text);
	assert_once(&text, "what follows is not looked for: the file leads to more than 8 times its size");
	/* 64 MiB and 8 times the file are for so many steps of 512 bytes. */
	assert_in_range(specimen_times(text.data, "other 8"), 128 << 10, 134 << 10);
	strbuf_done(&text);
	strbuf_done(&sparse.bytes);
}

/* Wrong headers, one each 8 bytes: after so many steps the search ends. */
static void containers_that_are_none(_unused_ void **state)
{
	enum { HEADERS = 3 << 20 };
	struct sparse sparse;
	struct strbuf text;

	sparse_init(&sparse);
	for (int i = 0; i < HEADERS; i++)
		strbuf_add(&sparse.bytes, "\x50\xed\x55\xba\0\0\0\0", 8);
	add_sections(&sparse, ".nv_fatbin", 1);
	sparse.size = sparse.bytes.len;
	assert_read(&sparse, &text);
	/* Each step reads 4 KiB. It would be 12 GiB; that the search has ended is one of so many troubles. */
	assert_in_range(sparse.read, UINT64_C(1) << 30, UINT64_C(3) << 30);
	assert_non_null(strstr(text.data, "more things that could not be read"));
	strbuf_done(&text);
	strbuf_done(&sparse.bytes);
}

static void rename_all_to_first(uint8_t *cubin, size_t kernels)
{
	Elf64_Shdr section;
	uint32_t first;
	uint8_t *at;

	specimen_section(cubin, 3, &section);
	at = cubin + section.sh_offset;
	memcpy(&first, at + sizeof(Elf64_Sym) + offsetof(Elf64_Sym, st_name), sizeof(first));
	for (size_t i = 1; i <= kernels; i++)
		memcpy(at + i * sizeof(Elf64_Sym) + offsetof(Elf64_Sym, st_name), &first, sizeof(first));
}

static void names_over_one_another(_unused_ void **state)
{
	struct specimen_kernel kernels[SPECIMEN_KERNELS];
	char name[1001] = { 0 };
	struct strbuf text;
	uint8_t *cubin;
	size_t n;

	memset(name, 'n', sizeof(name) - 1);
	for (size_t i = 0; i < ARRAY_SIZE(kernels); i++)
		kernels[i] = (struct specimen_kernel){ .name = i ? "k" : name, .registers = 8, .code = 16 };
	cubin = cubin_of(kernels, ARRAY_SIZE(kernels), &n);
	rename_all_to_first(cubin, ARRAY_SIZE(kernels));
	strbuf_init(&text, 0);
	assert_int_equal(specimen_read(cubin, n, NULL, &text), 0);
	assert_int_equal(specimen_times(text.data, "n 8 0 "), 4);
	assert_once(&text,
		    "names of kernels are more than 4 times their table: those from symbol 5 of 65 on");
	strbuf_done(&text);
	free(cubin);
}

static void attributes_over_one_another(_unused_ void **state)
{
	struct specimen_kernel kernels[SPECIMEN_KERNELS];
	struct specimen_entry entries[2] = { { .arch = 80 } };
	struct strbuf bytes, text;
	uint8_t *cubin, *at;
	Elf64_Shdr section;

	for (size_t i = 0; i < ARRAY_SIZE(kernels); i++)
		kernels[i] = (struct specimen_kernel){ .name = "k", .registers = 8, .code = 16 };
	cubin = cubin_of(kernels, ARRAY_SIZE(kernels), &entries[0].n);
	for (size_t i = 0; i < 5 + 5 * ARRAY_SIZE(kernels); i++) {
		at = specimen_section(cubin, i, &section);
		if (section.sh_type != 0x70000000)
			continue;
		section.sh_offset = 0;
		section.sh_size = entries[0].n;
		memcpy(at, &section, sizeof(section));
	}
	entries[0].bytes = cubin;
	entries[1] = entries[0];
	entries[1].flags = SPECIMEN_LZ4;
	entries[1] = specimen_compressed(&entries[1]);
	strbuf_init(&bytes, 0);
	strbuf_init(&text, 0);
	specimen_fatbin(&bytes, entries, 2);
	assert_int_equal(specimen_read(bytes.data, bytes.len, NULL, &text), 0);
	assert_int_equal(specimen_times(text.data, "they lie over one another"), 2);
	assert_null(strstr(text.data, " k 8"));
	strbuf_done(&bytes);
	strbuf_done(&text);
	free((void *)(uintptr_t)entries[1].bytes);
	free(cubin);
}

static int any_image(_unused_ const struct cubin_image *image, _unused_ void *userdata)
{
	return 0;
}

static int any_kernel(_unused_ const struct cubin_image *image, _unused_ const struct cubin_kernel *kernel,
		      _unused_ void *userdata)
{
	return 0;
}

static bool asked(void *userdata)
{
	unsigned *left = userdata;

	return *left == 0 || --*left == 0;
}

static void it_can_be_stopped(_unused_ void **state)
{
	static const struct cubin_ops ops = { .image = any_image, .kernel = any_kernel, .stop = asked };
	struct strbuf bytes;
	struct cubin_memory memory;
	struct cubin_source source;
	unsigned left = 1000;

	strbuf_init(&bytes, 0);
	for (int i = 0; i < 10; i++)
		add_fatbin(&bytes);
	memory = (struct cubin_memory){ bytes.data, bytes.len };
	cubin_source_memory(&memory, &source);
	assert_int_equal(cubin_read(&source, NULL, &ops, &left), 0);
	/* Once at least for each container. */
	assert_in_range(left, 1, 990);
	for (unsigned after = 1; after <= 10; after++) {
		left = after;
		assert_int_equal(cubin_read(&source, NULL, &ops, &left), -ECANCELED);
	}
	/* In the containers' own loop, too: these are empty. */
	bytes.len = 0;
	for (int i = 0; i < 10; i++)
		specimen_fatbin(&bytes, NULL, 0);
	memory = (struct cubin_memory){ bytes.data, bytes.len };
	cubin_source_memory(&memory, &source);
	left = 10;
	assert_int_equal(cubin_read(&source, NULL, &ops, &left), -ECANCELED);
	strbuf_done(&bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sections_over_one_another),   cmocka_unit_test(wrappers_of_the_same),
		cmocka_unit_test(a_terabyte_of_padding),       cmocka_unit_test(entries_led_to_again),
		cmocka_unit_test(containers_that_are_none),    cmocka_unit_test(names_over_one_another),
		cmocka_unit_test(attributes_over_one_another), cmocka_unit_test(it_can_be_stopped),
	};

	return cmocka_run_group_tests_name("read_bounds", tests, NULL, NULL);
}
