// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include "base/macro.h"
#include "model/device_code.h"

static void forms_have_names(_unused_ void **state)
{
	assert_string_equal(cubin_kind_name(CUBIN_PTX), "ptx");
	assert_string_equal(cubin_kind_name(CUBIN_ELF), "elf");
	assert_string_equal(cubin_kind_name(CUBIN_OTHER), "other");
	assert_string_equal(cubin_compression_name(CUBIN_PLAIN), "none");
	assert_string_equal(cubin_compression_name(CUBIN_LZ4), "lz4");
	assert_string_equal(cubin_compression_name(CUBIN_ZSTD), "zstd");
	assert_string_equal(cubin_compression_name(CUBIN_LZ_OLD), "lz");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forms_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
