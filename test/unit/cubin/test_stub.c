// SPDX-License-Identifier: Apache-2.0
/*
 * Host functions that stand for kernels, in files made byte by byte: what is no registration, and what lies.
 */
#include "cubin/stub.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "elf/image.h"
#include "elf/slow.h"
#include "test.h"

/*
 * In the image: a caller, the function that registers, one that gives handles, kernels' host functions; in
 * its data, names.
 */
enum {
	CALLER = IMAGE_CODE_ADDRESS,
	REGISTER = IMAGE_CODE_ADDRESS + 0xe0,
	GET_KERNEL = IMAGE_CODE_ADDRESS + 0xe8,
	HOST = IMAGE_CODE_ADDRESS + 0xf0,
	NAME = IMAGE_DATA_ADDRESS + 0x200, /* behind the code, which the data overlaps */
	OTHER_NAME = NAME + 0x40,
	VARIABLE = IMAGE_DATA_ADDRESS + 0x700, /* in memory only */
	NOTHING = 0x500000,
};

struct code {
	size_t n; /* of the caller */
	union image_file file;
};

struct seen {
	size_t n;
	struct stub stub[8];
	char symbol[8][64];
};

static void put(struct code *code, const void *bytes, size_t n)
{
	assert_true(code->n + n <= REGISTER - CALLER);
	memcpy(code->file.bytes + IMAGE_CODE_AT + code->n, bytes, n);
	code->n += n;
}
#define PUT(code, ...) put(code, (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

static void put_relative(struct code *code, uint32_t to)
{
	uint32_t distance = to - (uint32_t)(CALLER + code->n + 4);

	put(code, &distance, sizeof(distance));
}

static void lea_rsi(struct code *code, uint32_t to)
{
	PUT(code, 0x48, 0x8d, 0x35);
	put_relative(code, to);
}

static void lea_rdi(struct code *code, uint32_t to)
{
	PUT(code, 0x48, 0x8d, 0x3d);
	put_relative(code, to);
}

/* rdx, and rcx from it */
static void lea_name(struct code *code, uint32_t to)
{
	PUT(code, 0x48, 0x8d, 0x15);
	put_relative(code, to);
	PUT(code, 0x48, 0x89, 0xd1);
}

static void minus_one(struct code *code)
{
	PUT(code, 0x41, 0xb8, 0xff, 0xff, 0xff, 0xff);
}

static void call(struct code *code, uint32_t to)
{
	PUT(code, 0xe8);
	put_relative(code, to);
}

/* int3 everywhere, so that nothing is code by chance. */
static void begin(struct code *code, bool named)
{
	char *name = (char *)code->file.bytes + IMAGE_CODE_AT + 0x100 + (NAME - IMAGE_DATA_ADDRESS);

	image_init(&code->file);
	code->n = 0;
	memset(code->file.bytes + IMAGE_CODE_AT, 0xcc, IMAGE_CODE_BYTES);
	strcpy(name, "_Z6kernelPi");
	strcpy(name + (OTHER_NAME - NAME), "not a name");
	if (!named)
		return;
	image_add(&code->file, 0, "__cudaRegisterFunction", REGISTER, 8);
	image_add(&code->file, 0, "__cudaGetKernel", GET_KERNEL, 8);
}

static int see(const struct stub *stub, void *userdata)
{
	struct seen *seen = userdata;

	assert_true(seen->n < ARRAY_SIZE(seen->stub));
	seen->stub[seen->n] = *stub;
	strncpy(seen->symbol[seen->n], stub->symbol, sizeof(seen->symbol[0]) - 1);
	seen->n++;
	return 0;
}

static struct seen read_all(const void *bytes, size_t n, uint64_t *ret_skipped)
{
	_cleanup_close_ int fd = image_open(bytes, n);
	struct seen seen = { .n = 0 };

	*ret_skipped = 0;
	assert_int_equal(stubs_read(fd, -1, see, &seen, ret_skipped), 0);
	return seen;
}

static void expect(struct code *code, size_t stubs, uint64_t skipped)
{
	uint64_t got;
	struct seen seen = read_all(&code->file, sizeof(code->file), &got);

	assert_int_equal(seen.n, stubs);
	assert_int_equal(got, skipped);
	for (size_t i = 0; i < seen.n; i++) {
		assert_int_equal(seen.stub[i].address, HOST);
		assert_string_equal(seen.symbol[i], "_Z6kernelPi");
	}
}

static void test_registered(_unused_ void **state)
{
	struct code code;
	uint64_t skipped;
	struct seen seen;

	begin(&code, true);
	lea_rsi(&code, HOST);
	lea_name(&code, NAME);
	call(&code, REGISTER);
	lea_rdi(&code, VARIABLE);
	lea_rsi(&code, HOST);
	call(&code, GET_KERNEL);
	seen = read_all(&code.file, sizeof(code.file), &skipped);
	assert_int_equal(skipped, 0);
	assert_int_equal(seen.n, 1);
	assert_int_equal(seen.stub[0].address, HOST);
	assert_int_equal(seen.stub[0].handle_address, VARIABLE);
	assert_int_equal(seen.stub[0].source, KERNEL_SOURCE_REGISTERED);
	assert_string_equal(seen.symbol[0], "_Z6kernelPi");
}

static void test_twice_is_once(_unused_ void **state)
{
	struct code code;

	begin(&code, true);
	for (int i = 0; i < 2; i++) {
		lea_rsi(&code, HOST);
		lea_name(&code, NAME);
		call(&code, REGISTER);
	}
	expect(&code, 1, 0);
}

static void test_two_handles(_unused_ void **state)
{
	struct code code;
	uint64_t skipped;
	struct seen seen;

	begin(&code, true);
	lea_rsi(&code, HOST);
	lea_name(&code, NAME);
	call(&code, REGISTER);
	for (uint32_t i = 0; i < 2; i++) {
		lea_rsi(&code, HOST);
		lea_rdi(&code, VARIABLE + 16 * i);
		call(&code, GET_KERNEL);
	}
	seen = read_all(&code.file, sizeof(code.file), &skipped);
	assert_int_equal(seen.n, 2);
	assert_int_equal(seen.stub[0].handle_address, VARIABLE);
	assert_int_equal(seen.stub[1].handle_address, VARIABLE + 16);
}

/* A handle is kept in a variable, and not in code or nowhere. */
static void test_no_variable(_unused_ void **state)
{
	static const uint32_t places[] = { NOTHING, HOST };
	uint64_t skipped;
	struct code code;
	struct seen seen;

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		begin(&code, true);
		lea_rsi(&code, HOST);
		lea_name(&code, NAME);
		call(&code, REGISTER);
		lea_rdi(&code, places[i]);
		lea_rsi(&code, HOST);
		call(&code, GET_KERNEL);
		seen = read_all(&code.file, sizeof(code.file), &skipped);
		assert_int_equal(seen.n, 1);
		assert_int_equal(seen.stub[0].handle_address, 0);
	}
}

/* Arguments that are not known to be what they must be: nothing is told, and that is counted. */
static void test_not_known(_unused_ void **state)
{
	struct code code;

	begin(&code, true); /* a host function that is no code */
	lea_rsi(&code, NOTHING);
	lea_name(&code, NAME);
	call(&code, REGISTER);
	expect(&code, 0, 1);

	begin(&code, true); /* that is data */
	lea_rsi(&code, VARIABLE);
	lea_name(&code, NAME);
	call(&code, REGISTER);
	expect(&code, 0, 1);

	begin(&code, true); /* a name that is none */
	lea_rsi(&code, HOST);
	lea_name(&code, OTHER_NAME);
	call(&code, REGISTER);
	expect(&code, 0, 1);

	begin(&code, true); /* that is nowhere */
	lea_rsi(&code, HOST);
	lea_name(&code, NOTHING);
	call(&code, REGISTER);
	expect(&code, 0, 1);

	begin(&code, true); /* another call in between: registers are not what they were */
	lea_rsi(&code, HOST);
	lea_name(&code, NAME);
	call(&code, HOST);
	call(&code, REGISTER);
	expect(&code, 0, 1);

	begin(&code, true); /* a register that is written again: pop %rsi */
	lea_rsi(&code, HOST);
	lea_name(&code, NAME);
	PUT(&code, 0x5e);
	call(&code, REGISTER);
	expect(&code, 0, 1);

	begin(&code, true); /* the end of a function in between */
	lea_rsi(&code, HOST);
	lea_name(&code, NAME);
	PUT(&code, 0xc3);
	call(&code, REGISTER);
	expect(&code, 0, 1);
}

/*
 * A call instruction's bytes within another instruction: mov $..., %rax. Whatever comes before it does not
 * end where it begins.
 */
static void test_no_call(_unused_ void **state)
{
	struct code code;

	begin(&code, true);
	lea_rsi(&code, HOST);
	lea_name(&code, NAME);
	PUT(&code, 0x48, 0xb8, 0x90, 0x90);
	call(&code, REGISTER);
	PUT(&code, 0x90);
	expect(&code, 0, 1);
}

/*
 * Without symbols only a file with a fatbin's wrapper is looked into, and these files have no section names.
 */
static void test_no_evidence(_unused_ void **state)
{
	struct code code;

	begin(&code, false);
	lea_rsi(&code, HOST);
	lea_name(&code, NAME);
	minus_one(&code);
	call(&code, REGISTER);
	expect(&code, 0, 0);
}

static void test_name_without_end(_unused_ void **state)
{
	static uint8_t bytes[IMAGE_BYTES];
	struct code code;
	uint64_t skipped;

	begin(&code, true);
	memset(code.file.bytes + IMAGE_CODE_AT + 0x100 + (NAME - IMAGE_DATA_ADDRESS), 'a',
	       IMAGE_DATA_ADDRESS + 0x400 - NAME);
	lea_rsi(&code, HOST);
	lea_name(&code, NAME);
	call(&code, REGISTER);
	memcpy(bytes, &code.file, sizeof(bytes));
	assert_int_equal(read_all(bytes, sizeof(bytes), &skipped).n, 0);
	assert_int_equal(skipped, 1);
}

static void test_cut_off(_unused_ void **state)
{
	struct code code;
	uint64_t skipped;

	begin(&code, true);
	lea_rsi(&code, HOST);
	lea_name(&code, NAME);
	call(&code, REGISTER);
	for (size_t n = sizeof(struct image); n < sizeof(code.file); n += 7)
		assert_true(read_all(&code.file, n, &skipped).n <= 1);
}

static void test_no_elf(_unused_ void **state)
{
	_cleanup_close_ int fd = image_open("nothing", 7);
	uint64_t skipped = 5;
	int debug_fd = -5;

	assert_int_equal(stubs_read(fd, -1, see, NULL, &skipped), -ENOEXEC);
	assert_int_equal(skipped, 5);
	assert_int_equal(stub_debug_file(fd, "/", "/nothing", &debug_fd), -ENOENT);
	assert_int_equal(debug_fd, -5);
}

/*
 * Nothing but calls of the function, none of which has arguments: bounded in what is decoded, and that is
 * told.
 */
static void test_bounded(_unused_ void **state)
{
	enum { BYTES = 64 << 20 };
	struct code code;
	_cleanup_close_ int fd = -1;
	struct seen seen = { .n = 0 };
	uint64_t skipped = 0;
	uint8_t *bytes;

	begin(&code, true);
	code.file.image.segments[0].p_offset = IMAGE_BYTES;
	code.file.image.segments[0].p_filesz = code.file.image.segments[0].p_memsz = BYTES;
	for (size_t i = 1; i < IMAGE_SYMBOLS; i++)
		if (strcmp(code.file.image.full_names + code.file.image.full[i].st_name,
			   "__cudaRegisterFunction") == 0)
			code.file.image.full[i].st_value = IMAGE_CODE_ADDRESS + 5;
	fd = image_open(&code.file, sizeof(code.file));
	assert_int_equal(ftruncate(fd, IMAGE_BYTES + BYTES), 0);
	bytes = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, IMAGE_BYTES);
	assert_ptr_not_equal(bytes, MAP_FAILED);
	for (uint32_t at = 0; at + 5 <= BYTES; at += 5) {
		uint32_t distance = (uint32_t)-at;

		bytes[at] = 0xe8;
		memcpy(bytes + at + 1, &distance, sizeof(distance));
	}
	munmap(bytes, BYTES);
	assert_int_equal(stubs_read(fd, -1, see, &seen, &skipped), 0);
	assert_int_equal(seen.n, 0);
	assert_true(skipped >= BYTES / 5 - 1);
}

struct told {
	size_t n, bytes;
};

static int tell(const struct stub *stub, void *userdata)
{
	struct told *told = userdata;

	told->n++;
	told->bytes += strlen(stub->symbol);
	return 0;
}

/* Each name of a host function comes with each of its handles, unless these are made to be too many. */
static void test_product(_unused_ void **state)
{
	static const struct {
		unsigned n;
		bool all;
	} cases[] = { { 100, true }, { 1500, false } };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		size_t size, n = cases[i].n;
		_cleanup_free_ uint8_t *bytes = slow_make(SLOW_STUBS, cases[i].n, &size);
		_cleanup_close_ int fd = image_open(bytes, size);
		struct told told = { 0 };
		uint64_t skipped = 0;

		assert_int_equal(stubs_read(fd, -1, tell, &told, &skipped), 0);
		assert_true(told.n >= n);
		assert_int_equal(told.n == n * n, cases[i].all);
		assert_int_equal(skipped == 0, cases[i].all);
		assert_true(told.bytes + 64 * told.n <= (16 << 20) + 4 * size);
	}
}

static int stop(_unused_ const struct stub *stub, _unused_ void *userdata)
{
	return -ECANCELED;
}

static void test_stopped(_unused_ void **state)
{
	_cleanup_close_ int fd = -1;
	uint64_t skipped = 5;
	struct code code;

	begin(&code, true);
	lea_rsi(&code, HOST);
	lea_name(&code, NAME);
	call(&code, REGISTER);
	fd = image_open(&code.file, sizeof(code.file));
	assert_int_equal(stubs_read(fd, -1, stop, NULL, &skipped), -ECANCELED);
	assert_int_equal(skipped, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_registered),  cmocka_unit_test(test_twice_is_once),
		cmocka_unit_test(test_two_handles), cmocka_unit_test(test_no_variable),
		cmocka_unit_test(test_not_known),   cmocka_unit_test(test_no_call),
		cmocka_unit_test(test_no_evidence), cmocka_unit_test(test_name_without_end),
		cmocka_unit_test(test_cut_off),     cmocka_unit_test(test_no_elf),
		cmocka_unit_test(test_bounded),     cmocka_unit_test(test_product),
		cmocka_unit_test(test_stopped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
