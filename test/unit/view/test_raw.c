// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <string.h>

#include "view/raw.h"

static void prints(const struct raw_event *event, const char *text, const char *json)
{
	struct strbuf out;

	strbuf_init(&out, 0);
	assert_int_equal(view_raw_event(event, false, &out), 0);
	assert_string_equal(out.data, text);
	strbuf_reset(&out);
	assert_int_equal(view_raw_event(event, true, &out), 0);
	assert_string_equal(out.data, json);
	strbuf_done(&out);
}

static void a_launch_has_its_shape_and_its_result(_unused_ void **state)
{
	struct raw_event e = {
		.type = RAW_LAUNCH,
		.time_ns = 12000000034,
		.pid = 7,
		.tid = 8,
		.cpu = 5,
		.comm = "train",
		.api = "cuLaunchKernel",
		.has_result = true,
		.result = 701,
		.duration_ns = 2500,
		.launch = { 0x7f0000001000, 0x20, { 4, 3, 2 }, { 128, 2, 1 }, 4096 },
	};

	prints(&e,
	       "12.000000034 7/8 [5] train cuLaunchKernel function 0x7f0000001000 grid 4x3x2 block 128x2x1 "
	       "shared 4096 stream 0x20 = 701 in 2500 ns\n",
	       "{\"type\":\"launch\",\"time_ns\":12000000034,\"pid\":7,\"tid\":8,\"cpu\":5,"
	       "\"comm\":\"train\",\"api\":\"cuLaunchKernel\","
	       "\"function\":139637976731648,\"stream\":32,\"grid\":[4,3,2],\"block\":[128,2,1],"
	       "\"shared_bytes\":4096,\"duration_ns\":2500,\"result\":701}\n");
	e.has_result = false;
	e.launch.function = UINT64_MAX; /* JSON's integers end at 2^63-1 */
	prints(&e,
	       "12.000000034 7/8 [5] train cuLaunchKernel function 0xffffffffffffffff grid 4x3x2 "
	       "block 128x2x1 "
	       "shared 4096 stream 0x20\n",
	       "{\"type\":\"launch\",\"time_ns\":12000000034,\"pid\":7,\"tid\":8,\"cpu\":5,"
	       "\"comm\":\"train\",\"api\":\"cuLaunchKernel\","
	       "\"function\":9223372036854775807,\"stream\":32,\"grid\":[4,3,2],\"block\":[128,2,1],"
	       "\"shared_bytes\":4096}\n");
}

static void a_call_has_the_operands_that_are_known(_unused_ void **state)
{
	struct raw_event e = {
		.type = RAW_CALL,
		.time_ns = 1,
		.pid = 7,
		.tid = 7,
		.cpu = 5,
		.comm = "train",
		.api = "cuMemcpyAsync",
		.has_result = true,
		.duration_ns = 10,
		.call.has = { [RAW_SIZE] = true, [RAW_STREAM] = true, [RAW_KIND] = true },
		.call.value = { [RAW_ADDR] = 99, [RAW_SIZE] = 4096, [RAW_STREAM] = 16, [RAW_KIND] = 2 },
	};

	prints(&e, "0.000000001 7/7 [5] train cuMemcpyAsync size 4096 stream 0x10 kind 2 = 0 in 10 ns\n",
	       "{\"type\":\"call\",\"time_ns\":1,\"pid\":7,\"tid\":7,\"cpu\":5,"
	       "\"comm\":\"train\",\"api\":\"cuMemcpyAsync\","
	       "\"size\":4096,\"stream\":16,\"kind\":2,\"duration_ns\":10,\"result\":0}\n");
	memset(e.call.has, false, sizeof(e.call.has));
	e.call.has[RAW_ADDR] = e.call.has[RAW_HANDLE] = true;
	e.call.value[RAW_HANDLE] = 255;
	e.has_result = false;
	prints(&e, "0.000000001 7/7 [5] train cuMemcpyAsync addr 0x63 handle 0xff\n",
	       "{\"type\":\"call\",\"time_ns\":1,\"pid\":7,\"tid\":7,\"cpu\":5,"
	       "\"comm\":\"train\",\"api\":\"cuMemcpyAsync\","
	       "\"addr\":99,\"handle\":255}\n");
}

static void names_are_cleaned(_unused_ void **state)
{
	struct raw_event e = {
		.type = RAW_NAME,
		.pid = 7,
		.tid = 7,
		.cpu = 5,
		.comm = "train",
		.api = "cuModuleGetFunction",
		.name = { .handle = 16, .parent = 32, .text = "a\033[1m\"b\xff", .truncated = true },
	};

	prints(&e,
	       "0.000000000 7/7 [5] train cuModuleGetFunction handle 0x10 of 0x20 name "
	       "a?[1m\"b? (cut)\n",
	       "{\"type\":\"name\",\"time_ns\":0,\"pid\":7,\"tid\":7,\"cpu\":5,"
	       "\"comm\":\"train\",\"api\":\"cuModuleGetFunction\","
	       "\"handle\":16,\"of\":32,\"name\":\"a\\u001B[1m\\\"b?\",\"cut\":true}\n");
	e.api = "cuModuleLoad";
	e.name.parent = 0;
	e.name.text = "/a.cubin";
	e.name.is_file = true;
	e.name.truncated = false;
	prints(&e, "0.000000000 7/7 [5] train cuModuleLoad handle 0x10 file /a.cubin\n",
	       "{\"type\":\"name\",\"time_ns\":0,\"pid\":7,\"tid\":7,\"cpu\":5,"
	       "\"comm\":\"train\",\"api\":\"cuModuleLoad\",\"handle\":16,"
	       "\"file\":\"/a.cubin\"}\n");
	e.name.text = NULL;
	prints(&e, "0.000000000 7/7 [5] train cuModuleLoad handle 0x10 file (not readable)\n",
	       "{\"type\":\"name\",\"time_ns\":0,\"pid\":7,\"tid\":7,\"cpu\":5,"
	       "\"comm\":\"train\",\"api\":\"cuModuleLoad\","
	       "\"handle\":16}\n");
}

static void variables_are_set_or_not_or_not_known(_unused_ void **state)
{
	struct raw_event e = {
		.type = RAW_VARIABLE,
		.pid = 7,
		.tid = 7,
		.api = "cuInit",
		.variable = { .name = "CUDA_VISIBLE_DEVICES", .value = "1,\n", .known = true },
	};

	prints(&e, "0.000000000 7/7 [0] ? cuInit CUDA_VISIBLE_DEVICES 1,?\n",
	       "{\"type\":\"variable\",\"time_ns\":0,\"pid\":7,\"tid\":7,\"cpu\":0,\"api\":\"cuInit\","
	       "\"name\":\"CUDA_VISIBLE_DEVICES\",\"set\":true,\"value\":\"1,\\n\"}\n");
	e.variable.value = NULL;
	prints(&e, "0.000000000 7/7 [0] ? cuInit CUDA_VISIBLE_DEVICES (not set)\n",
	       "{\"type\":\"variable\",\"time_ns\":0,\"pid\":7,\"tid\":7,\"cpu\":0,\"api\":\"cuInit\","
	       "\"name\":\"CUDA_VISIBLE_DEVICES\",\"set\":false}\n");
	e.variable.known = false;
	prints(&e, "0.000000000 7/7 [0] ? cuInit CUDA_VISIBLE_DEVICES (not readable)\n",
	       "{\"type\":\"variable\",\"time_ns\":0,\"pid\":7,\"tid\":7,\"cpu\":0,\"api\":\"cuInit\","
	       "\"name\":\"CUDA_VISIBLE_DEVICES\",\"set\":null}\n");
}

static void processes_have_a_name_and_no_result(_unused_ void **state)
{
	struct raw_event e = {
		.type = RAW_PROCESS, .pid = 7, .tid = 9, .cpu = 5, .comm = "tr\nain", .has_result = true
	};

	prints(&e, "0.000000000 7/9 [5] tr?ain process\n",
	       "{\"type\":\"process\",\"time_ns\":0,\"pid\":7,\"tid\":9,\"cpu\":5,\"comm\":\"tr\\nain\"}\n");
	e.type = RAW_EXEC;
	e.comm = "sh";
	prints(&e, "0.000000000 7/9 [5] sh exec\n",
	       "{\"type\":\"exec\",\"time_ns\":0,\"pid\":7,\"tid\":9,\"cpu\":5,\"comm\":\"sh\"}\n");
	e.type = RAW_EXIT;
	prints(&e, "0.000000000 7/9 [5] sh exit\n",
	       "{\"type\":\"exit\",\"time_ns\":0,\"pid\":7,\"tid\":9,\"cpu\":5,\"comm\":\"sh\"}\n");
}

static void lost_events_are_a_line_and_a_full_buffer_an_error(_unused_ void **state)
{
	const struct raw_event e = { .type = RAW_EXIT, .comm = "sh" };
	struct strbuf out;

	strbuf_init(&out, 0);
	assert_int_equal(view_raw_lost(3, false, &out), 0);
	assert_int_equal(view_raw_lost(4, true, &out), 0);
	assert_string_equal(out.data, "-- 3 events lost here\n{\"type\":\"lost\",\"events\":4}\n");
	strbuf_done(&out);
	strbuf_init(&out, 20);
	assert_int_equal(view_raw_event(&e, false, &out), -E2BIG);
	strbuf_reset(&out);
	assert_int_equal(view_raw_event(&e, true, &out), -E2BIG);
	strbuf_reset(&out);
	assert_int_equal(view_raw_lost(3, false, &out), -E2BIG);
	strbuf_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_launch_has_its_shape_and_its_result),
		cmocka_unit_test(a_call_has_the_operands_that_are_known),
		cmocka_unit_test(names_are_cleaned),
		cmocka_unit_test(variables_are_set_or_not_or_not_known),
		cmocka_unit_test(processes_have_a_name_and_no_result),
		cmocka_unit_test(lost_events_are_a_line_and_a_full_buffer_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
