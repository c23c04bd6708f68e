// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/trace/raw_sink.h"
#include "trace/probe.h"

struct written {
	struct strbuf text;
	unsigned n;
	int error;
};

static int write_it(const struct strbuf *text, void *userdata)
{
	struct written *written = userdata;

	strbuf_adds(&written->text, text->data);
	written->n++;
	return written->error;
}

static const char *comm_of(uint32_t pid, _unused_ void *userdata)
{
	return pid == 7 ? "train" : NULL;
}

static const struct raw_sink_ops ops = { .write = write_it, .comm = comm_of };

static uint16_t call_number(const char *symbol)
{
	for (uint16_t i = 0; i < probes_n; i++)
		if (strcmp(probes[i].symbol, symbol) == 0)
			return i;
	fail_msg("no probe of %s", symbol);
	return 0;
}

static struct trace_header header(enum trace_event_type type, const char *symbol)
{
	return (struct trace_header){
		.type = (uint8_t)type, .call = call_number(symbol), .tgid = 7, .tid = 8
	};
}

/* @event as a line. */
static void prints(const void *event, size_t size, const char *line)
{
	struct written written = { 0 };
	struct raw_sink raw;

	strbuf_init(&written.text, 0);
	raw_sink_init(&raw, false, &ops, &written);
	assert_int_equal(raw.sink.event(event, (uint32_t)size, &raw), 0);
	raw_sink_flush(&raw);
	assert_string_equal(written.text.data, line);
	raw_sink_done(&raw);
	strbuf_done(&written.text);
}

static void calls_have_the_operands_of_their_probe(_unused_ void **state)
{
	struct trace_launch launch = {
		.header = header(TRACE_EVENT_LAUNCH, "cuLaunchKernel"),
		.duration_ns = 5,
		.function = 16,
		.stream = 32,
		.grid = { 1, 2, 3 },
		.block = { 4, 5, 6 },
		.shared_bytes = 7,
		.result = -1,
	};
	struct trace_call call = { .duration_ns = 5, .addr = 16, .size = 4096, .stream = 3, .kind = 9 };

	prints(&launch, sizeof(launch),
	       "0.000000000 7/8 [0] train cuLaunchKernel function 0x10 grid 1x2x3 block 4x5x6 shared 7 "
	       "stream 0x20 = -1 in 5 ns\n");
	launch.header.flags = TRACE_FLAG_NO_RESULT;
	prints(&launch, sizeof(launch),
	       "0.000000000 7/8 [0] train cuLaunchKernel function 0x10 grid 1x2x3 block 4x5x6 shared 7 "
	       "stream 0x20\n");
	/* Its address is an output, its size an input. */
	call.header = header(TRACE_EVENT_CALL, "cuMemAlloc_v2");
	prints(&call, sizeof(call),
	       "0.000000000 7/8 [0] train cuMemAlloc_v2 addr 0x10 size 4096 kind 9 = 0 in 5 ns\n");
	call.result = 2;
	prints(&call, sizeof(call), "0.000000000 7/8 [0] train cuMemAlloc_v2 size 4096 kind 9 = 2 in 5 ns\n");
	call.header.flags = TRACE_FLAG_NO_RESULT;
	call.result = 0;
	prints(&call, sizeof(call), "0.000000000 7/8 [0] train cuMemAlloc_v2 size 4096 kind 9\n");
}

static void names_and_processes_are_printed(_unused_ void **state)
{
	struct trace_process process = {
		.header = { .type = TRACE_EVENT_EXEC, .tgid = 7, .tid = 8 },
		.comm = "comm_of_sixteen",
	};
	struct trace_name *name = calloc(1, sizeof(*name) + 8);

	assert_non_null(name);
	name->header = header(TRACE_EVENT_NAME, "cuModuleGetFunction");
	name->handle = 16;
	name->of = 32;
	strcpy(name->name, "work");
	prints(name, sizeof(*name) + 8,
	       "0.000000000 7/8 [0] train cuModuleGetFunction handle 0x10 of 0x20 name work\n");
	name->header.flags = TRACE_FLAG_UNREAD;
	name->header.op = TRACE_OP_MODULE_FILE;
	prints(name, sizeof(*name) + 8,
	       "0.000000000 7/8 [0] train cuModuleGetFunction handle 0x10 of 0x20 file (not readable)\n");
	name->header = header(TRACE_EVENT_NAME, "cuInit");
	name->header.op = TRACE_OP_INIT;
	name->handle = TRACE_VARIABLE_ORDER;
	name->of = TRACE_SET_YES;
	prints(name, sizeof(*name) + 8, "0.000000000 7/8 [0] train cuInit CUDA_DEVICE_ORDER work\n");
	name->cut = 1;
	name->header.flags = TRACE_FLAG_UNREAD;
	prints(name, sizeof(*name) + 8,
	       "0.000000000 7/8 [0] train cuInit CUDA_DEVICE_ORDER (not readable)\n");
	name->of = TRACE_SET_NO;
	prints(name, sizeof(*name) + 8, "0.000000000 7/8 [0] train cuInit CUDA_DEVICE_ORDER (not set)\n");
	free(name);

	memset(process.comm, 'c', sizeof(process.comm)); /* the kernel ends it with a NUL, a fault may not */
	prints(&process, sizeof(process), "0.000000000 7/8 [0] cccccccccccccccc exec\n");
	process.header.type = TRACE_EVENT_PROCESS;
	memcpy(process.comm, "sh", 3);
	prints(&process, sizeof(process), "0.000000000 7/8 [0] sh process\n");
	process.header.type = TRACE_EVENT_EXIT;
	prints(&process, sizeof(process), "0.000000000 7/8 [0] sh exit\n");
}

static void other_events_are_not_printed(_unused_ void **state)
{
	struct trace_stat_new stat = { .header.type = TRACE_EVENT_STAT };
	struct trace_call call = { .header = { .type = TRACE_EVENT_CALL, .call = UINT16_MAX } };

	prints(&stat, sizeof(stat), "");
	prints(&call, sizeof(call), "");
}

static void a_failed_write_ends_the_output(_unused_ void **state)
{
	const struct trace_process process = { .header.type = TRACE_EVENT_EXIT, .comm = "sh" };
	struct written written = { .error = -EPIPE };
	struct raw_sink raw;
	unsigned taken = 0;
	int r = 0;

	strbuf_init(&written.text, 0);
	raw_sink_init(&raw, true, &ops, &written);
	raw.sink.lost(5, &raw);
	assert_string_equal(raw.text.data, "{\"type\":\"lost\",\"events\":5}\n");
	/* Written without a flush when there is much of it. */
	while (taken < 100000 && (r = raw.sink.event(&process.header, sizeof(process), &raw)) == 0)
		taken++;
	assert_int_equal(r, -EPIPE);
	assert_in_range(written.text.len, 60000, 70000);
	assert_int_equal(raw.sink.event(&process.header, sizeof(process), &raw), -EPIPE);
	raw_sink_flush(&raw);
	assert_int_equal(written.n, 1);
	raw_sink_done(&raw);
	strbuf_done(&written.text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_have_the_operands_of_their_probe),
		cmocka_unit_test(names_and_processes_are_printed),
		cmocka_unit_test(other_events_are_not_printed),
		cmocka_unit_test(a_failed_write_ends_the_output),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
