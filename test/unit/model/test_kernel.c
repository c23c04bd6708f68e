// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <string.h>

#include "base/macro.h"
#include "model/kernel.h"

static void architectures_are_read_and_written(void **state)
{
	static const struct {
		const char *text;
		int r;
		uint16_t sm;
		char variant;
		const char *written;
	} rows[] = {
		{ "sm_90a", 0, 90, 'a', "sm_90a" },  { "sm_100f", 0, 100, 'f', "sm_100f" },
		{ "compute_75", 0, 75, 0, "sm_75" }, { "compute_120f", 0, 120, 'f', "sm_120f" },
		{ "90a", 0, 90, 'a', "sm_90a" },     { "86", 0, 86, 0, "sm_86" },
		{ "", -EINVAL, 0, 0, NULL },         { "sm_", -EINVAL, 0, 0, NULL },
		{ "sm_9", -EINVAL, 0, 0, NULL },     { "sm_90b", -EINVAL, 0, 0, NULL },
		{ "sm_90aa", -EINVAL, 0, 0, NULL },  { "sm_90 ", -EINVAL, 0, 0, NULL },
		{ " sm_90", -EINVAL, 0, 0, NULL },   { "sm_sm_90", -EINVAL, 0, 0, NULL },
		{ "SM_90", -EINVAL, 0, 0, NULL },    { "sm_-90", -EINVAL, 0, 0, NULL },
		{ "sm_00", -EINVAL, 0, 0, NULL },    { "sm_99999", -EINVAL, 0, 0, NULL },
		{ "hopper", -EINVAL, 0, 0, NULL },
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		struct kernel_arch arch = { 1, 'x' };
		char text[KERNEL_ARCH_TEXT];

		assert_int_equal(kernel_arch_parse(rows[i].text, &arch), rows[i].r);
		if (rows[i].r < 0) {
			assert_int_equal(arch.sm, 1);
			continue;
		}
		assert_int_equal(arch.sm, rows[i].sm);
		assert_int_equal(arch.variant, rows[i].variant);
		kernel_arch_text(arch, text);
		assert_string_equal(text, rows[i].written);
	}
}

static void an_unknown_architecture_is_no_text(void **state)
{
	char text[KERNEL_ARCH_TEXT] = "x";

	(void)state;
	kernel_arch_text((struct kernel_arch){ 0 }, text);
	assert_string_equal(text, "");
	kernel_arch_text((struct kernel_arch){ UINT16_MAX, 'a' }, text);
	assert_string_equal(text, "sm_65535a");
}

static void every_figure_has_its_names(void **state)
{
	(void)state;
	for (unsigned i = 0; i < KERNEL_FIGURES; i++) {
		assert_true(strlen(kernel_figures[i].json) > 0 && strlen(kernel_figures[i].help) > 0);
		for (unsigned j = 0; j < i; j++) {
			assert_string_not_equal(kernel_figures[i].json, kernel_figures[j].json);
			assert_string_not_equal(kernel_figures[i].heading, kernel_figures[j].heading);
		}
	}
	assert_string_equal(kernel_figures[KERNEL_STATIC_SHARED].json, "static_shared_bytes");
	assert_string_equal(kernel_source_name(KERNEL_SOURCE_HANDLE), "handle");
	assert_string_equal(kernel_source_name(KERNEL_SOURCE_UNRESOLVED), "unresolved");
}

static void a_kernel_keeps_its_own_texts(void **state)
{
	char symbol[] = "_Z1kv", name[] = "k()", brief[] = "k", file[] = "/lib/libk.so";
	struct kernel from = { .source = KERNEL_SOURCE_SYMBOL,
			       .symbol = symbol,
			       .name = name,
			       .brief = brief,
			       .file = file,
			       .arch = { 90, 'a' },
			       .figures = { [KERNEL_REGISTERS] = 32, [KERNEL_CODE] = -1 } };
	struct kernel *kernel = NULL;

	(void)state;
	assert_int_equal(kernel_new(&from, &kernel), 0);
	memset(symbol, 'x', sizeof(symbol) - 1);
	memset(name, 'x', sizeof(name) - 1);
	memset(brief, 'x', sizeof(brief) - 1);
	memset(file, 'x', sizeof(file) - 1);
	assert_ptr_equal(kernel_ref(kernel), kernel);
	kernel_unref(kernel);
	assert_string_equal(kernel->symbol, "_Z1kv");
	assert_string_equal(kernel->name, "k()");
	assert_string_equal(kernel->brief, "k");
	assert_string_equal(kernel->file, "/lib/libk.so");
	assert_int_equal(kernel->arch.variant, 'a');
	assert_int_equal(kernel->figures[KERNEL_REGISTERS], 32);
	assert_int_equal(kernel->figures[KERNEL_CODE], -1);
	kernel_unref(kernel);
	kernel_unref(NULL);
	assert_null(kernel_ref(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(architectures_are_read_and_written),
		cmocka_unit_test(an_unknown_architecture_is_no_text),
		cmocka_unit_test(every_figure_has_its_names),
		cmocka_unit_test(a_kernel_keeps_its_own_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
