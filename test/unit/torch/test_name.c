// SPDX-License-Identifier: Apache-2.0
/* Names of operators from symbols of several versions of PyTorch. */
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "base/text.h"
#include "torch/name.h"

static void expect(const char *symbol, const char *name)
{
	char found[TORCH_NAME_MAX];

	torch_name(symbol, found);
	assert_string_equal(found, name);
}

/* As at::_ops::<class>::call is mangled. */
static void expect_class(const char *class, const char *name)
{
	char symbol[256];

	snprintf(symbol, sizeof(symbol), "_ZN2at4_ops%zu%s4callERKNS_6TensorE", strlen(class), class);
	expect(symbol, name);
}

static void operators(_unused_ void **state)
{
	static const struct {
		const char *class, *name;
	} names[] = {
		{ "add_Tensor", "add.Tensor" },
		{ "add__Tensor", "add_.Tensor" },
		{ "add_out", "add.out" },
		{ "relu", "relu" },
		{ "relu_", "relu_" },
		{ "_foreach_add_Scalar", "_foreach_add.Scalar" },
		{ "sum_dim_IntList", "sum.dim_IntList" },
		{ "transpose_int", "transpose.int" },
		{ "max_pool2d_with_indices", "max_pool2d_with_indices" },
		{ "max_pool2d_with_indices_backward_grad_input",
		  "max_pool2d_with_indices_backward.grad_input" },
		{ "unique_dim_out", "unique_dim.out" },
		{ "upsample_nearest2d_vec_out", "upsample_nearest2d.vec_out" },
		{ "_cast_Float", "_cast_Float" },
		{ "convolution", "convolution" },
		{ "_", "_" },
		{ "__", "__" },
		{ "_Tensor", "_Tensor" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		expect_class(names[i].class, names[i].name);
}

static void others(_unused_ void **state)
{
	expect("_ZN5torch8autogradL15THPVariable_addEP7_objectS2_S2_", "add");
	expect("_ZN5torch8autogradL22THPVariable_max_pool2dEP7_objectS2_S2_", "max_pool2d");
	expect("_ZL22THPEngine_run_backwardP7_objectS0_S0_", "backward");
	expect("_ZN5torch8autograd6Engine17evaluate_functionERSt10shared_ptrINS0_9GraphTaskEE",
	       "backward.node");
	expect("_ZN2at4_ops99add4call", "_ZN2at4_ops99add4call");
	expect("_ZN2at4_ops18446744073709551615add", "_ZN2at4_ops18446744073709551615add");
	expect("_ZN2at4_ops", "_ZN2at4_ops");
	expect("", "");
}

static void long_names_are_cut(_unused_ void **state)
{
	char class[200], symbol[300], found[TORCH_NAME_MAX];

	memset(class, 'a', sizeof(class));
	memcpy(class + 150, "_Tensor", sizeof("_Tensor"));
	snprintf(symbol, sizeof(symbol), "_ZN2at4_ops%zu%s4callE", strlen(class), class);
	torch_name(symbol, found);
	assert_int_equal(strlen(found), TORCH_NAME_MAX - 1);
	/* In the middle of a character; an odd length, so that one is cut. */
	class[0] = 'a';
	for (unsigned i = 1; i + 1 < sizeof(class); i += 2)
		memcpy(class + i, "\xc3\xa9", 2);
	class[199] = '\0';
	snprintf(symbol, sizeof(symbol), "_ZN2at4_ops%zu%s4callE", strlen(class), class);
	torch_name(symbol, found);
	assert_true(utf8_valid(found, strlen(found)));
	snprintf(symbol, sizeof(symbol), "b%s", class);
	torch_name(symbol, found);
	assert_true(utf8_valid(found, strlen(found)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(operators),
		cmocka_unit_test(others),
		cmocka_unit_test(long_names_are_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
