// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/macro.h"
#include "base/text.h"
#include "cubin/name.h"

/*
 * Names of PyTorch's, cuBLAS's, CUTLASS's, Triton's kernels and of nvcc's lambdas, and what c++filt makes of
 * those that are mangled.
 */
static const struct {
	const char *symbol, *name, *brief;
} known[] = {
	{ "_ZN2at4cuda40_GLOBAL__N__758183f4_8_Sleep_cu_088d913f11spin_kernelEl",
	  "at::cuda::(anonymous namespace)::spin_kernel(long)", "spin_kernel" },
	{ "_ZN2at6native29vectorized_elementwise_kernelILi2EZNS0_16sign_kernel_cudaERNS_"
	  "18TensorIteratorBaseEEUlbE_St5arrayIPcLm2EEEEviT0_"
	  "T1_",
	  "void at::native::vectorized_elementwise_kernel<2, "
	  "at::native::sign_kernel_cuda(at::TensorIteratorBase&)::{lambda(bool)#1}, std::array<char*, 2ul> "
	  ">(int, at::native::sign_kernel_cuda(at::TensorIteratorBase&)::{lambda(bool)#1}, std::array<char*, "
	  "2ul>)",
	  "vectorized_elementwise_kernel<...>" },
	{ "_ZN14at_cuda_detail3cub11EmptyKernelIvEEvv", "void at_cuda_detail::cub::EmptyKernel<void>()",
	  "EmptyKernel<...>" },
	{ "_ZN2at6native35sparse_semi_structured_apply_kernelINS0_11KernelTypesIN7cutlass6half_"
	  "tEEEEEvNT_6ParamsE",
	  "void at::native::sparse_semi_structured_apply_kernel<at::native::KernelTypes<cutlass::half_t> "
	  ">(at::native::KernelTypes<cutlass::half_t>::Params)",
	  "sparse_semi_structured_apply_kernel<...>" },
	{ "_Z4callIZ4mainEUliE_EvT_Pi", "void call<main::{lambda(int)#1}>(main::{lambda(int)#1}, int*)",
	  "call<...>" },
	{ "_ZN2at6native10gpu_kernelI18__nv_hdl_wrapper_tILb0ELb0ELb0E11__nv_dl_tagIPFvRNS_"
	  "18TensorIteratorBaseEEXadL_ZNS0_22logaddexp2_kernel_cudaES5_EELj1EEFdddEJKdEEEEvS5_RKT_",
	  "void at::native::gpu_kernel<__nv_hdl_wrapper_t<false, false, false, __nv_dl_tag<void "
	  "(*)(at::TensorIteratorBase&), &at::native::logaddexp2_kernel_cuda, 1u>, double (double, double), "
	  "double const> >(at::TensorIteratorBase&, __nv_hdl_wrapper_t<false, false, false, __nv_dl_tag<void "
	  "(*)(at::TensorIteratorBase&), &at::native::logaddexp2_kernel_cuda, 1u>, double (double, double), "
	  "double const> const&)",
	  "gpu_kernel<...>" },
	{ "_ZN36_GLOBAL__N__c80b33c9_5_t2_cu__Z2goPi4manyIJidcEEEvDpT_",
	  "void (anonymous namespace)::many<int, double, char>(int, double, char)", "many<...>" },
	{ "_Z2ttI3boxiXadL_Z2fniEEEvT_IT0_E", "void tt<box, int, &(fn(int))>(box<int>)", "tt<...>" },
	{ "_Z4callIZ2goPiEUliE0_EvT_S0_",
	  "void call<go(int*)::{lambda(int)#2}>(go(int*)::{lambda(int)#2}, int*)", "call<...>" },
	{ "ampere_sgemm_128x64_nn", "ampere_sgemm_128x64_nn", "ampere_sgemm_128x64_nn" },
	{ "triton_poi_fused_add_0", "triton_poi_fused_add_0", "triton_poi_fused_add_0" },
	{ "_Kernel_int8_t_cudaSum", "_Kernel_int8_t_cudaSum", "_Kernel_int8_t_cudaSum" },
	{ "_Z10vector_addPKfS0_Pfi", "vector_add(float const*, float const*, float*, int)", "vector_add" },
	{ "_Z1fPFvidE", "f(void (*)(int, double))", "f" },
	{ "_Z1fPFPFvivEdE", "f(void (*(*)(double))(int, void))", "f" },
	{ "_Z1fRA10_i", "f(int (&) [10])", "f" },
	{ "_Z1fM1AFivE", "f(int (A::*)())", "f" },
	{ "_Z1fILb1EEDTcl1gT_EES0_", "decltype (g(true)) f<true>(decltype (g(true)))", "f<...>" },
	{ "_Z1fILi4EXgtLi3ELi2EEEvv", "void f<4, ((3)>(2))>()", "f<...>" },
	{ "_Z1fILi1EEvPAT__i", "void f<1>(int (*) [1])", "f<...>" },
	{ "_Z1fB5cxx11v", "f[abi:cxx11]()", "f[abi:cxx11]" },
	{ "_ZltI1AEbRKT_S3_", "bool operator< <A>(A const&, A const&)", "operator< <...>" },
	{ "_ZN1AlsIiEEvT_", "void A::operator<< <int>(int)", "operator<< <...>" },
	{ "_ZN1AplIiEEvT_", "void A::operator+<int>(int)", "operator+<...>" },
	{ "_ZN1AptIiEEvT_", "void A::operator-><int>(int)", "operator-><...>" },
	{ "_ZN1AgeEi", "A::operator>=(int)", "operator>=" },
	{ "_ZN1AclEi", "A::operator()(int)", "A::operator()" },
	{ "_ZN1AIiEclEi", "A<int>::operator()(int)", "A<...>::operator()" },
	{ "_ZZ4mainENKUliE_clEi", "main::{lambda(int)#1}::operator()(int) const",
	  "{lambda(int)#1}::operator()" },
	{ "_ZN1AcvPiEv", "A::operator int*()", "operator int*" },
	{ "_ZN1AcvT_IiEEv", "A::operator int<int>()", "operator int<...>" },
	{ "_ZN1AnwEm", "A::operator new(unsigned long)", "operator new" },
	{ "_ZN12_GLOBAL__N_13fooIiEEvT_", "void (anonymous namespace)::foo<int>(int)", "foo<...>" },
	{ "_ZZ1fvE1s", "f()::s", "s" },
	{ "_Z1fILPv0EEvv", "void f<(void*)0>()", "f<...>" },
	{ "_Z1fIJidPcEEvDpT_", "void f<int, double, char*>(int, double, char*)", "f<...>" },
	{ "_Z1fIJEEvDpT_", "void f<>()", "f<...>" },
	{ "_ZN1n1fIXadL_ZNS_1gILi1EEEivEEEEvv", "void n::f<&(int n::g<1>())>()", "f<...>" },
};

static void names_as_cxxfilt_has_them(void **state)
{
	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(known); i++) {
		char name[4096], brief[1024];
		bool done = kernel_name_demangle(known[i].symbol, name, sizeof(name));

		assert_string_equal(name, known[i].name);
		assert_int_equal(done, strcmp(known[i].symbol, known[i].name) != 0);
		kernel_name_brief(name, brief, sizeof(brief));
		assert_string_equal(brief, known[i].brief);
	}
}

static void brief_of_what_is_no_demangled_name(void **state)
{
	static const struct {
		const char *name, *brief;
	} rows[] = {
		{ "", "" },
		{ "k", "k" },
		{ "_Z1fILi4EEv", "_Z1fILi4EEv" },
		{ "void f<int", "f<...>" },
		{ "f<(a>b)>(int)", "f<...>" },
		{ "f<(a>b>c), d>(int)", "f<...>" },
		{ "a::b::", "a::b::" },
		{ "::", "::" },
		{ " ", " " },
		{ "f(int) [clone .constprop.0]", "f" },
		{ "f [clone .cold]", "f" },
		{ "int (*g<int>(int))(float)", "(*g<int>(int))" },
		{ "lambda(int)#1", "lambda" },
		{ "operators::run(int)", "run" },
		{ "my_operator<int>(int)", "my_operator<...>" },
		{ ")))>>>", ")))>>>" },
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		char brief[256];

		kernel_name_brief(rows[i].name, brief, sizeof(brief));
		assert_string_equal(brief, rows[i].brief);
	}
}

static void what_does_not_fit_is_cut(void **state)
{
	char name[16], brief[4], one[1] = { 'x' };

	(void)state;
	assert_true(kernel_name_demangle("_Z10vector_addPKfS0_Pfi", name, sizeof(name)));
	assert_string_equal(name, "vector_add(floa");
	assert_false(kernel_name_demangle("a_kernel_of_someone", name, sizeof(name)));
	assert_string_equal(name, "a_kernel_of_som");
	kernel_name_brief("vector_add(float)", brief, sizeof(brief));
	assert_string_equal(brief, "vec");
	kernel_name_demangle("_Z1fv", one, 1);
	assert_int_equal(one[0], '\0');
	one[0] = 'x';
	kernel_name_brief("f", one, 1);
	assert_int_equal(one[0], '\0');
	one[0] = 'x';
	kernel_name_demangle("_Z1fv", one, 0);
	kernel_name_brief("f", one, 0);
	assert_int_equal(one[0], 'x');
}

static void names_are_printable(void **state)
{
	static const char *const hostile[] = { "a\x1b[2Jb",    "\xff\xfe", "_Z3a\033bv",
					       "_Z2\xc3\xa4v", "_Z1\xc3v", "x\x7f\ny" };

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(hostile); i++) {
		char name[64];

		kernel_name_demangle(hostile[i], name, sizeof(name));
		assert_true(utf8_valid(name, strlen(name)));
		for (const char *p = name; *p; p++)
			assert_true((unsigned char)*p >= ' ' && *p != 0x7f);
	}
	/* Beyond ASCII is no harm. */
	{
		char name[16];

		assert_true(kernel_name_demangle("_Z2\xc3\xa4v", name, sizeof(name)));
		assert_string_equal(name, "\xc3\xa4()");
	}
}

/* before, @n times the middle, after. */
struct hostile {
	const char *before, *middle, *after, *closing;
	unsigned n, closing_n;
};

enum { STACK_BYTES = 16 << 20, STACK_MOST = 2560 << 10 };
static char symbol[1 << 20], shown[1 << 16], short_form[1 << 16];

static size_t build(const struct hostile *h)
{
	size_t at = (size_t)snprintf(symbol, sizeof(symbol), "%s", h->before);

	for (unsigned i = 0; i < h->n && at < KERNEL_NAME_MAX - 16; i++)
		at += (size_t)snprintf(symbol + at, sizeof(symbol) - at, "%s", h->middle);
	at += (size_t)snprintf(symbol + at, sizeof(symbol) - at, "%s", h->after);
	for (unsigned i = 0; i < h->closing_n && at < KERNEL_NAME_MAX - 16; i++)
		at += (size_t)snprintf(symbol + at, sizeof(symbol) - at, "%s", h->closing);
	return at;
}

static void *demangle_it(void *unused)
{
	kernel_name_demangle(symbol, shown, sizeof(shown));
	kernel_name_brief(shown, short_form, sizeof(short_form));
	return unused;
}

/* How deep a stack it needed, in steps of 4 KiB: what of it is not as it was painted. */
static size_t measure(double *ret_seconds)
{
	unsigned char paint[4096];
	unsigned char *stack = aligned_alloc(4096, STACK_BYTES);
	struct timespec from, to;
	pthread_attr_t attributes;
	pthread_t thread;
	size_t clean = 0;

	assert_non_null(stack);
	memset(paint, 0xa5, sizeof(paint));
	memset(stack, 0xa5, STACK_BYTES);
	assert_int_equal(pthread_attr_init(&attributes), 0);
	assert_int_equal(pthread_attr_setstack(&attributes, stack, STACK_BYTES), 0);
	clock_gettime(CLOCK_MONOTONIC, &from);
	assert_int_equal(pthread_create(&thread, &attributes, demangle_it, NULL), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	clock_gettime(CLOCK_MONOTONIC, &to);
	pthread_attr_destroy(&attributes);
	while (clean < STACK_BYTES && memcmp(stack + clean, paint, sizeof(paint)) == 0)
		clean += sizeof(paint);
	free(stack);
	*ret_seconds = (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
	return STACK_BYTES - clean;
}

static void hostile_names_cost_little(void **state)
{
	static const struct hostile shapes[] = {
		{ "_Z1f", "P", "i", "", 0, 0 },
		{ "_Z1f", "M", "i", "", 0, 0 },
		{ "_Z1f", "F", "v", "", 0, 0 },
		{ "_Z1f", "F", "iv", "E", 0, 1 },
		{ "_Z1f", "A_", "i", "", 0, 0 },
		{ "_Z1fI", "J", "i", "E", 0, 1 },
		{ "_Z", "Z", "1fv", "E1a", 0, 1 },
		{ "_Z", "ZUl", "1fv", "", 0, 0 },
		{ "_Z1f", "1AI", "i", "E", 0, 1 },
		{ "_Z1fIX", "ng", "Li1EEEvv", "", 0, 0 },
		{ "_Z1f", "Dp", "i", "", 0, 0 },
		{ "_Z1f", "U1a", "i", "", 0, 0 },
		{ "_ZN", "1A", "Ev", "", 0, 0 },
		{ "_Z", "GR", "i", "", 0, 0 },
		{ "_Z1f", "DTcl1gE", "E", "", 0, 0 },
		{ "_Z1f", "i", "", "", 0, 0 },
		{ "_Z1fI", "L_Z1aI", "i", "EvE", 0, 1 },
		{ "_Z1fIXcl", "cl", "", "", 0, 0 },
		{ "_Z1f", "S_", "", "", 0, 0 },
		{ "_Z1fI", "1AIiE", "Ev", "RT_", 0, 1 },
		{ "_Z1fI", "1AIJiEE", "EvDp", "T_", 0, 1 },
		{ "_Z1fI", "T_", "Ev", "T_", 0, 1 },
		{ "_ZN1AcvT_I", "T_I", "i", "E", 0, 1 },
		{ "_ZN1AcvT_I", "1BIT_I", "i", "EE", 0, 1 },
		{ "_Z1fIJiiiiiiiiiiEEv", "Dp1AIT_J", "DpT_", "EE", 0, 1 },
		{ "_Z1fIJiiiiiiiiiiEEv", "Dp", "T_", "", 0, 0 },
	};
	static const unsigned times[] = { 5, 12, 24, 40, 100, 400, 1000, 4000, 8000, 17000 };
	size_t most = 0;
	double longest = 0;

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(shapes); i++) {
		for (unsigned j = 0; j < ARRAY_SIZE(times); j++) {
			struct hostile h = shapes[i];
			double seconds;
			size_t stack;

			h.n = times[j];
			h.closing_n = h.closing_n ? times[j] : 0;
			build(&h);
			stack = measure(&seconds);
			if (stack > STACK_MOST || seconds > 5)
				fail_msg("%s%s... %u times: %zu bytes of stack, %.1f s", h.before, h.middle,
					 h.n, stack, seconds);
			most = MAX(most, stack);
			longest = MAX(longest, seconds);
		}
	}
	print_message("# at most %zu KiB of stack, %.3f s\n", most >> 10, longest);
}

/* Each level names the one before twice: 300 characters are gigabytes. */
static void what_grows_without_bound_stays_mangled(void **state)
{
	size_t at = (size_t)snprintf(symbol, sizeof(symbol), "_Z1f1A1BIS_S_E");
	double seconds;

	(void)state;
	measure(&seconds);
	assert_string_equal(shown, "f(A, B<A, A>)");
	for (unsigned level = 1; level < 34; level++) {
		static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

		at += (size_t)snprintf(symbol + at, sizeof(symbol) - at, "S0_IS%c_S%c_E", digits[level],
				       digits[level]);
	}
	measure(&seconds);
	assert_string_equal(shown, symbol);
	assert_true(seconds < 2);
}

/* An argument that is large, but may be printed, hundreds of times. */
static void large_arguments_many_times_stay_mangled(void **state)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	size_t at = (size_t)snprintf(symbol, sizeof(symbol), "_Z1fI1A1BIS0_S0_E");
	double seconds;

	(void)state;
	for (unsigned level = 1; level < 18; level++)
		at += (size_t)snprintf(symbol + at, sizeof(symbol) - at, "S1_IS%c_S%c_E", digits[level + 1],
				       digits[level + 1]);
	at += (size_t)snprintf(symbol + at, sizeof(symbol) - at, "Ev");
	snprintf(symbol + at, sizeof(symbol) - at, "T0_");
	measure(&seconds);
	assert_memory_equal(shown, "void f<A, B<A, A>, B<B<A, A>, B<A, A> >, ", 41);
	for (unsigned i = 0; i < 700; i++)
		at += (size_t)snprintf(symbol + at, sizeof(symbol) - at, "T16_");
	measure(&seconds);
	assert_string_equal(shown, symbol);
	assert_true(seconds < 2);
}

static void long_names_are_no_problem(void **state)
{
	size_t at = 0;
	char *name;

	(void)state;
	/* 12 KiB, of 600 arguments */
	at += (size_t)snprintf(symbol, sizeof(symbol), "_Z6kernelI");
	for (unsigned i = 0; i < 600; i++)
		at += (size_t)snprintf(symbol + at, sizeof(symbol) - at, "17a_name_of_a_class%s",
				       i % 2 ? "" : "");
	snprintf(symbol + at, sizeof(symbol) - at, "Evv");
	name = malloc(1 << 16);
	assert_non_null(name);
	assert_true(kernel_name_demangle(symbol, name, 1 << 16));
	assert_memory_equal(name, "void kernel<a_name_of_a_class, a_name_of_a_class", 48);
	assert_int_equal(strlen(name),
			 strlen("void kernel<>()") + 600 * strlen("a_name_of_a_class") + 599 * 2);
	free(name);
	/* Beyond the limit. */
	memset(symbol, 'x', KERNEL_NAME_MAX + 10);
	memcpy(symbol, "_Z20000", 7);
	symbol[KERNEL_NAME_MAX + 10] = '\0';
	assert_false(kernel_name_demangle(symbol, shown, sizeof(shown)));
	assert_string_equal(shown, symbol);
}

static void brackets_without_end(void **state)
{
	static const char *const brackets[] = {
		"<", "(", "[", "{", "<(", "(<", "operator", "::", "(anonymous namespace)", " ", ">"
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(brackets); i++) {
		size_t at = (size_t)snprintf(symbol, sizeof(symbol), "f");

		while (at < 100000)
			at += (size_t)snprintf(symbol + at, sizeof(symbol) - at, "%s", brackets[i]);
		kernel_name_brief(symbol, shown, sizeof(shown));
		assert_true(strlen(shown) < sizeof(shown));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_as_cxxfilt_has_them),
		cmocka_unit_test(brief_of_what_is_no_demangled_name),
		cmocka_unit_test(what_does_not_fit_is_cut),
		cmocka_unit_test(names_are_printable),
		cmocka_unit_test(hostile_names_cost_little),
		cmocka_unit_test(what_grows_without_bound_stays_mangled),
		cmocka_unit_test(large_arguments_many_times_stay_mangled),
		cmocka_unit_test(long_names_are_no_problem),
		cmocka_unit_test(brackets_without_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
