// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <string.h>

#include "base/macro.h"
#include "inference/page.h"

static int read_text(enum server_kind kind, const char *text, struct server_page *ret_page)
{
	struct figure_page page;
	int r;

	figure_page_init(&page, kind);
	r = figure_page_feed(&page, text, strlen(text));
	if (r == 0)
		r = figure_page_end(&page, ret_page);
	figure_page_done(&page);
	return r;
}

static void figures_are_sums_of_their_samples(_unused_ void **state)
{
	struct server_page page;

	assert_int_equal(read_text(SERVER_VLLM,
				   "# TYPE vllm:request_success_total counter\n"
				   "vllm:request_success_total{finished_reason=\"stop\"} 3\n"
				   "vllm:request_success_total{finished_reason=\"abort\"} 4\n"
				   "# TYPE vllm:kv_cache_usage_perc gauge\n"
				   "vllm:kv_cache_usage_perc{engine=\"0\"} 0.75\n"
				   "vllm:kv_cache_usage_perc{engine=\"1\"} 0.5\n"
				   "# TYPE vllm:request_queue_time_seconds histogram\n"
				   "vllm:request_queue_time_seconds_bucket{le=\"1\"} 9\n"
				   "vllm:request_queue_time_seconds_sum 2.5\n"
				   "sglang:token_usage 1\n",
				   &page),
			 0);
	assert_true(page.v[SERVER_FINISHED] == 7);
	assert_true(page.v[SERVER_CACHE] == 0.75);
	assert_true(page.v[SERVER_QUEUED] == 2.5);
	assert_int_equal(page.p[SERVER_RUNNING], PRESENCE_ABSENT);
}

static void microseconds_and_shares(_unused_ void **state)
{
	struct server_page page;

	assert_int_equal(read_text(SERVER_TRITON, "nv_inference_queue_duration_us 1500000\n", &page), 0);
	assert_true(page.v[SERVER_QUEUED] == 1.5);
	assert_int_equal(read_text(SERVER_VLLM,
				   "vllm:gpu_cache_usage_perc 0.25\nvllm:kv_cache_usage_perc 0.25\n", &page),
			 0);
	assert_true(page.v[SERVER_CACHE] == 0.25);
}

static void impossible_numbers_are_none(_unused_ void **state)
{
	struct server_page page;

	assert_int_equal(read_text(SERVER_LLAMA_CPP,
				   "llamacpp:requests_processing -1\nllamacpp:requests_deferred NaN\n"
				   "llamacpp:kv_cache_usage_ratio 1.5\n"
				   /* Each is possible, and their sum is not. */
				   "llamacpp:prompt_tokens_total 9e18\nllamacpp:prompt_tokens_total 9e18\n"
				   "llamacpp:tokens_predicted_total 2\n",
				   &page),
			 0);
	for (unsigned row = 0; row < SERVER_METRICS; row++)
		assert_int_equal(page.p[row],
				 row == SERVER_TOKENS_GENERATED ? PRESENCE_PRESENT : PRESENCE_ABSENT);
	assert_int_equal(read_text(SERVER_LLAMA_CPP, "x 1\n", &page), -ENODATA);
	assert_int_equal(read_text(SERVER_OLLAMA, "vllm:num_requests_running 1\n", &page), -ENODATA);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(figures_are_sums_of_their_samples),
		cmocka_unit_test(microseconds_and_shares),
		cmocka_unit_test(impossible_numbers_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
