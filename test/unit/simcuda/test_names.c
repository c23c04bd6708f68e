// SPDX-License-Identifier: Apache-2.0
/*
 * Functions' handles and names, as programs get them from the simulated libcuda and libcudart: names of any
 * length, found behind the handle by a program that reads the process's memory.
 */
#include "test.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "sim/cuda/abi.h"
#include "sim/workload/tally.h"

enum { LOOK = 1024 };

static int get_function(struct cu_module *module, const char *name, struct cu_function **ret_function)
{
	return TALLY(cuModuleGetFunction, (struct cu_function **, struct cu_module *, const char *),
		     (ret_function, module, name));
}

static const char *name_of(struct cu_function *function)
{
	const char *name = NULL;

	assert_int_equal(TALLY(cuFuncGetName, (const char **, struct cu_function *), (&name, function)), 0);
	return name;
}

static char *long_name(size_t n, char last)
{
	char *name = malloc(n + 1);

	assert_non_null(name);
	memset(name, 'n', n);
	name[n - 1] = last;
	name[n] = '\0';
	return name;
}

static struct cu_module *new_module(void)
{
	struct cu_context *context = NULL;
	struct cu_module *module = NULL;

	assert_int_equal(TALLY(cuInit, (unsigned), (0)), 0);
	assert_int_equal(TALLY(cuDevicePrimaryCtxRetain, (struct cu_context **, int), (&context, 0)), 0);
	assert_int_equal(TALLY(cuCtxSetCurrent, (struct cu_context *), (context)), 0);
	assert_int_equal(TALLY(cuModuleLoadData, (struct cu_module **, const void *), (&module, "//ptx")), 0);
	return module;
}

static void names_of_any_length(_unused_ void **state)
{
	static const size_t lengths[] = { 1, 103, 104, 4096, 5000, 100000 };
	struct cu_module *module = new_module();

	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		_cleanup_free_ char *name = long_name(lengths[i], 'a'), *other = long_name(lengths[i], 'b');
		struct cu_function *function, *again, *second;

		assert_int_equal(get_function(module, name, &function), 0);
		assert_int_equal(get_function(module, name, &again), 0);
		assert_int_equal(get_function(module, other, &second), 0);
		assert_ptr_equal(function, again);
		assert_ptr_not_equal(function, second);
		assert_string_equal(name_of(function), name);
		assert_string_equal(name_of(second), other);
	}
}

/* Pointers to text of the function's, within what readers look at. */
static void a_name_lies_behind_its_handle(_unused_ void **state)
{
	struct cu_module *module = new_module();
	struct cu_function *functions[3];

	for (size_t i = 0; i < ARRAY_SIZE(functions); i++) {
		char name[] = "kernel0";

		name[6] = (char)('0' + i);
		assert_int_equal(get_function(module, name, &functions[i]), 0);
	}
	for (size_t i = 0; i < ARRAY_SIZE(functions); i++) {
		const char *const *words = (const char *const *)(const void *)functions[i];
		unsigned found = 0;

		for (size_t word = 0; word < LOOK / sizeof(*words); word++) {
			found += words[word] == name_of(functions[i]);
			for (size_t k = 0; k < ARRAY_SIZE(functions); k++)
				assert_true(k == i || words[word] != name_of(functions[k]));
		}
		assert_int_equal(found, 1);
	}
}

/* ---- the runtime ---- */

/* What nvcc's start-up code does. */
static int stub;

static void **start_up(const char *name)
{
	static const char image[] = "//ptx";
	static struct cuda_fatbin_wrapper wrapper = { .magic = CUDA_FATBIN_WRAPPER_MAGIC,
						      .version = 1,
						      .image = image };
	void **(*add_fatbin)(void *);
	void (*add_function)(void **, const void *, char *, const char *, int, void *, void *, void *, void *,
			     int *);
	void **fatbin;

	*(void **)&add_fatbin = tally_symbol("__cudaRegisterFatBinary");
	*(void **)&add_function = tally_symbol("__cudaRegisterFunction");
	assert_non_null(add_fatbin);
	assert_non_null(add_function);
	fatbin = add_fatbin(&wrapper);
	add_function(fatbin, &stub, NULL, name, -1, NULL, NULL, NULL, NULL, NULL);
	return fatbin;
}

static int runtime_launch(void)
{
	static const struct cuda_dim3 one = { 1, 1, 1 };

	return TALLY(cudaLaunchKernel,
		     (const void *, struct cuda_dim3, struct cuda_dim3, void **, size_t, struct cu_stream *),
		     (&stub, one, one, NULL, 0, NULL));
}

static int runtime_name(const void *function, const char **ret_name)
{
	return TALLY(cudaFuncGetName, (const char **, const void *), (ret_name, function));
}

static void kernels_of_the_runtime(_unused_ void **state)
{
	_cleanup_free_ char *name = long_name(5000, 'z');
	void **fatbin = start_up(name);
	void (*end)(void **);
	struct cu_function *kernel = NULL, *function = NULL;
	const char *found;

	assert_int_equal(runtime_launch(), 0);
	assert_int_equal(TALLY(cudaGetKernel, (struct cu_function **, const void *), (&kernel, &stub)), 0);
	assert_string_equal(name_of(kernel), name);
	assert_int_equal(
		TALLY(cudaGetFuncBySymbol, (struct cu_function **, const void *), (&function, &stub)), 0);
	assert_string_equal(name_of(function), name);
	assert_int_equal(runtime_name(&stub, &found), 0);
	assert_string_equal(found, name);
	assert_int_equal(runtime_name(kernel, &found), 0);
	assert_string_equal(found, name);
	assert_int_equal(runtime_name(&found, &found), CU_INVALID_DEVICE_FUNCTION);
	assert_int_equal(TALLY(cudaGetFuncBySymbol, (struct cu_function **, const void *),
			       (&function, &found)),
			 CU_INVALID_DEVICE_FUNCTION);
	/* The library is closed: its kernels are gone, and may come again. */
	*(void **)&end = tally_symbol("__cudaUnregisterFatBinary");
	end(fatbin);
	assert_int_equal(runtime_launch(), CU_INVALID_DEVICE_FUNCTION);
	assert_int_equal(TALLY(cuFuncGetName, (const char **, struct cu_function *), (&found, kernel)),
			 CU_INVALID_HANDLE);
	start_up("again");
	assert_int_equal(runtime_name(&stub, &found), 0);
	assert_string_equal(found, "again");
	assert_int_equal(runtime_launch(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_of_any_length),
		cmocka_unit_test(a_name_lies_behind_its_handle),
		cmocka_unit_test(kernels_of_the_runtime),
	};
	static const char *const libraries[] = { "libcuda.so.1", "libcudart.so.13" };
	char path[4096];

	setenv("GPUSONDE_SIM_SCENARIO", "desktop-1gpu", 1);
	setenv("GPUSONDE_SIM_CUDA_KERNEL_US", "0", 1);
	for (size_t i = 0; i < ARRAY_SIZE(libraries); i++) {
		snprintf(path, sizeof(path), "%s/sim/cuda/%s", getenv("GPUSONDE_TEST_BUILD"), libraries[i]);
		if (tally_load(path) < 0)
			return 1;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
