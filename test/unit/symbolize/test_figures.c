// SPDX-License-Identifier: Apache-2.0
/* Figures of a source that takes too long: what was read counts, and it is known that there is more. */
#include "test.h"

#include <string.h>

#include "base/strbuf.h"
#include "cubin/specimen.h"
#include "symbolize/names.h"
#include "symbolize/worker.h"

/* CPU time advances by a step each time somebody looks. */
static int64_t cpu_ns, cpu_step_ns;

static int64_t fake_cpu_ns(void)
{
	return cpu_ns += cpu_step_ns;
}

#define clock_thread_cpu_ns fake_cpu_ns
#include "symbolize/figures.c"

enum { IMAGES = 20 };

static struct figures *read_images(int64_t step_ns)
{
	static const struct figures_limits limits = { 1000, 1 << 20, 1 << 20 };
	_cleanup_free_ struct symbolizer *symbolizer = calloc(1, sizeof(*symbolizer));
	struct cubin_memory memory;
	struct cubin_source source;
	struct figures *figures = NULL;
	struct strbuf bytes;

	assert_non_null(symbolizer);
	strbuf_init(&bytes, 0);
	for (unsigned i = 0; i < IMAGES; i++) {
		char name[] = { (char)('a' + i), 0 };
		const struct specimen_kernel kernel = { .name = name, .registers = 8, .code = 256 };
		const struct specimen specimen = { .abi = 0x41, .sm = 80, .kernels = &kernel, .n = 1 };
		struct specimen_entry entry = { .arch = 80 };
		_cleanup_free_ uint8_t *cubin = specimen_cubin(&specimen, &entry.n);

		entry.bytes = cubin;
		specimen_fatbin(&bytes, &entry, 1);
	}
	memory = (struct cubin_memory){ bytes.data, bytes.len };
	cubin_source_memory(&memory, &source);
	cpu_ns = 0;
	cpu_step_ns = step_ns;
	assert_int_equal(figures_read(symbolizer, &source, 80, &limits, &figures), 0);
	strbuf_done(&bytes);
	return figures;
}

static void all_in_time(_unused_ void **state)
{
	_cleanup_(figures_freep) struct figures *figures = read_images(1);

	assert_true(figures->whole);
	assert_int_equal(figures->n, IMAGES);
}

static void some_in_time(_unused_ void **state)
{
	struct figures *late = read_images(CPU_LEAST_NS), *some;
	uint32_t most = 0;

	assert_false(late->whole);
	assert_int_equal(late->n, 0);
	figures_free(late);
	for (int64_t step = CPU_LEAST_NS; step > CPU_LEAST_NS / 200; step -= step / 8) {
		some = read_images(step);
		assert_true(some->n >= most);
		assert_true(!some->whole || some->n == IMAGES);
		most = some->n;
		figures_free(some);
	}
	assert_in_range(most, 1, IMAGES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_in_time),
		cmocka_unit_test(some_in_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
