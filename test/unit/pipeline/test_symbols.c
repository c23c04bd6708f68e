// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include "pipeline/private.h"

/* All else is traced then. */
static void no_names_without_a_loop(_unused_ void **state)
{
	const struct pipeline_config config = { .name_kernels = true };
	struct pipeline *pipeline;
	sd_event *event;
	int unnamed = 0;

	assert_int_equal(pipeline_new(NULL, &config, &pipeline, &unnamed), 0);
	assert_true(unnamed < 0);
	assert_null(pipeline->symbols);
	pipeline_free(pipeline);
	assert_int_equal(sd_event_new(&event), 0);
	assert_int_equal(pipeline_new(event, &config, &pipeline, &unnamed), 0);
	assert_int_equal(unnamed, 0);
	assert_non_null(pipeline->symbols);
	pipeline_free(pipeline);
	sd_event_unref(event);
}

static void all_or_nothing_is_asked(_unused_ void **state)
{
	struct pipeline pipeline = { .config.name_kernels = true };
	struct cuda_ops ops = { .environment = pipeline_environment };
	sd_event *event;

	assert_true(pipeline_symbols(&pipeline, NULL, &ops) < 0);
	assert_null(ops.function);
	assert_null(ops.image);
	assert_non_null(ops.environment);
	assert_int_equal(sd_event_new(&event), 0);
	assert_int_equal(pipeline_symbols(&pipeline, event, &ops), 0);
	assert_non_null(ops.function);
	assert_non_null(ops.image);
	symbols_free(pipeline.symbols);
	sd_event_unref(event);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_names_without_a_loop),
		cmocka_unit_test(all_or_nothing_is_asked),
	};

	return cmocka_run_group_tests_name("symbols", tests, NULL, NULL);
}
