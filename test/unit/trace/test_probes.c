// SPDX-License-Identifier: Apache-2.0
/*
 * The table by itself. With --dump it prints its rows, a line each, for probes_toolkit.py, which holds them
 * against the toolkit's headers and libraries.
 */
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "trace/probe.h"

enum { STACK_ARGUMENTS = 23 }; /* no call has more */

static void names_are_unique_and_found(void **state)
{
	(void)state;
	assert_true(probes_n > 0 && probes_n <= TRACE_CALLS_MAX);
	for (uint16_t i = 0; i < probes_n; i++) {
		const struct probe *found = probe_find(probes[i].library, probes[i].symbol);

		assert_ptr_equal(found, &probes[i]);
		assert_int_equal(probe_call(found), i);
	}
	assert_null(probe_find(PROBE_CUDA, "cudaMalloc"));
	assert_null(probe_find(PROBE_CUDART, "cuInit"));
	assert_null(probe_find(PROBE_CUDA, ""));
	assert_null(probe_find(PROBE_CUDA, "cuMemAlloc"));
}

static void operands_are_within_range(void **state)
{
	(void)state;
	for (uint16_t i = 0; i < probes_n; i++) {
		const struct trace_spec *spec = &probes[i].spec;

		assert_true(probes[i].library < PROBE_LIBRARIES);
		assert_true(probes[i].group < PROBE_GROUPS);
		assert_true(*probe_group_name(probes[i].group));
		assert_true(spec->op < TRACE_OPS);
		for (unsigned k = 0; k < TRACE_OPERANDS; k++) {
			const struct trace_operand *operand = &spec->operands[k];

			assert_true(operand->from <= TRACE_FROM_DIGEST_MADE);
			if (operand->from == TRACE_FROM_NONE)
				continue;
			assert_true(operand->arg < STACK_ARGUMENTS);
			if (operand->from >= TRACE_FROM_DIGEST_IN) {
				assert_true(operand->width > 0 && operand->width % 8 == 0);
				continue;
			}
			assert_true(operand->width == 4 || operand->width == 8);
			if (spec->shape != TRACE_SHAPE_GEMM)
				assert_true(operand->value >= 0 && operand->value <= 4096);
		}
		assert_true(!spec->depth_in || spec->operands[TRACE_OPERAND_TIMES].from != TRACE_FROM_NONE);
	}
}

static void flags_follow_from_names(void **state)
{
	(void)state;
	for (uint16_t i = 0; i < probes_n; i++) {
		const struct probe *probe = &probes[i];
		bool twin = strstr(probe->symbol, "_ptsz") || strstr(probe->symbol, "_ptds");

		assert_int_equal(!!(probe->spec.event_flags & TRACE_FLAG_PER_THREAD), twin);
		assert_int_equal(!!(probe_spec(probe).event_flags & TRACE_FLAG_RUNTIME),
				 probe->library == PROBE_CUDART);
		/* What is called 20,000 times when a library is loaded costs one trap. */
		assert_int_equal(probe->may_return, probe->spec.op != TRACE_OP_FUNCTION_REGISTER);
		assert_int_equal(!!(probe->spec.event_flags & TRACE_FLAG_NO_RESULT), !probe->may_return);
		assert_int_equal(probe->library == PROBE_NCCL,
				 probe->spec.op >= TRACE_OP_NCCL_FIRST &&
					 probe->spec.op <= TRACE_OP_NCCL_LAST);
		/* The kernel side sends it when it returns, and knows what it is then. */
		assert_int_equal(probe->spec.shape == TRACE_SHAPE_NAME,
				 probe->spec.op == TRACE_OP_FUNCTION_NAME ||
					 probe->spec.op == TRACE_OP_MODULE_FILE);
		if (probe->spec.op >= TRACE_OP_MODULE_LOAD && probe->spec.op <= TRACE_OP_FUNCTION_ALIAS)
			assert_true(probe->spec.flags & TRACE_SPEC_ALWAYS);
		if (probe->spec.event_flags & TRACE_FLAG_WAITS)
			assert_int_equal(probe->spec.op, TRACE_OP_COPY);
		/* What is freed or allocated says of what kind it is. */
		if (probe->spec.op == TRACE_OP_ALLOC || probe->spec.op == TRACE_OP_FREE)
			assert_int_equal(probe->spec.operands[TRACE_OPERAND_KIND].from, TRACE_FROM_CONST);
	}
}

static void rows_fit_their_library(void **state)
{
	bool found[PROBE_LIBRARIES] = { false };

	(void)state;
	for (uint16_t i = 0; i < probes_n; i++) {
		const struct library *library = &probe_libraries[probes[i].library];
		struct trace_spec spec = probe_spec(&probes[i]);

		found[probes[i].library] = true;
		assert_true(library->groups >> probes[i].group & 1);
		assert_int_equal(spec.layer, library->layer);
		assert_in_range(spec.result, TRACE_RESULT_CUDA, TRACE_RESULT_NCCL);
	}
	for (unsigned i = 0; i < PROBE_LIBRARIES; i++) {
		const struct library *library = &probe_libraries[i];

		/* The user's rows, and those of patterns, are made while files are read. */
		assert_int_equal(found[i], i != PROBE_USER && i != PROBE_TORCH && i != PROBE_PYTHON);
		assert_true(*library->name && (!library->files[0]) == (i == PROBE_USER));
		assert_in_range(library->result, TRACE_RESULT_CUDA, TRACE_RESULT_NCCL);
		if (library->has_made_of)
			assert_int_equal(probe_libraries[library->made_of].layer, library->layer);
	}
}

static unsigned of_path(const char *path)
{
	return library_of_path(path, strlen(path));
}

static void files_are_recognised_by_name(void **state)
{
	(void)state;
	assert_int_equal(of_path("/usr/lib/libcuda.so.1"), LIBRARY_BIT(PROBE_CUDA));
	assert_int_equal(of_path("libcuda.so"), LIBRARY_BIT(PROBE_CUDA));
	assert_int_equal(of_path("/a/libcudart.so.12 (deleted)"), LIBRARY_BIT(PROBE_CUDART));
	assert_int_equal(of_path("/nvidia/nccl/lib/libnccl.so.2"), LIBRARY_BIT(PROBE_NCCL));
	assert_int_equal(of_path("/lib/libnccl-net.so"), 0);
	assert_int_equal(of_path("/lib/libc.so.6"), 0);
	assert_int_equal(of_path("/libcuda.so.1/other"), 0);
	assert_int_equal(of_path("/lib/libcuda.s"), 0);
	assert_int_equal(of_path("/lib/libcap.so.2"), 0);
	assert_int_equal(of_path("/"), 0);
	assert_int_equal(of_path(""), 0);
	assert_int_equal(library_of_path("/lib/libcuda.so.1", 8), 0); /* only so much of it */
}

static void dump(void)
{
	static const char *const columns[] = { "ADDR", "SIZE", "TIMES", "STREAM", "HANDLE", "KIND" };
	static const char *const from[] = { "NONE", "CONST",     "ARG",        "IN",
					    "OUT",  "DIGEST_IN", "DIGEST_OUT", "DIGEST_MADE" };

	for (uint16_t i = 0; i < probes_n; i++) {
		const struct trace_spec *spec = &probes[i].spec;

		printf("%s %s op=%u shape=%u depth=%u", probe_libraries[probes[i].library].name,
		       probes[i].symbol, spec->op, spec->shape, spec->depth_in);
		for (unsigned k = 0; k < TRACE_OPERANDS; k++)
			if (spec->operands[k].from != TRACE_FROM_NONE)
				printf(" %s=%s:%u:%u:%d", columns[k], from[spec->operands[k].from],
				       spec->operands[k].arg, spec->operands[k].width,
				       spec->operands[k].value);
		putchar('\n');
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_unique_and_found),   cmocka_unit_test(operands_are_within_range),
		cmocka_unit_test(flags_follow_from_names),      cmocka_unit_test(rows_fit_their_library),
		cmocka_unit_test(files_are_recognised_by_name),
	};

	if (argc > 1 && strcmp(argv[1], "--dump") == 0) {
		dump();
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
