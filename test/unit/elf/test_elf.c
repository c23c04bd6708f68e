// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "elf/elf.h"
#include "elf/image.h"

struct seen {
	char text[1024];
	unsigned n;
	int stop_after;
};

static int note(const struct elf_symbol *s, void *userdata)
{
	struct seen *seen = userdata;
	size_t len = strlen(seen->text);

	snprintf(seen->text + len, sizeof(seen->text) - len, "%s%s %llx %llx %llx;", s->dynamic ? "*" : "",
		 s->name, (unsigned long long)s->address, (unsigned long long)s->offset,
		 (unsigned long long)s->size);
	return ++seen->n == (unsigned)seen->stop_after ? 7 : 0;
}

static void lists_functions_of_both_tables(_unused_ void **state)
{
	union image_file file;
	struct seen seen = { 0 };
	_cleanup_(elf_closep) struct elf_file *elf = NULL;
	_cleanup_close_ int fd = -1;

	image_init(&file);
	image_add(&file, 1, "resolver", IMAGE_CODE_ADDRESS, 1)->st_info =
		ELF64_ST_INFO(STB_GLOBAL, STT_GNU_IFUNC);
	image_add(&file, 1, "variable", IMAGE_CODE_ADDRESS, 1)->st_info =
		ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT);
	image_add(&file, 1, "elsewhere", 0, 0)->st_shndx = SHN_UNDEF;
	image_add(&file, 1, "weak", IMAGE_CODE_ADDRESS + 0x1ff, 1)->st_info =
		ELF64_ST_INFO(STB_WEAK, STT_FUNC);
	fd = image_open(&file, sizeof(file));
	assert_int_equal(elf_open(fd, &elf), 0);
	assert_int_equal(elf_machine(elf), EM_X86_64);
	assert_int_equal(elf_functions(elf, note, &seen), 0);
	assert_string_equal(seen.text, "*first 401000 1000 40;*second 401040 1040 40;*weak 4011ff 11ff 1;"
				       "first 401000 1000 40;local 401040 1040 0;");
	assert_int_equal(elf_skipped(elf), 0);
}

static void stops_when_told(_unused_ void **state)
{
	union image_file file;
	struct seen seen = { .stop_after = 3 };
	_cleanup_(elf_closep) struct elf_file *elf = NULL;
	_cleanup_close_ int fd = -1;

	image_init(&file);
	fd = image_open(&file, sizeof(file));
	assert_int_equal(elf_open(fd, &elf), 0);
	assert_int_equal(elf_functions(elf, note, &seen), 7);
	assert_int_equal(seen.n, 3);
}

static void reads_code_only_where_it_is(_unused_ void **state)
{
	union image_file file;
	_cleanup_(elf_closep) struct elf_file *elf = NULL;
	_cleanup_close_ int fd = -1;
	uint8_t buf[64];
	size_t n = 0;

	image_init(&file);
	fd = image_open(&file, sizeof(file));
	assert_int_equal(elf_open(fd, &elf), 0);
	assert_int_equal(elf_code(elf, IMAGE_CODE_AT + 0x20, buf, sizeof(buf), &n), 0);
	assert_int_equal(n, sizeof(buf));
	assert_int_equal(buf[0], 0x20);
	assert_int_equal(buf[63], 0x5f);
	/* in the data's segment, too */
	assert_int_equal(elf_code(elf, IMAGE_CODE_AT + 0x1f0, buf, sizeof(buf), &n), 0);
	assert_int_equal(n, 0x10);
	assert_int_equal(elf_code(elf, IMAGE_CODE_AT + 0x200, buf, sizeof(buf), &n), -ENOENT);
	assert_int_equal(elf_code(elf, IMAGE_CODE_AT - 1, buf, sizeof(buf), &n), -ENOENT);
	assert_int_equal(elf_code(elf, UINT64_MAX, buf, sizeof(buf), &n), -ENOENT);
	assert_int_equal(n, 0x10);
}

static void turns_addresses_into_offsets_and_back(_unused_ void **state)
{
	union image_file file;
	_cleanup_(elf_closep) struct elf_file *elf = NULL;
	_cleanup_close_ int fd = -1;
	uint64_t v = 0;

	image_init(&file);
	fd = image_open(&file, sizeof(file));
	assert_int_equal(elf_open(fd, &elf), 0);
	assert_int_equal(elf_offset(elf, IMAGE_CODE_ADDRESS + 0x123, &v), 0);
	assert_int_equal(v, IMAGE_CODE_AT + 0x123);
	assert_int_equal(elf_address(elf, v, &v), 0);
	assert_int_equal(v, IMAGE_CODE_ADDRESS + 0x123);
	assert_int_equal(elf_offset(elf, IMAGE_DATA_ADDRESS + 0x10, &v), 0);
	assert_int_equal(v, IMAGE_CODE_AT + 0x110);
	/* of data that is in memory only */
	assert_int_equal(elf_offset(elf, IMAGE_DATA_ADDRESS + 0x400, &v), -ENOENT);
	assert_int_equal(elf_address(elf, 0, &v), -ENOENT);
}

static void reads_the_build_id(_unused_ void **state)
{
	union image_file file;
	_cleanup_(elf_closep) struct elf_file *elf = NULL;
	_cleanup_close_ int fd = -1;
	uint8_t id[ELF_BUILD_ID_MAX];
	size_t n = 0;

	image_init(&file);
	fd = image_open(&file, sizeof(file));
	assert_int_equal(elf_open(fd, &elf), 0);
	assert_int_equal(elf_build_id(elf, id, &n), 0);
	assert_int_equal(n, 20);
	assert_int_equal(id[19], 20);
}

static int find_own(const struct elf_symbol *s, void *userdata)
{
	if (!STRV_EQ(s->name, "reads_the_build_id"))
		return 0;
	*(struct elf_symbol *)userdata = *s;
	return 1;
}

/* This very program, as its linker made it. */
static void reads_a_linked_file(_unused_ void **state)
{
	_cleanup_(elf_closep) struct elf_file *elf = NULL;
	_cleanup_close_ int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct elf_symbol symbol = { 0 };
	uint8_t buf[16];
	Dl_info info;
	uint64_t v;
	size_t n;

	assert_true(fd >= 0);
	assert_int_equal(elf_open(fd, &elf), 0);
	assert_int_equal(elf_functions(elf, find_own, &symbol), 1);
	assert_false(symbol.dynamic);
	assert_true(symbol.size > 16);
	assert_int_equal(elf_code(elf, symbol.offset, buf, sizeof(buf), &n), 0);
	assert_int_equal(n, sizeof(buf));
	assert_memory_equal(buf, (const void *)(uintptr_t)reads_the_build_id, sizeof(buf));
	assert_int_equal(elf_address(elf, symbol.offset, &v), 0);
	assert_true(v == symbol.address);
	assert_int_not_equal(dladdr((const void *)(uintptr_t)reads_the_build_id, &info), 0);
	assert_true((uintptr_t)reads_the_build_id - (uintptr_t)info.dli_fbase == symbol.address);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_functions_of_both_tables),
		cmocka_unit_test(stops_when_told),
		cmocka_unit_test(reads_code_only_where_it_is),
		cmocka_unit_test(turns_addresses_into_offsets_and_back),
		cmocka_unit_test(reads_the_build_id),
		cmocka_unit_test(reads_a_linked_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
