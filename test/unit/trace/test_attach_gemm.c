// SPDX-License-Identifier: Apache-2.0
/*
 * Arguments of cuBLAS as the machine passes them, in registers and on the stack: calls of functions with
 * NVIDIA's prototypes, probed as the table of probes has it.
 */
#include "test.h"

#include <string.h>

#include "base/macro.h"
#include "trace/probe.h"
#include "tracing.h"

enum { CALL = 11 };

#define HANDLE ((void *)(uintptr_t)0x1234567890)

typedef int strided_fn(void *handle, int transa, int transb, int m, int n, int k, const void *alpha,
		       const void *a, int type_a, int lda, long long stride_a, const void *b, int type_b,
		       int ldb, long long stride_b, const void *beta, void *c, int type_c, int ldc,
		       long long stride_c, int batch, int compute, int algorithm);
typedef int wide_fn(void *handle, int transa, int transb, int64_t m, int64_t n, int64_t k, const void *alpha,
		    const void *a, int type_a, int64_t lda, const void *b, int type_b, int64_t ldb,
		    const void *beta, void *c, int type_c, int64_t ldc, int compute, int algorithm);
typedef int matmul_fn(void *handle, const void *desc, const void *alpha, const void *a, const void *layout_a,
		      const void *b, const void *layout_b, const void *beta, const void *c,
		      const void *layout_c, void *d, const void *layout_d, const void *algorithm, void *space,
		      size_t space_n, void *stream);

/* Not known to be of another type. */
static void *volatile probed = (void *)traced_third;

static const struct trace_call *call_of(struct tracing *tracing, enum probe_library library,
					const char *symbol, void (*fn)(void *userdata))
{
	const struct probe *probe = probe_find(library, symbol);
	const union tracing_event *event;
	struct trace_spec spec;
	pid_t pid;

	assert_non_null(probe);
	spec = probe_spec(probe);
	spec.flags |= TRACE_SPEC_RETURNS;
	tracing_attach(tracing, (const void *)traced_third, CALL, &spec);
	assert_int_equal(traced_run(fn, NULL, &pid), 0);
	tracing_drain(tracing);
	event = tracing_event(tracing, TRACE_EVENT_CALL, CALL, pid, 0);
	assert_non_null(event);
	return &event->call;
}

static void strided(_unused_ void *userdata)
{
	((strided_fn *)probed)(HANDLE, 0, 1, 100, 200, 300, NULL, NULL, 14, 1, 2, NULL, 15, 3, 4, NULL, NULL,
			       300, 5, 6, 12, 68, -1);
}

static void sizes_and_types_on_the_stack(void **state)
{
	const struct trace_call *call =
		call_of(tracing_of(state), PROBE_CUBLAS, "cublasGemmStridedBatchedEx", strided);

	assert_int_equal(call->handle, 0x1234567890);
	assert_int_equal(call->addr, 100);
	assert_int_equal(call->other, 200);
	assert_int_equal(call->stream, 300);
	assert_int_equal(call->size, 12);
	/* A type that is not known is none of the known ones. */
	assert_int_equal(call->kind, TRACE_GEMM_TYPES(14, 15, 0xff, 68));
}

static void wide(_unused_ void *userdata)
{
	((wide_fn *)probed)(HANDLE, 0, 1, INT64_C(0x300000000), INT64_C(0x500000000), 7, NULL, NULL, 2, 1,
			    NULL, 3, 1, NULL, NULL, 4, 1, 77, -1);
}

static void sizes_of_64_bits(void **state)
{
	const struct trace_call *call = call_of(tracing_of(state), PROBE_CUBLAS, "cublasGemmEx_64", wide);

	assert_int_equal(call->addr, UINT64_C(0x300000000));
	assert_int_equal(call->other, UINT32_MAX);
	assert_int_equal(call->stream, 7);
	assert_int_equal(call->size, 1);
	assert_int_equal(call->kind, TRACE_GEMM_TYPES(2, 3, 4, 77));
}

static const uint64_t one[9] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 };
static uint64_t copy[8], other[8], desc[2] = { 6, 68 };

static void matmul(_unused_ void *userdata)
{
	memcpy(copy, one, sizeof(copy));
	memcpy(other, one, sizeof(other));
	copy[7]++; /* not a layout's any more */
	other[6]++;
	((matmul_fn *)probed)(NULL, desc, NULL, NULL, one, NULL, copy, NULL, NULL, NULL, NULL, other, NULL,
			      NULL, 0, NULL);
}

static void contents_have_digests(void **state)
{
	const struct trace_call *call = call_of(tracing_of(state), PROBE_CUBLASLT, "cublasLtMatmul", matmul);

	assert_int_not_equal(call->addr, 0);
	assert_int_not_equal(call->handle, 0);
	assert_int_equal(call->handle, call->size);
	assert_int_not_equal(call->stream, 0);
	assert_int_not_equal(call->stream, call->handle);
}

static void nothing(_unused_ void *userdata)
{
	((matmul_fn *)probed)(NULL, (void *)(uintptr_t)8, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
			      NULL, NULL, NULL, NULL, 0, NULL);
}

static void what_cannot_be_read_has_none(void **state)
{
	const struct trace_call *call = call_of(tracing_of(state), PROBE_CUBLASLT, "cublasLtMatmul", nothing);

	assert_int_equal(call->addr, 0);
	assert_int_equal(call->handle, 0);
	assert_int_equal(call->stream, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TRACING_TEST(sizes_and_types_on_the_stack),
		TRACING_TEST(sizes_of_64_bits),
		TRACING_TEST(contents_have_digests),
		TRACING_TEST(what_cannot_be_read_has_none),
	};

	return cmocka_run_group_tests_name("attach_gemm", tests, NULL, NULL);
}
