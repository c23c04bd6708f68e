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

/* What cuInit found; NULL: not set. */
static void found_with(struct scene *s, enum trace_variable which, uint64_t set, uint32_t cut,
		       const char *text)
{
	union {
		struct trace_name event;
		char room[sizeof(struct trace_name) + TRACE_NAME_LARGE];
	} record;

	memset(&record, 0, sizeof(record));
	record.event.header = (struct trace_header){ .time_ns = scene_ns(s, s->now_us),
						     .tgid = s->tgid,
						     .tid = s->tid,
						     .type = TRACE_EVENT_NAME,
						     .op = TRACE_OP_INIT };
	record.event.handle = which;
	record.event.of = set;
	record.event.name_n = (uint32_t)strlen(text);
	record.event.cut = cut;
	memcpy(record.room + sizeof(record.event), text, strlen(text));
	cuda_event(s->cuda, &record.event.header, sizeof(record));
}

static void found(struct scene *s, const char *visible, const char *order)
{
	found_with(s, TRACE_VARIABLE_VISIBLE, visible ? TRACE_SET_YES : TRACE_SET_NO, 0,
		   visible ? visible : "");
	found_with(s, TRACE_VARIABLE_ORDER, order ? TRACE_SET_YES : TRACE_SET_NO, 0, order ? order : "");
}

/* Whatever it was started with. */
static void variables_of_cuinit(void **state)
{
	struct scene *s = *state;

	s->environment = "CUDA_VISIBLE_DEVICES=0";
	again(s);
	found(s, "1", NULL);
	CALL(s, INIT, .size = 0);
	found(s, "0", NULL); /* too late: CUDA has read it */
	assert_int_equal(device_of_launch(s), 1);
	s->environment = "CUDA_VISIBLE_DEVICES=1";
	again(s);
	found(s, NULL, NULL);
	assert_int_equal(device_of_launch(s), 0);
	/* A first cuInit may fail. */
	again(s);
	found(s, "5", NULL);
	s->result = 100;
	CALL(s, INIT, .size = 0);
	found(s, "1", NULL);
	assert_int_equal(device_of_launch(s), 1);
	/* It counts, though CUDA has been called before; but not in another process. */
	again(s);
	CALL(s, DEVICE_GET, .kind = 0);
	found(s, "0", NULL);
	assert_int_equal(device_of_launch(s), 0);
	again(s);
	assert_int_equal(device_of_launch(s), 1);
}

/* What was not read, or not to its end, is not no devices, nor those at its beginning: /proc must tell. */
static void variables_that_are_not_known(void **state)
{
	struct scene *s = *state;
	char text[VALUE_MAX + 2];

	memset(text, ' ', sizeof(text));
	text[0] = '0';
	text[sizeof(text) - 1] = 0;
	s->environment = "CUDA_VISIBLE_DEVICES=1";
	again(s);
	found_with(s, TRACE_VARIABLE_VISIBLE, TRACE_SET_UNKNOWN, 0, "");
	found_with(s, TRACE_VARIABLE_ORDER, TRACE_SET_UNKNOWN, 0, "");
	assert_int_equal(device_of_launch(s), 1);
	again(s);
	found_with(s, TRACE_VARIABLE_VISIBLE, TRACE_SET_YES, 1, "0");
	found_with(s, TRACE_VARIABLE_ORDER, TRACE_SET_NO, 0, "");
	assert_int_equal(device_of_launch(s), 1);
	s->environment_error = -EACCES;
	again(s);
	found(s, text, NULL);
	assert_int_equal(device_of_launch(s), -1);
	again(s);
	text[VALUE_MAX] = 0;
	found(s, text, NULL);
	assert_int_equal(device_of_launch(s), 0);
}

static bool launches_are_estimated(struct scene *s, const char *uuid)
{
	return shown(s, s->tgid, uuid)->p[TRACED_LAUNCHES] & PRESENCE_ESTIMATED;
}

/* cuInit was not seen, and the variables are others than at the start: set before it, or after. */
static void variables_that_were_changed(void **state)
{
	struct scene *s = *state;

	s->environment = "CUDA_VISIBLE_DEVICES=1";
	again(s);
	assert_int_equal(device_of_launch(s), 1);
	assert_false(launches_are_estimated(s, UUID1));
	s->environment_state = CUDA_ENVIRONMENT_CHANGED;
	again(s);
	assert_int_equal(device_of_launch(s), 1);
	assert_true(launches_are_estimated(s, UUID1));
	s->environment_state = CUDA_ENVIRONMENT_UNKNOWN;
	again(s);
	assert_int_equal(device_of_launch(s), -1);
}

/* A process that was there before the probes: its cuInit may not be its first. */
static void variables_of_a_late_cuinit(void **state)
{
	struct scene *s = *state;

	s->environment = "CUDA_VISIBLE_DEVICES=1";
	again(s);
	found(s, "1", NULL);
	cuda_mark(s->cuda, s->tgid, s->tgid, TRACED_INCOMPLETE_LATE);
	assert_int_equal(device_of_launch(s), 1);
	assert_false(launches_are_estimated(s, UUID1));
	s->environment_state = CUDA_ENVIRONMENT_CHANGED;
	again(s);
	found(s, "0", NULL);
	cuda_mark(s->cuda, s->tgid, s->tgid, TRACED_INCOMPLETE_LATE);
	assert_int_equal(device_of_launch(s), 0);
	assert_true(launches_are_estimated(s, UUID0));
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

static unsigned why_unplaced(const struct scene *s)
{
	uint32_t i = trace_view_find(s->view, s->view->processes_n, s->tgid);

	return s->view->processes[i].unplaced;
}

/* Not known is not all; and what is assumed is an estimate. Both end when more is known. */
static void containers_that_are_not_known(void **state)
{
	struct scene *s = *state;

	s->limit_error = -ENXIO;
	again(s);
	assert_int_equal(device_of_launch(s), -1);
	assert_int_equal(why_unplaced(s), TRACED_UNPLACED_CONTAINER);
	s->limit_error = -ENODATA;
	cuda_limits_changed(s->cuda);
	assert_int_equal(device_of_launch(s), 0);
	assert_int_equal(why_unplaced(s), TRACED_PLACED);
	assert_true(launches_are_estimated(s, UUID0));
	s->is_limited = true;
	s->limit_error = CUDA_ALLOWED_GUESSED;
	s->allowed_n = 0;
	cuda_limits_changed(s->cuda);
	assert_int_equal(device_of_launch(s), -1);
	assert_int_equal(why_unplaced(s), TRACED_UNPLACED_NONE);
	s->limit_error = 0;
	s->allowed[0] = UUID1;
	s->allowed_n = 1;
	assert_int_equal(device_of_launch(s), -1);
	cuda_limits_changed(s->cuda);
	assert_int_equal(device_of_launch(s), 1);
	assert_false(launches_are_estimated(s, UUID1));
	/* What is known stays: its devices are those that it was started with. */
	s->allowed[0] = UUID0;
	cuda_limits_changed(s->cuda);
	assert_int_equal(device_of_launch(s), 1);
}

/* It stays, too: what was allocated, as far as the process's own nodes do not confirm it. */
static void what_was_given_is_an_estimate_that_stays(void **state)
{
	struct scene *s = *state;

	s->is_limited = true;
	s->limit_error = CUDA_ALLOWED_GIVEN;
	s->allowed[0] = UUID1;
	s->allowed_n = 1;
	again(s);
	assert_int_equal(device_of_launch(s), 1);
	assert_true(launches_are_estimated(s, UUID1));
	s->limit_error = -ENODATA;
	cuda_limits_changed(s->cuda);
	assert_int_equal(device_of_launch(s), 1);
}

/* A privileged container sees more than it was given. */
static void nvml_contradicts_what_was_given(void **state)
{
	struct scene *s = *state;

	s->is_limited = true;
	s->allowed[0] = UUID1;
	s->allowed_n = 1;
	again(s);
	assert_int_equal(device_of_launch(s), 1);
	cuda_nvml(s->cuda, (struct process_id){ .pid = s->tgid }, UUID0, 0, 0, 1);
	assert_int_equal(device_of_launch(s), 0);
	/* Of several it does not tell which. */
	cuda_nvml(s->cuda, (struct process_id){ .pid = s->tgid }, UUID0, 0, 0, 1);
	cuda_nvml(s->cuda, (struct process_id){ .pid = s->tgid }, UUID1, 0, 0, 1);
	assert_int_equal(device_of_launch(s), 1);
}

static void why_a_device_is_not_known(void **state)
{
	struct scene *s = *state;

	s->environment = "CUDA_VISIBLE_DEVICES=";
	again(s);
	assert_int_equal(device_of_launch(s), -1);
	assert_int_equal(why_unplaced(s), TRACED_UNPLACED_NONE);
	s->environment_error = -EACCES;
	again(s);
	assert_int_equal(device_of_launch(s), -1);
	assert_int_equal(why_unplaced(s), TRACED_UNPLACED_ENVIRONMENT);
	s->environment_error = 0;
	s->environment = NULL;
	again(s);
	s->flags = 0;
	assert_int_equal(device_of_launch(s), -1);
	assert_int_equal(why_unplaced(s), TRACED_UNPLACED_CONTEXT);
	s->flags = TRACE_FLAG_RUNTIME;
	assert_int_equal(cuda_set_devices(s->cuda, NULL, 0), 0);
	again(s);
	assert_int_equal(device_of_launch(s), -1);
	assert_int_equal(why_unplaced(s), TRACED_UNPLACED_DEVICES);
	for (unsigned i = TRACED_PLACED + 1; i < TRACED_UNPLACEDS; i++)
		assert_true(traced_unplaced_name(i)[0] && traced_unplaced_words(i)[0]);
	assert_null(traced_unplaced_name(TRACED_PLACED));
	assert_null(traced_unplaced_words(TRACED_UNPLACEDS));
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
	assert_true(stats.overflow[CUDA_LIMIT_CONTEXTS] > 0);
	assert_true(stats.overflow[CUDA_LIMIT_THREADS] > 0);
	/* Destroyed ones make room. */
	for (uint32_t i = 0; i < 50; i++)
		CALL(s, CONTEXT_DESTROY, .handle = 0xc0 + i);
	cuda_stats(s->cuda, &stats);
	for (uint32_t i = 0; i < 50; i++) {
		uint64_t before = stats.overflow[CUDA_LIMIT_CONTEXTS];

		CALL(s, CONTEXT_CREATE, .handle = 0xf0, .kind = 1);
		assert_int_equal(device_of_launch(s), 1);
		CALL(s, CONTEXT_DESTROY, .handle = 0xf0);
		cuda_stats(s->cuda, &stats);
		assert_int_equal(stats.overflow[CUDA_LIMIT_CONTEXTS], before);
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
		CASE(variables_of_cuinit),
		CASE(variables_that_are_not_known),
		CASE(variables_that_were_changed),
		CASE(variables_of_a_late_cuinit),
		CASE(containers),
		CASE(containers_that_are_not_known),
		CASE(what_was_given_is_an_estimate_that_stays),
		CASE(nvml_contradicts_what_was_given),
		CASE(why_a_device_is_not_known),
		CASE(devices_that_change),
		CASE(instances),
		CASE(unlike_devices),
		CASE(unreadable_rest),
		CASE(references),
		cmocka_unit_test(limits),
	};

	return cmocka_run_group_tests_name("context", tests, NULL, NULL);
}
