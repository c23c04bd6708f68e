// SPDX-License-Identifier: Apache-2.0
/* Whose work it is: contexts, threads, visible devices. */
#include <errno.h>
#include <stdio.h>

#include "cuda/private.h"
#include "scene.h"

static void again(struct scene *s)
{
	static uint32_t tgid = 1000;

	s->tgid = s->tid = ++tgid;
	scene_process(s, tgid, tgid);
}

/* On which device a launch of this thread is counted: 0, 1, or -1, not known which. */
static int device_of_launch(struct scene *s)
{
	static const char *const uuids[] = { UUID0, UUID1, "" };
	double before[3] = { 0 };

	window(s);
	for (int i = 0; i < 3; i++)
		before[i] = shown(s, s->tgid, uuids[i]) ? value(s, uuids[i], TRACED_LAUNCHES) : 0;
	launch(s, 0);
	window(s);
	for (int i = 0; i < 3; i++)
		if (shown(s, s->tgid, uuids[i]) && value(s, uuids[i], TRACED_LAUNCHES) > before[i])
			return i == 2 ? -1 : i;
	fail_msg("the launch is nowhere");
	return -2;
}

static void the_runtime(void **state)
{
	struct scene *s = *state;

	assert_int_equal(device_of_launch(s), 0); /* the default */
	CALL(s, DEVICE_SET, .kind = 1);
	assert_int_equal(device_of_launch(s), 1);
	s->tid = 2;
	assert_int_equal(device_of_launch(s), 0); /* each thread has its own */
	s->tid = TID;
	s->result = 101;
	CALL(s, DEVICE_SET, .kind = 0);
	assert_int_equal(device_of_launch(s), 1); /* it failed */
	CALL(s, DEVICE_SET, .kind = 7);
	assert_int_equal(device_of_launch(s), -1);
}

static void the_driver(void **state)
{
	struct scene *s = *state;

	s->flags = 0;
	assert_int_equal(device_of_launch(s), -1); /* two devices, none current that we know */
	CALL(s, CONTEXT_RETAIN, .handle = 0xc0, .kind = 0);
	assert_int_equal(device_of_launch(s), -1); /* retained is not current */
	CALL(s, CONTEXT_SET, .handle = 0xc0);
	assert_int_equal(device_of_launch(s), 0);
	CALL(s, CONTEXT_CREATE, .handle = 0xc1, .kind = 1);
	assert_int_equal(device_of_launch(s), 1);
	CALL(s, CONTEXT_POP, .handle = 0xc1);
	assert_int_equal(device_of_launch(s), 0);
	CALL(s, CONTEXT_PUSH, .handle = 0xc1);
	assert_int_equal(device_of_launch(s), 1);
	CALL(s, CONTEXT_SET, .handle = 0xc0); /* replaces the top */
	assert_int_equal(device_of_launch(s), 0);
	CALL(s, CONTEXT_POP, .handle = 0xc0);
	assert_int_equal(device_of_launch(s), 0);
	s->tid = 2;
	CALL(s, CONTEXT_SET, .handle = 0xc1);
	assert_int_equal(device_of_launch(s), 1);
	CALL(s, CONTEXT_DESTROY, .handle = 0xc1);
	assert_int_equal(device_of_launch(s), -1);
	/* Another thread ends it, and another one takes its place. */
	CALL(s, CONTEXT_CREATE, .handle = 0xc2, .kind = 1);
	s->tid = 3;
	CALL(s, CONTEXT_DESTROY, .handle = 0xc2);
	CALL(s, CONTEXT_CREATE, .handle = 0xc3, .kind = 0);
	s->tid = 2;
	assert_int_equal(device_of_launch(s), -1);
	/* The runtime's choice is the driver's current context. */
	s->flags = TRACE_FLAG_RUNTIME;
	CALL(s, DEVICE_SET, .kind = 1);
	s->flags = 0;
	assert_int_equal(device_of_launch(s), 1);
	CALL(s, CONTEXT_SET, .handle = 0xbeef); /* never seen made */
	assert_int_equal(device_of_launch(s), -1);
	CALL(s, CONTEXT_RETAIN, .handle = 0xbeef, .kind = 1);
	assert_int_equal(device_of_launch(s), 1);
}

/* A stream stays in its context, whatever thread uses it. */
static void streams_keep_their_device(void **state)
{
	struct scene *s = *state;

	CALL(s, DEVICE_SET, .kind = 1);
	CALL(s, STREAM_CREATE, .stream = 0x1000);
	s->tid = 2;
	CALL(s, DEVICE_SET, .kind = 0);
	launch(s, 0x1000);
	window(s);
	assert_value(s, UUID1, TRACED_LAUNCHES, 1);
}

static void what_nvml_knows(void **state)
{
	struct scene *s = *state;

	s->flags = 0;
	assert_int_equal(device_of_launch(s), -1);
	cuda_nvml(s->cuda, (struct process_id){ .pid = PID }, UUID1, 0, 0, 1);
	assert_int_equal(device_of_launch(s), 1);
	cuda_nvml(s->cuda, (struct process_id){ .pid = PID }, UUID0, 0, 0, 1);
	cuda_nvml(s->cuda, (struct process_id){ .pid = PID }, UUID1, 0, 0, 1);
	assert_int_equal(device_of_launch(s), -1); /* on both */
	/* It has left one of them. */
	s->now_us += 40000000;
	window(s);
	cuda_nvml(s->cuda, (struct process_id){ .pid = PID }, UUID0, 0, 0, 1);
	assert_int_equal(device_of_launch(s), 0);
	cuda_nvml(s->cuda, (struct process_id){ .pid = 4711 }, UUID0, 0, 0, 1); /* of whom we know nothing */
}

/* The process that tracing knows started at 5 s, within tick 500. */
static void nvml_speaks_of_another_process_with_the_pid(void **state)
{
	struct scene *s = *state;

	s->flags = 0;
	cuda_nvml(s->cuda, (struct process_id){ .pid = PID, .start_ticks = 501 }, UUID1, 0, 0, 1);
	assert_int_equal(device_of_launch(s), -1);
	cuda_nvml(s->cuda, (struct process_id){ .pid = PID, .start_ticks = 499 }, UUID1, 0, 0, 1);
	assert_int_equal(device_of_launch(s), -1);
	cuda_nvml(s->cuda, (struct process_id){ .pid = PID, .start_ticks = 500 }, UUID1, 0, 0, 1);
	assert_int_equal(device_of_launch(s), 1);
}

/* One that was not traced from its beginning may have chosen any device before. */
static void late_ones(void **state)
{
	struct scene *s = *state;

	cuda_mark(s->cuda, PID, 1, TRACED_INCOMPLETE_LATE);
	assert_int_equal(device_of_launch(s), -1);
	CALL(s, DEVICE_SET, .kind = 1);
	assert_int_equal(device_of_launch(s), 1);
	window(s);
	assert_int_equal(s->view->processes[0].incomplete, TRACED_INCOMPLETE_LATE);
	cuda_mark(s->cuda, PID, 2, TRACED_INCOMPLETE_QUIET); /* another one that had its PID */
	window(s);
	assert_int_equal(s->view->processes[0].incomplete, TRACED_INCOMPLETE_LATE);
}

static void the_environment(void **state)
{
	struct scene *s = *state;

	s->environment = "HOME=/\nCUDA_VISIBLE_DEVICES=1\nCUDA_VISIBLE_DEVICES=0\n";
	again(s);
	assert_int_equal(device_of_launch(s), 1);
	s->flags = 0; /* it sees one device alone */
	s->tid = 77;
	assert_int_equal(device_of_launch(s), 1);
	s->flags = TRACE_FLAG_RUNTIME;
	s->environment = "CUDA_VISIBLE_DEVICES=";
	again(s);
	assert_int_equal(device_of_launch(s), -1);
	s->environment = "XCUDA_VISIBLE_DEVICES=1";
	again(s);
	assert_int_equal(device_of_launch(s), 0);
	s->environment_error = -EACCES;
	again(s);
	assert_int_equal(device_of_launch(s), -1);
}

static void set_with(struct scene *s, uint16_t flags, const char *text)
{
	struct trace_text event = { .header = { .time_ns = scene_ns(s, s->now_us),
						.tgid = s->tgid,
						.tid = s->tid,
						.type = TRACE_EVENT_TEXT,
						.op = TRACE_OP_SETENV,
						.flags = flags } };

	snprintf(event.text, sizeof(event.text), "%s", text);
	cuda_event(s->cuda, &event.header, sizeof(event));
}

static void set_text(struct scene *s, const char *text)
{
	set_with(s, 0, text);
}

/* setenv() that does not overwrite does nothing where there is something. */
static void set_unless_it_is(void **state)
{
	struct scene *s = *state;

	s->environment = "CUDA_VISIBLE_DEVICES=1";
	again(s);
	set_with(s, TRACE_FLAG_KEEPS, "0");
	assert_int_equal(device_of_launch(s), 1);
	s->environment = "";
	again(s);
	set_with(s, TRACE_FLAG_KEEPS, "1");
	set_with(s, TRACE_FLAG_KEEPS, "0");
	assert_int_equal(device_of_launch(s), 1);
	/* Whether it is there is not known. */
	s->environment_error = -EACCES;
	again(s);
	set_with(s, TRACE_FLAG_KEEPS, "0");
	assert_int_equal(device_of_launch(s), -1);
	again(s);
	set_text(s, "1");
	set_with(s, TRACE_FLAG_KEEPS, "0");
	assert_int_equal(device_of_launch(s), 1);
}

/* What it is set to was not read, or not to its end: not no devices, nor those at its beginning. */
static void set_to_what_is_not_known(void **state)
{
	char text[TRACE_TEXT];
	struct scene *s = *state;

	again(s);
	set_with(s, TRACE_FLAG_UNREAD, "");
	assert_int_equal(device_of_launch(s), -1);
	again(s);
	memset(text, ' ', sizeof(text));
	text[0] = '1';
	text[sizeof(text) - 1] = 0;
	set_text(s, text);
	assert_int_equal(device_of_launch(s), -1);
	again(s);
	set_text(s, text);
	set_text(s, "0");
	assert_int_equal(device_of_launch(s), 0);
}

static void set_by_the_program(void **state)
{
	struct scene *s = *state;

	s->environment = "CUDA_VISIBLE_DEVICES=0";
	again(s);
	set_text(s, "0");
	set_text(s, "1");
	CALL(s, INIT, .size = 0);
	set_text(s, "0"); /* too late: CUDA has read it */
	assert_int_equal(device_of_launch(s), 1);
}

static void containers(void **state)
{
	struct scene *s = *state;

	s->is_limited = true;
	s->allowed[0] = UUID1;
	s->allowed_n = 1;
	again(s);
	assert_int_equal(device_of_launch(s), 1); /* its device 0 */
	s->environment = "CUDA_VISIBLE_DEVICES=1";
	again(s);
	assert_int_equal(device_of_launch(s), -1); /* it has no second one */
	s->allowed_n = 0;
	again(s);
	assert_int_equal(device_of_launch(s), -1);
}

/* What CUDA has enumerated stays, though the node's list changes. */
static void devices_that_change(void **state)
{
	static const struct cuda_device swapped[] = { { .uuid = UUID1, .speed = 1 },
						      { .uuid = UUID0, .speed = 1 } };
	struct scene *s = *state;

	assert_int_equal(device_of_launch(s), 0);
	assert_int_equal(cuda_set_devices(s->cuda, swapped, 2), 0);
	assert_int_equal(device_of_launch(s), 0);
	again(s);
	assert_int_equal(device_of_launch(s), 1);
	assert_int_equal(cuda_set_devices(s->cuda, NULL, 0), 0);
	again(s);
	assert_int_equal(device_of_launch(s), -1);
	assert_int_equal(cuda_set_devices(s->cuda, swapped, 2), 0);
	assert_int_equal(device_of_launch(s), 1);
	assert_int_equal(cuda_set_devices(s->cuda, swapped, 1 << 20), -E2BIG);
}

/* Instances: a container is given one, its GPU is not on the list. */
static void instances(void **state)
{
	static const struct cuda_device node[] = {
		{ .uuid = UUID0, .mig = true },
		{ .uuid = "MIG-a", .parent = UUID0 },
		{ .uuid = "MIG-b", .parent = UUID0 },
	};
	struct scene *s = *state;

	assert_int_equal(cuda_set_devices(s->cuda, node, 3), 0);
	s->is_limited = true;
	s->allowed[0] = "MIG-b";
	s->allowed_n = 1;
	again(s);
	launch(s, 0);
	window(s);
	assert_value(s, "MIG-b", TRACED_LAUNCHES, 1);
	s->is_limited = false;
	s->environment = "CUDA_VISIBLE_DEVICES=MIG-b";
	again(s);
	launch(s, 0);
	window(s);
	assert_value(s, "MIG-b", TRACED_LAUNCHES, 1);
}

/* An environment that was cut may say more in the rest. */
static void unreadable_rest(void **state)
{
	struct scene *s = *state;

	s->environment = "HOME=/";
	s->environment_cut = true;
	again(s);
	assert_int_equal(device_of_launch(s), -1);
	s->environment = "CUDA_VISIBLE_DEVICES=1";
	again(s);
	assert_int_equal(device_of_launch(s), 1);
}

/* Which of two unlike GPUs CUDA puts first is a guess, and said to be one. */
static void unlike_devices(void **state)
{
	static const struct cuda_device unlike[] = { { .uuid = UUID0, .speed = 1 },
						     { .uuid = UUID1, .speed = 2 } };
	struct scene *s = *state;

	assert_int_equal(cuda_set_devices(s->cuda, unlike, 2), 0);
	again(s);
	assert_int_equal(device_of_launch(s), 1);
	assert_int_equal(shown(s, s->tgid, UUID1)->p[TRACED_LAUNCHES], PRESENCE_PRESENT | PRESENCE_ESTIMATED);
	assert_int_equal(shown(s, s->tgid, UUID1)->p[TRACED_LIVE_DEVICE],
			 PRESENCE_PRESENT | PRESENCE_ESTIMATED);
	s->environment = "CUDA_DEVICE_ORDER=PCI_BUS_ID";
	again(s);
	assert_int_equal(device_of_launch(s), 0);
	assert_int_equal(shown(s, s->tgid, UUID0)->p[TRACED_LAUNCHES], PRESENCE_PRESENT);
}

/* The primary context goes with its last reference, where all were seen and the runtime has none. */
static void references(void **state)
{
	struct scene *s = *state;

	s->flags = 0;
	CALL(s, CONTEXT_RETAIN, .handle = 0xc0, .kind = 0);
	CALL(s, CONTEXT_RETAIN, .handle = 0xc0, .kind = 0);
	CALL(s, CONTEXT_SET, .handle = 0xc0);
	allocate(s, TRACE_MEMORY_DEVICE, 0x1000, 100);
	CALL(s, CONTEXT_RELEASE, .kind = 0);
	window(s);
	assert_value(s, UUID0, TRACED_LIVE_DEVICE, 100);
	CALL(s, CONTEXT_RELEASE, .kind = 0);
	window(s);
	assert_value(s, UUID0, TRACED_LIVE_DEVICE, 0);
	CALL(s, CONTEXT_RETAIN, .handle = 0xc0, .kind = 0);
	allocate(s, TRACE_MEMORY_DEVICE, 0x1000, 100);
	s->flags = TRACE_FLAG_RUNTIME;
	launch(s, 0);
	CALL(s, CONTEXT_RELEASE, .kind = 0);
	window(s);
	assert_value(s, UUID0, TRACED_LIVE_DEVICE, 100);
}

static void limits(void **state)
{
	struct cuda_limits limits = { .contexts = 4, .threads = 4 };
	struct scene *s = scene_new(&limits);
	struct cuda_stats stats;

	(void)state;
	for (uint32_t i = 0; i < 50; i++) {
		s->tid = i + 1;
		CALL(s, CONTEXT_PUSH, .handle = 0xc0 + i);
		CALL(s, DEVICE_SET, .kind = i);
		for (int k = 0; k < 20; k++)
			CALL(s, CONTEXT_PUSH, .handle = 0xc0);
		launch(s, 0);
	}
	cuda_stats(s->cuda, &stats);
	assert_true(stats.overflow_contexts > 0);
	assert_true(stats.overflow_threads > 0);
	/* Destroyed ones make room. */
	for (uint32_t i = 0; i < 50; i++)
		CALL(s, CONTEXT_DESTROY, .handle = 0xc0 + i);
	cuda_stats(s->cuda, &stats);
	for (uint32_t i = 0; i < 50; i++) {
		uint64_t before = stats.overflow_contexts;

		CALL(s, CONTEXT_CREATE, .handle = 0xf0, .kind = 1);
		assert_int_equal(device_of_launch(s), 1);
		CALL(s, CONTEXT_DESTROY, .handle = 0xf0);
		cuda_stats(s->cuda, &stats);
		assert_int_equal(stats.overflow_contexts, before);
	}
	scene_free(s);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, scene_setup, scene_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(the_runtime),
		CASE(the_driver),
		CASE(streams_keep_their_device),
		CASE(what_nvml_knows),
		CASE(late_ones),
		CASE(the_environment),
		CASE(nvml_speaks_of_another_process_with_the_pid),
		CASE(late_ones),
		CASE(the_environment),
		CASE(set_by_the_program),
		CASE(set_unless_it_is),
		CASE(set_to_what_is_not_known),
		CASE(containers),
		CASE(devices_that_change),
		CASE(instances),
		CASE(unlike_devices),
		CASE(unreadable_rest),
		CASE(references),
		cmocka_unit_test(limits),
	};

	return cmocka_run_group_tests_name("context", tests, NULL, NULL);
}
