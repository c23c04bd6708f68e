// SPDX-License-Identifier: Apache-2.0
/* Which functions patterns find, and the rows that these get. */
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "trace/pattern.h"

static const bool torch[PROBE_LIBRARIES] = { [PROBE_TORCH] = true };

static const bool python[PROBE_LIBRARIES] = { [PROBE_PYTHON] = true };

static const struct trace_spec *spec_of(const bool libraries[PROBE_LIBRARIES], const char *symbol)
{
	static const struct trace_spec none;
	uint8_t pattern = pattern_of(libraries, symbol);

	return pattern ? &patterns[pattern - 1].spec : &none;
}

static enum trace_op op_of(const char *symbol)
{
	return spec_of(torch, symbol)->op;
}

static void operators_are_found(_unused_ void **state)
{
	static const char *const found[] = {
		"_ZN2at4_ops10add_Tensor4callERKNS_6TensorES4_RKN3c106ScalarE",
		"_ZN2at4_ops4relu4callERKNS_6TensorE",
		"_ZL22THPEngine_run_backwardP7_objectS0_S0_",
		"_Z22THPEngine_run_backwardP7_objectS0_S0_",
	};
	static const char *const others[] = {
		"_ZN2at4_ops10add_Tensor10redispatchEN3c1014DispatchKeySetERKNS_6TensorES6_RKNS2_6ScalarE",
		"_ZN2at4_ops10add_Tensor4callERKNS_6TensorES4_RKN3c106ScalarE.cold",
		"_ZN2at4_ops10add_Tensor10schema_strE",
		"_ZN2at4_ops99add_Tensor4callE",
		"_ZN2at4_ops",
		"_ZN2at4_ops0add",
		"_ZN2at4_ops99999999999999999999add4callE",
		"_ZL22THPEngine_run_backwardP7_objectS0_S0_.cold",
		"22THPEngine_run_backwardP7_objectS0_S0_",
		"call",
		"",
	};

	for (size_t i = 0; i < ARRAY_SIZE(found); i++)
		assert_int_equal(op_of(found[i]), TRACE_OP_OPERATOR);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		assert_int_equal(op_of(others[i]), TRACE_OP_NONE);
}

static void functions_of_python_are_found(_unused_ void **state)
{
	static const struct {
		const char *symbol;
		enum trace_op op;
		bool generation; /* its argument is known */
	} rows[] = {
		{ "PyObject_CallFunction", TRACE_OP_PYTHON_CALL, false },
		{ "PyObject_CallFunctionObjArgs", TRACE_OP_NONE, false },
		{ "gc_collect_main", TRACE_OP_PYTHON_GC, true },
		{ "collect", TRACE_OP_PYTHON_GC, true },
		{ "collect.constprop.0", TRACE_OP_PYTHON_GC, false },
		{ "gc_collect_main.isra.0", TRACE_OP_PYTHON_GC, false },
		{ "gc_collect_main.cold", TRACE_OP_NONE, false },
		{ "collect.constprop.0.cold", TRACE_OP_NONE, false },
		{ "collections_exec", TRACE_OP_NONE, false },
		{ "invoke_gc_callback", TRACE_OP_PYTHON_GC_PHASE, false },
		{ "invoke_gc_callback.isra.0", TRACE_OP_PYTHON_GC_PHASE, false },
		{ "invoke_gc_callback.isra.0.cold", TRACE_OP_NONE, false },
		{ "_ZN2at4_ops4relu4callERKNS_6TensorE", TRACE_OP_NONE, false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct trace_spec *spec = spec_of(python, rows[i].symbol);

		assert_int_equal(spec->op, rows[i].op);
		assert_int_equal(spec->operands[TRACE_OPERAND_KIND].from != TRACE_FROM_NONE,
				 rows[i].generation);
		assert_int_equal(spec->flags & TRACE_SPEC_RETURNS, 0);
	}
	assert_int_equal(pattern_of(torch, "gc_collect_main"), 0);
}

static void bindings_are_found(_unused_ void **state)
{
	static const char *const others[] = {
		"_ZN5torch8autogradL15THPVariable_addEP7_objectS2_S2_.cold",
		"_ZZN5torch8autogradL15THPVariable_addEP7_objectS2_S2_E6parser",
		"_ZN5torch8autogradL16THPVariable_add_EP7_objectS2_S2_",
		"_ZN5torch8autogradL17THPVariable_addmmEP7_objectS2_S2_", /* none of those */
		"_ZN5torch8autogradL12THPVariable_EP7_objectS2_S2_",
		"_ZN5torch8autogradL3addEP7_objectS2_S2_",
	};

	assert_int_equal(op_of("_ZN5torch8autogradL15THPVariable_addEP7_objectS2_S2_"), TRACE_OP_BINDING);
	assert_int_equal(op_of("_ZN5torch8autogradL16THPVariable_reluEP7_objectS2_"), TRACE_OP_BINDING);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		assert_int_equal(op_of(others[i]), TRACE_OP_NONE);
}

#define STRING "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"

static void what_else_pytorch_has_is_found(_unused_ void **state)
{
	static const struct {
		const char *symbol;
		enum trace_op op;
	} found[] = {
		{ "_ZN5torch8autograd6Engine17evaluate_functionERSt10shared_ptrINS0_9GraphTaskEE"
		  "PNS0_4NodeERNS0_11InputBufferERKS2_INS0_10ReadyQueueEE",
		  TRACE_OP_TORCH_NODE },
		{ "_ZN5torch8autograd4impl17set_gradient_edgeERKN2at6TensorENS0_4EdgeE",
		  TRACE_OP_TORCH_EDGE },
		{ "_ZN5torch8autograd4impl17set_gradient_edgeERKN2at10TensorBaseENS0_4EdgeE",
		  TRACE_OP_TORCH_EDGE },
		{ "_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE", TRACE_OP_TORCH_MEMORY },
		{ "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE", TRACE_OP_TORCH_MEMORY },
		{ "_ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE", TRACE_OP_TORCH_OOM },
		{ "_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE", TRACE_OP_TORCH_OOM },
		{ "_ZN5torch8autograd8profiler25record_function_enter_newERK" STRING "RKSt8optionalIS7_E",
		  TRACE_OP_TORCH_RANGE },
		{ "_ZN5torch8autograd8profiler25record_function_enter_newERKSsRKSt8optionalISsE",
		  TRACE_OP_TORCH_RANGE },
		{ "_ZN5torch8autograd8profiler25record_function_enter_newERKSsRKN3c108optionalISsEE",
		  TRACE_OP_TORCH_RANGE },
		/* Arguments that are not known: nothing is read from them. */
		{ "_ZN5torch8autograd6Engine17evaluate_functionEPNS0_4NodeE", TRACE_OP_NONE },
		{ "_ZN5torch8autograd4impl17set_gradient_edgeERKN2at6TensorERNS0_4EdgeE", TRACE_OP_NONE },
		{ "_ZN3c1027reportMemoryUsageToProfilerEPvlmNS_6DeviceE", TRACE_OP_NONE },
		{ "_ZN3c1027reportOutOfMemoryToProfilerElmmmNS_6DeviceE", TRACE_OP_NONE },
		{ "_ZN5torch8autograd8profiler25record_function_enter_newESt17basic_string_viewIcE",
		  TRACE_OP_NONE },
		{ "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE.cold", TRACE_OP_NONE },
	};

	for (size_t i = 0; i < ARRAY_SIZE(found); i++)
		assert_int_equal(op_of(found[i].symbol), found[i].op);
}

static void only_of_wanted_libraries(_unused_ void **state)
{
	static const bool none[PROBE_LIBRARIES] = { [PROBE_CUDA] = true };

	assert_true(pattern_is_used(torch));
	assert_false(pattern_is_used(none));
	assert_int_equal(pattern_of(none, "_ZN2at4_ops4relu4callERKNS_6TensorE"), 0);
}

/* Files of users have half of the rows, and root's find some when these are full. */
static void rows_are_bounded(_unused_ void **state)
{
	char symbol[64];
	uint16_t call, first, again;
	unsigned i;

	library_set_patterns(true);
	assert_int_equal(probe_of_pattern(1, "_ZN2at4_ops4relu4callE", false, &first), 0);
	assert_int_equal(probe_of_pattern(1, "_ZN2at4_ops4relu4callE", true, &again), 0);
	assert_int_equal(again, first);
	assert_int_equal(probe_at(first)->group, PROBE_GROUP_OPERATORS);
	assert_int_equal(probe_spec(probe_at(first)).layer, TRACE_LAYER_TORCH);
	assert_false(probe_at(first)->may_return);
	assert_int_equal(probe_call(probe_at(first)), first);
	for (i = 0; i < PATTERN_ROWS_MAX; i++) {
		snprintf(symbol, sizeof(symbol), "_ZN2at4_ops%zu%05u4callE", (size_t)5, i);
		if (probe_of_pattern(1, symbol, true, &call) < 0)
			break;
	}
	assert_int_equal(i, PATTERN_ROWS_MAX / 2);
	assert_int_equal(probe_of_pattern(1, "_ZN2at4_ops3add4callE", false, &call), 0);
	assert_string_equal(probe_at(call)->symbol, "_ZN2at4_ops3add4callE");
	assert_int_equal(call, probe_calls() - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(operators_are_found),
		cmocka_unit_test(bindings_are_found),
		cmocka_unit_test(functions_of_python_are_found),
		cmocka_unit_test(what_else_pytorch_has_is_found),
		cmocka_unit_test(only_of_wanted_libraries),
		cmocka_unit_test(rows_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
