// SPDX-License-Identifier: Apache-2.0
/* Arguments of the page, as any client that may open it could write them. */
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/macro.h"
#include "model/metric.h"
#include "web/history_numbers.h"
#include "web/routes.h"

#include "arguments.h"

#define MINUTE_NS (60 * NSEC_PER_SEC)

static bool ask(const struct http_manner *manner, const struct argument *arguments,
		int64_t numbers[static HTTP_NUMBERS], const char *named)
{
	struct http_request request = { .argument = argument_of, .priv = (void *)arguments };
	struct http_reply reply = { .status = 200 };
	bool right;

	strbuf_init(&reply.body, 0);
	memset(numbers, 0, HTTP_NUMBERS * sizeof(*numbers));
	right = manner->numbers(&request, numbers, &reply);
	assert_int_equal(reply.status, right ? 200 : 400);
	if (!right && named)
		assert_non_null(strstr(reply.body.data, named));
	strbuf_done(&reply.body);
	return right;
}

#define LIST(...) ((const struct argument[]){ __VA_ARGS__, { NULL, NULL } })
#define POWER                           \
	{                               \
		"metric", "power_watts" \
	}

static void test_what_is_left_out(_unused_ void **state)
{
	int64_t n[HTTP_NUMBERS];

	assert_true(ask(&history_manner, LIST(POWER), n, NULL));
	assert_int_equal(n[HISTORY_SINCE], -10 * MINUTE_NS);
	assert_int_equal(n[HISTORY_UNTIL], 0);
	assert_int_equal(n[HISTORY_STEP], NSEC_PER_SEC);
	assert_int_equal(n[HISTORY_GPU], -1);
	assert_int_equal(n[HISTORY_METRICS], 1);
	assert_string_equal(gpu_metrics[n[HISTORY_METRIC]].family, "gpu_power_watts");
	assert_true(ask(&history_manner, LIST(POWER, { "since", "100m" }), n, NULL));
	assert_int_equal(n[HISTORY_STEP], 10 * NSEC_PER_SEC);
	assert_true(ask(&moment_manner, LIST({ "at", "1970-01-01T00:00:01Z" }), n, NULL));
	assert_int_equal(n[HISTORY_SINCE], NSEC_PER_SEC);
}

static void test_metrics(_unused_ void **state)
{
	static const char *const wrong[] = {
		"",
		",",
		"power_watts,",
		",power_watts",
		"power_watts,,power_watts",
		"nothing",
		"power_watts,nothing",
		"power_watts;energy_joules_total",
		"power_watts,power_watts,power_watts,power_watts,power_watts,power_watts,power_watts",
		"utilization_ratio,utilization_ratio",
	};
	int64_t n[HTTP_NUMBERS];

	assert_false(ask(&history_manner, LIST({ "gpu", "0" }), n, "metric="));
	for (unsigned i = 0; i < ARRAY_SIZE(wrong); i++) {
		assert_false(ask(&history_manner, LIST({ "metric", wrong[i] }), n, "metric="));
		assert_true(n[HISTORY_METRICS] <= HISTORY_METRICS_MAX);
	}
	assert_true(ask(
		&history_manner,
		LIST({ "metric", "power_watts,power_watts,power_watts,power_watts,power_watts,power_watts" }),
		n, NULL));
	assert_int_equal(n[HISTORY_METRICS], HISTORY_METRICS_MAX);
	assert_true(ask(&history_manner, LIST({ "metric", "host_memory_bytes,host_load" }), n, NULL));
	assert_int_equal(n[HISTORY_METRICS], 3);
	assert_int_equal(n[HISTORY_METRIC + 2], metric_code(METRICS_OF_HOST, HOST_LOAD));
	/* All states of the CPU are more than there is room for. */
	assert_false(ask(&history_manner, LIST({ "metric", "host_cpu_seconds_total" }), n, "metric="));
}

/* The least and greatest times: sums of them do not overflow, which sanitizers would tell. */
static void test_times(_unused_ void **state)
{
	static const char *const wrong[] = {
		"",
		"-1s",
		"-1",
		"9223372036854775807",
		"9223372036s",
		"1e400s",
		"nan",
		"inf",
		"2562047h",
		"106751d",
		"18446744073709551615s",
		"tomorrow",
		"2026-13-01",
		"9999-01-01",
		"2026-01-01T25:00",
		"0x10",
		"1 h",
	};
	static const char *const right[] = { "0",   "1ms",       "1s", "17531h", "2199-12-31T23:59:59Z",
					     "2.5", "1700000000" };
	int64_t n[HTTP_NUMBERS];

	for (unsigned i = 0; i < ARRAY_SIZE(wrong); i++) {
		assert_false(ask(&history_manner, LIST(POWER, { "since", wrong[i] }), n, "since="));
		assert_false(ask(&history_manner, LIST(POWER, { "until", wrong[i] }), n, "until="));
		assert_false(ask(&moment_manner, LIST({ "at", wrong[i] }), n, "at="));
	}
	for (unsigned i = 0; i < ARRAY_SIZE(right); i++)
		for (unsigned k = 0; k < ARRAY_SIZE(right); k++) {
			assert_true(ask(&history_manner,
					LIST(POWER, { "since", right[i] }, { "until", right[k] }), n, NULL));
			assert_true(n[HISTORY_STEP] >= NSEC_PER_SEC);
		}
}

static void test_steps_and_gpus(_unused_ void **state)
{
	static const char *const steps[] = { "", "0", "0.5", "-1", "999ms", "367d", "1e300", "nan", "x" };
	static const char *const gpus[] = { "", "-1", "65536", "18446744073709551616", "0x1", "1 ", "GPU-1" };
	int64_t n[HTTP_NUMBERS];

	for (unsigned i = 0; i < ARRAY_SIZE(steps); i++)
		assert_false(ask(&history_manner, LIST(POWER, { "step", steps[i] }), n, "step="));
	for (unsigned i = 0; i < ARRAY_SIZE(gpus); i++)
		assert_false(ask(&history_manner, LIST(POWER, { "gpu", gpus[i] }), n, "gpu="));
	assert_true(ask(&history_manner, LIST(POWER, { "step", "1m" }, { "gpu", "65535" }), n, NULL));
	assert_int_equal(n[HISTORY_STEP], MINUTE_NS);
	assert_int_equal(n[HISTORY_GPU], 65535);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_left_out),
		cmocka_unit_test(test_metrics),
		cmocka_unit_test(test_times),
		cmocka_unit_test(test_steps_and_gpus),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
