// SPDX-License-Identifier: Apache-2.0
/* Files that lie about themselves, end early, or are something else. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "elf/elf.h"
#include "elf/image.h"
#include "elf/slow.h"

static int count(const struct elf_symbol *symbol, void *userdata)
{
	assert_true(strlen(symbol->name) <= ELF_NAME_MAX);
	++*(unsigned *)userdata;
	return 0;
}

/* Opens and reads all there is; what elf_open() gave, and how many functions were seen and skipped. */
static int read_all(const void *bytes, size_t n, unsigned *ret_functions, uint64_t *ret_skipped)
{
	_cleanup_(elf_closep) struct elf_file *elf = NULL;
	_cleanup_close_ int fd = image_open(bytes, n);
	uint8_t id[ELF_BUILD_ID_MAX];
	size_t id_n;
	int r = elf_open(fd, &elf);

	*ret_functions = 0;
	*ret_skipped = 0;
	if (r < 0)
		return r;
	assert_int_equal(elf_functions(elf, count, ret_functions), 0);
	*ret_skipped = elf_skipped(elf);
	r = elf_build_id(elf, id, &id_n);
	assert_true(r == 0 || r == -ENODATA);
	return 0;
}

static void refuses_what_is_not_read(_unused_ void **state)
{
	static const struct {
		size_t at;
		uint8_t value;
	} cases[] = {
		{ 0, 'E' },
		{ EI_CLASS, ELFCLASS32 },
		{ EI_DATA, ELFDATA2MSB },
		{ EI_VERSION, 0 },
		{ offsetof(Elf64_Ehdr, e_type), ET_REL },
		{ offsetof(Elf64_Ehdr, e_type), ET_CORE },
		{ offsetof(Elf64_Ehdr, e_phentsize), 32 },
		{ offsetof(Elf64_Ehdr, e_phnum) + 1, 0xff },
		{ offsetof(Elf64_Ehdr, e_phoff) + 7, 0xff },
	};
	union image_file file;
	unsigned functions;
	uint64_t skipped;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		image_init(&file);
		file.bytes[cases[i].at] = cases[i].value;
		assert_int_equal(read_all(&file, sizeof(file), &functions, &skipped), -ENOEXEC);
	}
}

static void refuses_what_is_no_file(_unused_ void **state)
{
	_cleanup_close_ int null = open("/dev/null", O_RDONLY | O_CLOEXEC),
			    folder = open("/", O_RDONLY | O_CLOEXEC);
	struct elf_file *elf = NULL;
	int ends[2];

	assert_int_equal(elf_open(null, &elf), -ENOEXEC);
	assert_int_equal(elf_open(folder, &elf), -ENOEXEC);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(elf_open(ends[0], &elf), -ENOEXEC);
	assert_int_equal(elf_open(-1, &elf), -EBADF);
	assert_null(elf);
	close(ends[0]);
	close(ends[1]);
}

/* Every length: nothing is read beyond the end, and what cannot be read is no function. */
static void bears_every_truncation(_unused_ void **state)
{
	union image_file file;
	unsigned functions, most = 0;
	uint64_t skipped;

	image_init(&file);
	for (size_t n = 0; n <= IMAGE_CODE_AT + 0x50; n++) {
		int r = read_all(&file, n, &functions, &skipped);

		assert_true(r == 0 || r == -ENOEXEC);
		assert_true(functions >= most);
		if (n <= IMAGE_CODE_AT)
			assert_int_equal(functions, 0);
		most = functions;
	}
	assert_int_equal(most, 4);
}

/* Shrinks behind our back: a mapped file would be a SIGBUS now. */
static void bears_a_file_cut_while_open(_unused_ void **state)
{
	_cleanup_(elf_closep) struct elf_file *elf = NULL;
	_cleanup_close_ int fd = -1;
	union image_file file;
	unsigned functions = 0;
	uint8_t buf[8];
	size_t n = 1;

	image_init(&file);
	fd = image_open(&file, sizeof(file));
	assert_int_equal(elf_open(fd, &elf), 0);
	assert_int_equal(ftruncate(fd, offsetof(struct image, full)), 0);
	assert_int_equal(elf_functions(elf, count, &functions), 0);
	assert_int_equal(functions, 0); /* the names are gone */
	assert_int_equal(elf_skipped(elf), 2 + IMAGE_SYMBOLS);
	assert_int_equal(elf_code(elf, IMAGE_CODE_AT, buf, sizeof(buf), &n), 0);
	assert_int_equal(n, 0);
}

static void counts_symbols_that_lie(_unused_ void **state)
{
	union image_file file;
	unsigned functions;
	uint64_t skipped;

	image_init(&file);
	image_add(&file, 1, "data", IMAGE_DATA_ADDRESS, 1);
	image_add(&file, 1, "nowhere", UINT64_MAX, UINT64_MAX);
	image_add(&file, 1, "name", IMAGE_CODE_ADDRESS, 1)->st_name = UINT32_MAX;
	image_add(&file, 0, "", IMAGE_CODE_ADDRESS, 1);
	assert_int_equal(read_all(&file, sizeof(file), &functions, &skipped), 0);
	assert_int_equal(functions, 4);
	assert_int_equal(skipped, 4);

	/* a name whose end is not in its table */
	image_init(&file);
	file.image.dynamic[2].st_name = 200;
	memset(file.image.dynamic_names + 200, 'x', 56);
	assert_int_equal(read_all(&file, sizeof(file), &functions, &skipped), 0);
	assert_int_equal(functions, 3);
	assert_int_equal(skipped, 1);
}

static void bounds_counts_that_lie(_unused_ void **state)
{
	union image_file file;
	unsigned functions;
	uint64_t skipped;

	/* a table said to be larger than the file: what is there is read, the rest is counted */
	image_init(&file);
	file.image.sections[1].sh_size = UINT64_MAX;
	assert_int_equal(read_all(&file, sizeof(file), &functions, &skipped), 0);
	assert_true(functions >= 4);
	assert_true(skipped >= UINT64_MAX / sizeof(Elf64_Sym) - ELF_SYMBOLS_MAX);

	for (size_t i = 1; i <= 4; i++) {
		image_init(&file);
		file.image.sections[i].sh_offset = UINT64_MAX - 100;
		assert_int_equal(read_all(&file, sizeof(file), &functions, &skipped), 0);
		assert_int_equal(functions, 2);
	}
	/* strings that are a symbol table, strings that are nowhere, symbols of another size */
	for (int i = 0; i < 3; i++) {
		image_init(&file);
		if (i == 0)
			file.image.sections[1].sh_link = 3;
		else if (i == 1)
			file.image.sections[1].sh_link = 4000000000;
		else
			file.image.sections[1].sh_entsize = 16;
		assert_int_equal(read_all(&file, sizeof(file), &functions, &skipped), 0);
		assert_int_equal(functions, 2);
	}
}

/* 0 says "look into the first section", which may say anything. */
static void bounds_sections_that_lie(_unused_ void **state)
{
	union image_file file;
	unsigned functions;
	uint64_t skipped;

	image_init(&file);
	file.image.header.e_shnum = 0;
	file.image.sections[0].sh_size = 5;
	assert_int_equal(read_all(&file, sizeof(file), &functions, &skipped), 0);
	assert_int_equal(functions, 4);
	file.image.sections[0].sh_size = UINT64_MAX;
	assert_int_equal(read_all(&file, sizeof(file), &functions, &skipped), 0);
	assert_int_equal(functions, 4);
	file.image.header.e_shoff = UINT64_MAX;
	assert_int_equal(read_all(&file, sizeof(file), &functions, &skipped), 0);
	assert_int_equal(functions, 0);
}

static void ignores_segments_that_wrap(_unused_ void **state)
{
	union image_file file;
	unsigned functions;
	uint64_t skipped;

	for (int i = 0; i < 3; i++) {
		image_init(&file);
		if (i == 0)
			file.image.segments[0].p_vaddr = UINT64_MAX - 0x10;
		else if (i == 1)
			file.image.segments[0].p_offset = UINT64_MAX - 0x10;
		else
			file.image.segments[0].p_filesz = UINT64_MAX;
		assert_int_equal(read_all(&file, sizeof(file), &functions, &skipped), 0);
		assert_int_equal(functions, 0);
		assert_int_equal(skipped, 4);
	}
}

struct slow {
	struct elf_file *file;
	unsigned seen, limited_at;
};

static int see_slow(_unused_ const struct elf_symbol *symbol, void *userdata)
{
	struct slow *slow = userdata;

	if (++slow->seen == slow->limited_at)
		elf_limit_cpu(slow->file, 0);
	return 0;
}

/* Symbols of any number and length, within a time. */
static void ends_when_the_time_is_over(_unused_ void **state)
{
	_cleanup_(elf_closep) struct elf_file *elf = NULL;
	size_t size;
	_cleanup_free_ uint8_t *bytes = slow_make(SLOW_NAMES, 2000, &size);
	_cleanup_close_ int fd = image_open(bytes, size);
	struct slow slow = { .limited_at = 100 };

	assert_int_equal(elf_open(fd, &elf), 0);
	slow.file = elf;
	assert_int_equal(elf_entries(elf, see_slow, &slow), -ETIME);
	assert_in_range(slow.seen, 100, 1000);
	slow.seen = 0;
	assert_int_equal(elf_functions(elf, see_slow, &slow), -ETIME);
	assert_int_equal(slow.seen, 0);
	elf_limit_cpu(elf, INT64_MAX);
	slow.limited_at = 0;
	assert_int_equal(elf_functions(elf, see_slow, &slow), 0);
	assert_int_equal(slow.seen, 2000);
}

static void bounds_notes_that_lie(_unused_ void **state)
{
	static const Elf64_Nhdr notes[] = {
		{ .n_namesz = UINT32_MAX, .n_descsz = 20, .n_type = NT_GNU_BUILD_ID },
		{ .n_namesz = 4, .n_descsz = UINT32_MAX, .n_type = NT_GNU_BUILD_ID },
		{ .n_namesz = 4, .n_descsz = 24, .n_type = NT_GNU_BUILD_ID },
		{ .n_namesz = 4, .n_descsz = 0, .n_type = NT_GNU_BUILD_ID },
		{ .n_namesz = 4, .n_descsz = 20, .n_type = NT_GNU_ABI_TAG },
	};
	union image_file file;

	for (size_t i = 0; i < ARRAY_SIZE(notes); i++) {
		_cleanup_(elf_closep) struct elf_file *elf = NULL;
		_cleanup_close_ int fd = -1;
		uint8_t id[ELF_BUILD_ID_MAX];
		size_t n;

		image_init(&file);
		file.image.build_id.note = notes[i];
		fd = image_open(&file, sizeof(file));
		assert_int_equal(elf_open(fd, &elf), 0);
		assert_int_equal(elf_build_id(elf, id, &n), -ENODATA);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refuses_what_is_not_read), cmocka_unit_test(refuses_what_is_no_file),
		cmocka_unit_test(bears_every_truncation),   cmocka_unit_test(bears_a_file_cut_while_open),
		cmocka_unit_test(counts_symbols_that_lie),  cmocka_unit_test(bounds_counts_that_lie),
		cmocka_unit_test(bounds_sections_that_lie), cmocka_unit_test(ignores_segments_that_wrap),
		cmocka_unit_test(bounds_notes_that_lie),    cmocka_unit_test(ends_when_the_time_is_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
