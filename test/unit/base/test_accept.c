// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <string.h>

#include "base/accept.h"
#include "base/macro.h"

static void ranges_come_in_their_order(_unused_ void **state)
{
	static const struct {
		const char *name;
		int quality;
		const char *version;
	} wanted[] = {
		{ "a/b", 1000, "1.0" }, { "GZIP", 500, NULL }, { "*", 0, NULL },
		{ "x", -1, NULL },      { "", 1000, NULL },
	};
	const char *at = "a/b;version=\"1.0\", gzip ; q=0.5,*;q=0,x;q=2,";

	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		struct accept_range range;

		assert_non_null(at);
		at = accept_next(at, &range);
		assert_true(accept_is(&range, wanted[i].name));
		assert_int_equal(range.quality, wanted[i].quality);
		if (wanted[i].version)
			assert_memory_equal(range.version, wanted[i].version, range.version_n);
		else
			assert_null(range.version);
	}
	assert_null(at);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranges_come_in_their_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
