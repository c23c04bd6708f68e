// SPDX-License-Identifier: Apache-2.0
/*
 * Programs as nvcc makes them, with our own runtime in place of CUDA's: every kernel of theirs gets its name
 * and figures.
 */
#include "needs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "symbolize/house.h"

#define ARCHS                                                                               \
	"-gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90 -gencode " \
	"arch=compute_90,code=compute_90 "
#define ONE_ARCH "-gencode arch=compute_90,code=sm_90 "

static bool skipped;

static int open_all(void **state)
{
	skipped = !house_has_nvcc();
	if (house_open(state) < 0)
		return -1;
	if (skipped)
		return 0;
	compile("plain", ARCHS "-O2 -Xlinker --build-id");
	compile("plain.so", ARCHS "-DLIBRARY -shared -Xcompiler -fPIC");
	return 0;
}

#define NEEDS_NVCC                                                              \
	do {                                                                    \
		if (skipped)                                                    \
			need_unmet("nvcc is not on PATH, no program is named"); \
	} while (0)

static struct symbolizer *begin(const struct symbolizer_config *config)
{
	static const struct symbolizer_config plain = { .read_memory = true };

	return patient_symbolizer(config ? config : &plain);
}

/* What each of the four kernels is: what the program calls it, and what compilers and people do. */
static const struct expected {
	const char *what, *symbol, *name, *brief;
	int64_t shared;
} expected[] = {
	{ "templated", "_ZN5house9templatedIdLi32EEEvPT_", "void house::templated<double, 32>(double*)",
	  "templated<...>", 256 },
	{ "anonymous", "9anonymousEPi", "::anonymous(int*)", "anonymous", 0 },
	{ "twin", "twin", "twin", "twin", 512 },
	{ "lambda", "_Z5applyI", "void apply<", "apply<...>", 0 },
};

static void check_kernel(const struct kernel *kernel, const struct expected *e, const char *output)
{
	assert_non_null(strstr(kernel->symbol, e->symbol));
	assert_non_null(strstr(kernel->name, e->name));
	assert_string_equal(kernel->brief, e->brief);
	assert_int_equal(kernel->arch.sm, 90);
	assert_false(kernel->jit);
	assert_int_equal(kernel->figures[KERNEL_REGISTERS], ptxas(output, e->symbol, 90, "registers"));
	assert_int_equal(kernel->figures[KERNEL_STATIC_SHARED], e->shared);
	assert_true(kernel->figures[KERNEL_CODE] > 0);
}

static void check_all(struct symbolizer *symbolizer, const struct program *program, const char *output,
		      enum kernel_source source, const char *file)
{
	for (unsigned i = 0; i < ARRAY_SIZE(expected); i++) {
		struct kernel *kernel =
			ask(symbolizer, question_of(program, told(program, expected[i].what)));
		size_t n = strlen(kernel->file), m = strlen(file);

		assert_int_equal(kernel->source, source);
		assert_true(n > m && strcmp(kernel->file + n - m, file) == 0);
		check_kernel(kernel, &expected[i], output);
		kernel_unref(kernel);
	}
}

static void check_program(const char *output, const char *run, enum kernel_source source)
{
	struct symbolizer *symbolizer = begin(NULL);
	struct program program;
	char path[64];

	snprintf(path, sizeof(path), "./%s", run);
	start(&program, path, NULL);
	check_all(symbolizer, &program, output, source, run);
	stop(&program);
	symbolizer_free(symbolizer);
}

static void a_program(_unused_ void **state)
{
	NEEDS_NVCC;
	check_program("plain", "plain", KERNEL_SOURCE_REGISTERED);
}

static void a_stripped_program(_unused_ void **state)
{
	NEEDS_NVCC;
	command("cp plain stripped && strip stripped");
	check_program("plain", "stripped", KERNEL_SOURCE_REGISTERED);
}

static void a_program_at_a_fixed_address(_unused_ void **state)
{
	NEEDS_NVCC;
	compile("fixed", ONE_ARCH "-Xcompiler -fno-pie -Xlinker -no-pie");
	check_program("fixed", "fixed", KERNEL_SOURCE_REGISTERED);
}

static void relocatable_device_code(_unused_ void **state)
{
	NEEDS_NVCC;
	command("nvcc --extended-lambda -rdc=true " ONE_ARCH
		"-Xptxas -v -c -o rdc.o %s/test/unit/symbolize/kernels.cu > rdc.log 2>&1",
		test_source_root());
	command("nvcc " ONE_ARCH "-dlink -o linked.o rdc.o && g++ -o rdc rdc.o linked.o runtime.o -ldl");
	check_program("rdc", "rdc", KERNEL_SOURCE_REGISTERED);
}

/* Linked so that a section's address is far from its offset in the file. */
static void addresses_that_are_no_offsets(_unused_ void **state)
{
	NEEDS_NVCC;
	compile("far",
		ONE_ARCH "-Xlinker -Ttext-segment=0x10000000,-z,max-page-size=0x200000,-z,separate-code");
	check_program("far", "far", KERNEL_SOURCE_REGISTERED);
}

static void a_library_opened_later(_unused_ void **state)
{
	struct symbolizer *symbolizer;
	struct program program;

	NEEDS_NVCC;
	symbolizer = begin(NULL);
	start(&program, "./plain", NULL);
	check_all(symbolizer, &program, "plain", KERNEL_SOURCE_REGISTERED, "plain");
	order(&program, "open ./plain.so");
	check_all(symbolizer, &program, "plain.so", KERNEL_SOURCE_REGISTERED, "plain.so");
	stop(&program);
	symbolizer_free(symbolizer);
}

/* Deleted, and another file in its place: what is mapped is what counts. */
static void a_file_that_is_no_longer_there(_unused_ void **state)
{
	struct symbolizer *symbolizer;
	struct program program;

	NEEDS_NVCC;
	symbolizer = begin(NULL);
	command("cp plain gone");
	start(&program, "./gone", NULL);
	command("rm gone && echo nothing > gone");
	check_all(symbolizer, &program, "plain", KERNEL_SOURCE_REGISTERED, "gone");
	stop(&program);
	symbolizer_free(symbolizer);
}

/* The runtime gave handles, before anybody looked; what a stub keeps in its variable says whose they are. */
static void handles_that_stubs_keep(_unused_ void **state)
{
	struct symbolizer *symbolizer;
	struct program program;

	NEED_CALL(process_vm_readv);
	NEEDS_NVCC;
	symbolizer = begin(NULL);
	start(&program, "./plain", "LAUNCH=1");
	for (unsigned i = 0; i < ARRAY_SIZE(expected); i++) {
		struct symbolizer_question q =
			question_of(&program, told(&program, expected[i].what) + UINT64_C(0x5a0000000000));
		struct kernel *kernel;

		kernel = ask(symbolizer, q);
		if (STRV_EQ(expected[i].what, "anonymous")) { /* never launched: it has none */
			assert_int_equal(kernel->source, KERNEL_SOURCE_UNRESOLVED);
		} else {
			assert_int_equal(kernel->source, KERNEL_SOURCE_REGISTERED);
			check_kernel(kernel, &expected[i], "plain");
		}
		kernel_unref(kernel);
	}
	stop(&program);
	symbolizer_free(symbolizer);
}

static struct kernel *ask_sm(struct symbolizer *symbolizer, const struct program *program, uint16_t sm)
{
	struct symbolizer_question q = question_of(program, told(program, "twin"));

	q.sm = sm;
	return ask(symbolizer, q);
}

static void check_sm(struct symbolizer *symbolizer, const struct program *program, uint16_t sm,
		     uint16_t taken, bool jit)
{
	struct kernel *kernel = ask_sm(symbolizer, program, sm);

	assert_string_equal(kernel->symbol, "twin");
	assert_int_equal(kernel->arch.sm, taken);
	assert_int_equal(kernel->jit, jit);
	assert_int_equal(kernel->figures[KERNEL_REGISTERS],
			 taken ? ptxas("plain", "twin", taken, "registers") : -1);
	assert_int_equal(kernel->figures[KERNEL_MAX_THREADS], -1);
	kernel_unref(kernel);
}

static void the_image_that_the_device_takes(_unused_ void **state)
{
	struct symbolizer *symbolizer;
	struct program program;

	NEEDS_NVCC;
	symbolizer = begin(NULL);
	start(&program, "./plain", NULL);
	check_sm(symbolizer, &program, 90, 90, false);
	check_sm(symbolizer, &program, 80, 80, false);
	check_sm(symbolizer, &program, 86, 80, false);
	check_sm(symbolizer, &program, 75, 0, false); /* nothing for it */
	check_sm(symbolizer, &program, 120, 0, true); /* PTX */
	check_sm(symbolizer, &program, 0, 0, false); /* which device is not known */
	stop(&program);
	symbolizer_free(symbolizer);
}

static void launch_bounds(_unused_ void **state)
{
	struct symbolizer *symbolizer;
	struct program program;
	struct kernel *kernel;

	NEEDS_NVCC;
	symbolizer = begin(NULL);
	start(&program, "./plain", NULL);
	kernel = ask(symbolizer, question_of(&program, told(&program, "templated")));
	assert_int_equal(kernel->figures[KERNEL_MAX_THREADS], 128);
	kernel_unref(kernel);
	stop(&program);
	symbolizer_free(symbolizer);
}

/* Its files were seen while it lived, and are held until it is told to be over. */
static void a_program_that_has_ended(_unused_ void **state)
{
	struct symbolizer *symbolizer;
	struct program program;
	struct symbolizer_question q;
	struct kernel *kernel;
	uint64_t since;

	NEEDS_NVCC;
	symbolizer = begin(NULL);
	command("cp plain.so late.so");
	start(&program, "./plain", NULL);
	order(&program, "open ./late.so");
	q = question_of(&program, told(&program, "main") + 1);
	since = q.incarnation;
	kernel_unref(ask(symbolizer, q));
	stop(&program);
	command("rm late.so");
	q = question_of(&program, told(&program, "templated"));
	q.process.pid = (uint32_t)program.pid;
	q.incarnation = since;
	kernel = ask(symbolizer, q);
	check_kernel(kernel, &expected[0], "plain.so");
	kernel_unref(kernel);
	symbolizer_forget(symbolizer, (pid_t)q.process.pid, since);
	kernel = ask(symbolizer, q);
	assert_int_equal(kernel->source, KERNEL_SOURCE_UNRESOLVED);
	kernel_unref(kernel);
	symbolizer_free(symbolizer);
}

/* ---- handles that were seen made ---- */

static void a_name_that_is_known(_unused_ void **state)
{
	struct symbolizer *symbolizer;
	struct program program;
	struct symbolizer_question q;
	struct kernel *kernel;

	NEEDS_NVCC;
	symbolizer = begin(NULL);
	start(&program, "./plain", NULL);
	q = question_of(&program, 0x1234);
	q.symbol = expected[0].symbol;
	kernel = ask(symbolizer, q);
	assert_int_equal(kernel->source, KERNEL_SOURCE_HANDLE);
	check_kernel(kernel, &expected[0], "plain");
	assert_non_null(strstr(kernel->file, "/plain"));
	kernel_unref(kernel);
	q = question_of(&program, 0x1234);
	q.symbol = "_Z7nowherev";
	kernel = ask(symbolizer, q);
	assert_int_equal(kernel->source, KERNEL_SOURCE_HANDLE);
	assert_string_equal(kernel->brief, "nowhere");
	assert_int_equal(kernel->figures[KERNEL_REGISTERS], -1);
	assert_string_equal(kernel->file, "");
	kernel_unref(kernel);
	stop(&program);
	symbolizer_free(symbolizer);
}

/* Two files have a kernel of the same name: what they do not agree on is not known. */
static void a_name_in_two_files(_unused_ void **state)
{
	struct symbolizer *symbolizer;
	struct program program;
	struct symbolizer_question q;
	struct kernel *kernel;

	NEEDS_NVCC;
	compile("other.so", ONE_ARCH "-DTHREADS=256 -DLIBRARY -shared -Xcompiler -fPIC");
	symbolizer = begin(NULL);
	start(&program, "./plain", NULL);
	order(&program, "open ./other.so");
	q = question_of(&program, 0x1234);
	q.symbol = "twin";
	kernel = ask(symbolizer, q);
	assert_int_equal(ptxas("plain", "twin", 90, "bytes smem"), 512);
	assert_int_equal(ptxas("other.so", "twin", 90, "bytes smem"), 1024);
	assert_int_equal(kernel->figures[KERNEL_STATIC_SHARED], -1);
	assert_int_equal(kernel->figures[KERNEL_BARRIERS], 1);
	assert_string_equal(kernel->file, "");
	kernel_unref(kernel);
	kernel = ask(symbolizer, question_of(&program, told(&program, "twin")));
	assert_int_equal(kernel->figures[KERNEL_STATIC_SHARED], 1024);
	kernel_unref(kernel);
	stop(&program);
	symbolizer_free(symbolizer);
}

static struct kernel *ask_image(struct symbolizer *symbolizer, const struct program *program, uint64_t since)
{
	struct symbolizer_question q = question_of(program, 0x1234);

	q.incarnation = since;
	q.symbol = "twin";
	q.image = told(program, "image");
	return ask(symbolizer, q);
}

static void images_in_memory(_unused_ void **state)
{
	struct symbolizer *symbolizer;
	struct program program;
	struct kernel *kernel;
	uint64_t since;

	NEEDS_NVCC;
	for (unsigned threads = 128; threads <= 512; threads += 384)
		command("nvcc --extended-lambda -DLIBRARY -DTHREADS=%u -cubin -arch=sm_90 -o %s.cubin "
			"%s/test/unit/symbolize/kernels.cu",
			threads, threads == 128 ? "small" : "large", test_source_root());
	NEED_CALL(process_vm_readv); /* the files are another case's, too */
	symbolizer = begin(NULL);
	start(&program, "./plain", NULL);
	since = incarnation();
	order(&program, "load small.cubin");
	assert_int_equal(symbolizer_image(symbolizer, program.pid, since, told(&program, "image"), 0), 0);
	kernel = ask_image(symbolizer, &program, since);
	assert_int_equal(kernel->source, KERNEL_SOURCE_HANDLE);
	assert_int_equal(kernel->figures[KERNEL_STATIC_SHARED], 512);
	kernel_unref(kernel);
	/* It has been overwritten, which changes nothing of what was loaded. */
	order(&program, "load nothing");
	kernel = ask_image(symbolizer, &program, since);
	assert_int_equal(kernel->figures[KERNEL_STATIC_SHARED], 512);
	assert_int_equal(kernel->arch.sm, 90);
	kernel_unref(kernel);
	/* Another at the same place: whose kernel it is cannot be told. */
	order(&program, "load large.cubin");
	assert_int_equal(symbolizer_image(symbolizer, program.pid, since, told(&program, "image"), 0), 0);
	kernel = ask_image(symbolizer, &program, since);
	assert_int_equal(kernel->figures[KERNEL_STATIC_SHARED], -1);
	assert_int_equal(kernel->figures[KERNEL_BARRIERS], 1);
	kernel_unref(kernel);
	/* Of another process at the same place nothing is known. */
	kernel = ask_image(symbolizer, &program, since + 1);
	assert_int_equal(kernel->figures[KERNEL_BARRIERS], -1);
	kernel_unref(kernel);
	stop(&program);
	symbolizer_free(symbolizer);
}

/*
 * A compiler loads the next image from where the last one lay, before that was read: neither has the other's
 * figures.
 */
static void a_buffer_used_again(_unused_ void **state)
{
	struct symbolizer_config config = { .read_memory = true };
	struct symbolizer_question first, second;
	struct program program;
	struct symbolizer *symbolizer;
	struct kernel *kernel;
	struct stall stall;

	NEEDS_NVCC;
	start(&program, "./plain", NULL);
	stall_open(&stall, program.pid);
	config.proc_root = stall.root;
	symbolizer = begin(&config);
	stall_begin(&stall, symbolizer);
	order(&program, "load small.cubin");
	assert_int_equal(symbolizer_image(symbolizer, program.pid, program.incarnation,
					  told(&program, "image"), 0),
			 0);
	first = question_of(&program, 0x1234);
	first.symbol = "twin";
	first.image = told(&program, "image");
	assert_int_equal(symbolizer_ask(symbolizer, &first), 0);
	order(&program, "load large.cubin");
	assert_int_equal(symbolizer_image(symbolizer, program.pid, program.incarnation,
					  told(&program, "image"), 0),
			 0);
	second = first;
	second.id++;
	assert_int_equal(symbolizer_ask(symbolizer, &second), 0);
	stall_end(&stall, symbolizer);
	for (unsigned i = 0; i < 2; i++) {
		kernel = wait_for(symbolizer, first.id + i);
		assert_int_equal(kernel->source, KERNEL_SOURCE_HANDLE);
		assert_int_equal(kernel->figures[KERNEL_STATIC_SHARED], -1);
		kernel_unref(kernel);
	}
	stop(&program);
	symbolizer_free(symbolizer);
	stall_close(&stall);
}

/* Two containers in one file, each with a kernel of that name. */
static void a_name_twice_in_a_file(_unused_ void **state)
{
	struct symbolizer *symbolizer;
	struct program program;
	struct symbolizer_question q;
	struct kernel *kernel;

	NEED_CALL(process_vm_readv);
	NEEDS_NVCC;
	for (unsigned threads = 128; threads <= 512; threads += 384)
		command("nvcc --extended-lambda -DLIBRARY -DTHREADS=%u -fatbin -arch=sm_90 -o %u.fatbin "
			"%s/test/unit/symbolize/kernels.cu",
			threads, threads, test_source_root());
	command("cat 128.fatbin 512.fatbin > both.fatbin");
	symbolizer = begin(NULL);
	start(&program, "./plain", NULL);
	q = question_of(&program, 0x1234);
	q.symbol = "twin";
	q.path = "both.fatbin";
	kernel = ask(symbolizer, q);
	assert_int_equal(kernel->figures[KERNEL_STATIC_SHARED], -1);
	assert_int_equal(kernel->figures[KERNEL_BARRIERS], 1);
	assert_int_equal(kernel->arch.sm, 90);
	kernel_unref(kernel);
	stop(&program);
	symbolizer_free(symbolizer);
}

static void a_file_that_was_loaded(_unused_ void **state)
{
	struct symbolizer *symbolizer;
	struct program program;
	struct kernel *kernel;
	char path[128];

	NEED_CALL(process_vm_readv);
	NEEDS_NVCC;
	symbolizer = begin(NULL);
	start(&program, "./plain", NULL);
	for (unsigned i = 0; i < 3; i++) {
		struct symbolizer_question q = question_of(&program, 0x1234);

		snprintf(path, sizeof(path), "%s%slarge.cubin", i ? house_dir : "", i ? "/" : "");
		if (i == 2)
			snprintf(path, sizeof(path), "..%s/large.cubin", strrchr(house_dir, '/'));
		q.symbol = "twin";
		q.path = path;
		kernel = ask(symbolizer, q);
		assert_int_equal(kernel->figures[KERNEL_STATIC_SHARED], 2048);
		assert_string_equal(kernel->file, path);
		kernel_unref(kernel);
	}
	stop(&program);
	symbolizer_free(symbolizer);
}

/* ---- memory ---- */

static struct kernel *ask_handle(struct symbolizer *symbolizer, const struct program *program)
{
	return ask(symbolizer, question_of(program, told(program, "handle")));
}

static void names_in_memory(_unused_ void **state)
{
	const struct symbolizer_config no_memory = { .read_memory = false };
	struct symbolizer *symbolizer, *without;
	struct program program;
	struct kernel *kernel;

	NEED_CALL(process_vm_readv);
	NEEDS_NVCC;
	symbolizer = begin(NULL);
	without = begin(&no_memory);
	start(&program, "./plain", NULL);
	order(&program, "handle twim %s", expected[0].symbol);
	kernel = ask_handle(symbolizer, &program);
	assert_int_equal(kernel->source, KERNEL_SOURCE_MEMORY);
	check_kernel(kernel, &expected[0], "plain");
	kernel_unref(kernel);
	kernel = ask_handle(without, &program);
	assert_int_equal(kernel->source, KERNEL_SOURCE_UNRESOLVED);
	kernel_unref(kernel);
	/* Two names: none is taken. The same one twice is one. */
	order(&program, "handle %s twin", expected[0].symbol);
	kernel = ask_handle(symbolizer, &program);
	assert_int_equal(kernel->source, KERNEL_SOURCE_UNRESOLVED);
	kernel_unref(kernel);
	order(&program, "handle twin twin twinn");
	kernel = ask_handle(symbolizer, &program);
	assert_string_equal(kernel->symbol, "twin");
	kernel_unref(kernel);
	/* The nearest counts: the other one is a neighbour's, 240 and more bytes away. Both there: none. */
	for (unsigned near = 2; near <= 40; near += 38) {
		char names[512] = "handle";

		for (unsigned i = 0; i < 45; i++)
			strcat(names, i == near ? " twin" :
				      i == 42   ? " _ZN5house9templatedIdLi32EEEvPT_" :
						  " x");
		order(&program, "%s", names);
		kernel = ask_handle(symbolizer, &program);
		assert_int_equal(kernel->source, near == 2 ? KERNEL_SOURCE_MEMORY : KERNEL_SOURCE_UNRESOLVED);
		kernel_unref(kernel);
	}
	stop(&program);
	symbolizer_free(symbolizer);
	symbolizer_free(without);
}

/* ---- many processes, little memory ---- */

enum { PROCESSES = 20 };

static void one_file_of_many_processes(_unused_ void **state)
{
	struct program programs[PROCESSES];
	struct symbolizer_stats one, stats;
	struct kernel *first = NULL;
	struct symbolizer *symbolizer;

	NEEDS_NVCC;
	symbolizer = begin(NULL);
	/* A copy in another place is the same file: containers have such. */
	command("mkdir -p elsewhere && cp plain elsewhere/plain && cmp plain elsewhere/plain");
	for (unsigned i = 0; i < PROCESSES; i++) {
		struct kernel *kernel;

		start(&programs[i], i % 2 ? "./elsewhere/plain" : "./plain", NULL);
		kernel = ask(symbolizer, question_of(&programs[i], told(&programs[i], "twin")));
		assert_int_equal(kernel->figures[KERNEL_STATIC_SHARED], 512);
		if (i == 0) {
			first = kernel;
			symbolizer_stats(symbolizer, &one);
			continue;
		}
		assert_int_equal(i % 2, kernel != first); /* shared, where it is of one path */
		kernel_unref(kernel);
	}
	symbolizer_stats(symbolizer, &stats);
	assert_int_equal(one.files_read, 2); /* its stubs, its figures */
	assert_int_equal(stats.files_read, 2);
	assert_int_equal(stats.kernels, 2);
	assert_int_equal(stats.evicted, 0);
	assert_int_equal(stats.named[KERNEL_SOURCE_REGISTERED], PROCESSES);
	for (unsigned i = 0; i < PROCESSES; i++) {
		symbolizer_forget(symbolizer, programs[i].pid, programs[i].incarnation);
		stop(&programs[i]);
	}
	kernel_unref(first);
	symbolizer_free(symbolizer);
}

/* Tables go and are read again, and nothing is wrong for that. */
static void check_little(const struct symbolizer_limits *limits)
{
	const struct symbolizer_config config = { .limits = *limits };
	struct program program;
	struct symbolizer *symbolizer;
	struct symbolizer_stats stats;

	symbolizer = begin(&config);
	start(&program, "./plain", NULL);
	order(&program, "open ./plain.so");
	order(&program, "open ./other.so");
	for (unsigned i = 0; i < 4; i++) {
		struct symbolizer_question q = question_of(&program, program.told[i].address);
		struct kernel *kernel = ask(symbolizer, q);

		check_kernel(kernel, &expected[i], "plain");
		kernel_unref(kernel);
		q = question_of(&program, 0x1234);
		q.symbol = "twin";
		kernel = ask(symbolizer, q);
		assert_int_equal(kernel->figures[KERNEL_STATIC_SHARED], -1);
		kernel_unref(kernel);
	}
	symbolizer_stats(symbolizer, &stats);
	assert_true(stats.evicted > 0);
	if (limits->files)
		assert_true(stats.files <= limits->files);
	stop(&program);
	symbolizer_free(symbolizer);
}

static void too_little_memory(_unused_ void **state)
{
	NEEDS_NVCC;
	check_little(&(struct symbolizer_limits){ .bytes = 1 << 10 });
	check_little(&(struct symbolizer_limits){ .files = 2 });
}

/* What the tables take, and that it is given back. */
static void memory_is_counted(_unused_ void **state)
{
	struct program program;
	struct symbolizer *symbolizer;
	struct symbolizer_stats stats;
	struct symbolizer_question q;

	NEEDS_NVCC;
	symbolizer = begin(NULL);
	start(&program, "./plain", NULL);
	q = question_of(&program, told(&program, "twin"));
	kernel_unref(ask(symbolizer, q));
	symbolizer_stats(symbolizer, &stats);
	assert_in_range(stats.bytes, 1000, 100000);
	assert_true(stats.seconds > 0);
	symbolizer_forget(symbolizer, (pid_t)q.process.pid, q.incarnation);
	q = question_of(&program, told(&program, "main") + 1);
	kernel_unref(ask(symbolizer, q));
	assert_in_range(stats.bytes, 1000, 100000);
	stop(&program);
	symbolizer_free(symbolizer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_program),
		cmocka_unit_test(a_stripped_program),
		cmocka_unit_test(a_program_at_a_fixed_address),
		cmocka_unit_test(relocatable_device_code),
		cmocka_unit_test(addresses_that_are_no_offsets),
		cmocka_unit_test(a_library_opened_later),
		cmocka_unit_test(a_file_that_is_no_longer_there),
		cmocka_unit_test(handles_that_stubs_keep),
		cmocka_unit_test(the_image_that_the_device_takes),
		cmocka_unit_test(launch_bounds),
		cmocka_unit_test(a_program_that_has_ended),
		cmocka_unit_test(a_name_that_is_known),
		cmocka_unit_test(a_name_in_two_files),
		cmocka_unit_test(images_in_memory),
		cmocka_unit_test(a_buffer_used_again),
		cmocka_unit_test(a_name_twice_in_a_file),
		cmocka_unit_test(a_file_that_was_loaded),
		cmocka_unit_test(names_in_memory),
		cmocka_unit_test(one_file_of_many_processes),
		cmocka_unit_test(too_little_memory),
		cmocka_unit_test(memory_is_counted),
	};

	return cmocka_run_group_tests(tests, open_all, house_close);
}
