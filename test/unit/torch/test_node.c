// SPDX-License-Identifier: Apache-2.0
/* Names of nodes, from the names of types in C++: a name that is not understood is none. */
#include "test.h"

#include <string.h>

#include "base/macro.h"
#include "torch/torch.h"

static void names(_unused_ void **state)
{
	static const struct {
		const char *type, *name;
	} known[] = {
		{ "N5torch8autograd9generated12MulBackward0E", "MulBackward0" },
		{ "N5torch8autograd14AccumulateGradE", "AccumulateGrad" },
		{ "*N5torch8autograd6PyNodeE", "PyNode" },
		{ "N5torch8autograd7CppNodeIN5mine7MySquareEEE", "CppNode" },
	};
	char name[TORCH_LABEL];

	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		assert_true(torch_node_name(known[i].type, name));
		assert_string_equal(name, known[i].name);
	}
}

static void others_have_none(_unused_ void **state)
{
	static const char *const others[] = {
		"",
		"*",
		"N",
		"NE",
		"12MulBackward0",
		"N5torch8autograd9generated12MulBackward0",
		"N5torch8autograd9generated13MulBackward0E",
		"N5torch8autograd9generated12MulBackward0EX",
		"N5torch99999999999999999999MulE",
		"N5torch0E",
		"N3a\nb2cdE",
		"N5torch4NodeIiE3BarE", /* of a template's member the template's name is not shown */
	};
	char name[TORCH_LABEL], much[TORCH_LABEL + 16];

	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		assert_false(torch_node_name(others[i], name));
	memcpy(much, "N96", 3);
	memset(much + 3, 'x', 96);
	strcpy(much + 99, "E");
	assert_false(torch_node_name(much, name));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),
		cmocka_unit_test(others_have_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
