// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "base/macro.h"
#include "tracing.h"

enum { OUTER = 5, NAMES, ALIAS, OTHER, MODULE = 0x4d4d };

#define HANDLE UINT64_C(0x7f0000001000)
#define RETURNS (TRACE_SPEC_RETURNS | TRACE_SPEC_EVENT)
#define OPERAND(from_, arg_)                                        \
	{                                                           \
		.from = TRACE_FROM_##from_, .arg = arg_, .width = 8 \
	}

static const struct trace_spec outer = { .op = TRACE_OP_LAUNCH, .flags = RETURNS };
/* cuModuleGetFunction(function *, module, name) */
static const struct trace_spec names = {
	.op = TRACE_OP_FUNCTION_NAME,
	.shape = TRACE_SHAPE_NAME,
	.flags = RETURNS | TRACE_SPEC_ALWAYS,
	.operands = { [TRACE_OPERAND_HANDLE] = OPERAND(OUT, 0),
		      [TRACE_OPERAND_STREAM] = OPERAND(ARG, 1),
		      [TRACE_OPERAND_ADDR] = OPERAND(ARG, 2) },
};
/* cuKernelGetFunction(function *, kernel) */
static const struct trace_spec alias = {
	.op = TRACE_OP_FUNCTION_ALIAS,
	.flags = RETURNS | TRACE_SPEC_ALWAYS,
	.operands = { [TRACE_OPERAND_HANDLE] = OPERAND(OUT, 0), [TRACE_OPERAND_ADDR] = OPERAND(ARG, 1) },
};

static uint64_t number(const void *pointer)
{
	return (uint64_t)(uintptr_t)pointer;
}

static volatile size_t name_n;

/*
 * What all functions do: (handle *, of, name, result). A name is in memory once it has been read, as any
 * driver does.
 */
static int give(uint64_t a, uint64_t b, uint64_t c, uint64_t d, _unused_ uint64_t e, _unused_ uint64_t f)
{
	if (c)
		name_n = strlen((const char *)(uintptr_t)c);
	if (a && d == 0)
		*(uint64_t *)(uintptr_t)a = HANDLE + b;
	return (int)d;
}

static void get(const char *name, int result)
{
	uint64_t handle = 0;

	traced_inner(number(&handle), MODULE, number(name), (uint64_t)result, 0, 0);
}

static const struct trace_name *name_of(const struct tracing *tracing, uint16_t call, pid_t pid, unsigned i)
{
	const union tracing_event *event = tracing_event(tracing, TRACE_EVENT_NAME, call, pid, i);

	return event ? &event->name : NULL;
}

static void check_name(const struct trace_name *event, const char *name)
{
	assert_non_null(event);
	assert_int_equal(event->handle, HANDLE + MODULE);
	assert_int_equal(event->of, MODULE);
	assert_int_equal(event->header.op, TRACE_OP_FUNCTION_NAME);
	assert_int_equal(event->header.flags, 0);
	assert_string_equal(event->name, name);
	assert_int_equal(event->name_n, strlen(name));
	assert_int_equal(event->cut, 0);
}

/* ---- names ---- */

static const uint32_t lengths[] = { 0,    1,    190,  191,   192,   193,   1022,  1023,
				    1024, 1025, 5000, 16382, 16383, 16384, 16385, 20000 };

/* Each character says where it is. */
static char *make_name(uint32_t n)
{
	char *name = malloc(n + 1);

	assert_non_null(name);
	for (uint32_t i = 0; i < n; i++)
		name[i] = (char)('!' + (i + i / 90) % 90);
	name[n] = '\0';
	return name;
}

static void get_lengths(_unused_ void *userdata)
{
	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++)
		get(make_name(lengths[i]), 0);
}

static void names_of_every_length(void **state)
{
	struct tracing *tracing = tracing_of(state);
	pid_t pid;

	traced_body = give;
	tracing_attach(tracing, (const void *)traced_inner, NAMES, &names);
	assert_int_equal(traced_run(get_lengths, NULL, &pid), 0);
	tracing_drain(tracing);
	for (unsigned i = 0; i < ARRAY_SIZE(lengths); i++) {
		const struct trace_name *event = name_of(tracing, NAMES, pid, i);
		uint32_t n = MIN(lengths[i], (uint32_t)TRACE_NAME_LARGE - 1);
		uint32_t room = n < TRACE_NAME_SMALL  ? TRACE_NAME_SMALL :
				n < TRACE_NAME_MEDIUM ? TRACE_NAME_MEDIUM :
							TRACE_NAME_LARGE;
		_cleanup_free_ char *name = make_name(lengths[i]);

		assert_non_null(event);
		assert_int_equal(event->cut, lengths[i] > n);
		assert_int_equal(event->name_n, n);
		assert_memory_equal(event->name, name, n);
		assert_int_equal(event->name[n], '\0');
		assert_int_equal(event->handle, HANDLE + MODULE);
		assert_int_equal(tracing_size(tracing, &event->header), sizeof(*event) + room);
	}
	assert_null(name_of(tracing, NAMES, pid, ARRAY_SIZE(lengths)));
	assert_null(tracing_event(tracing, TRACE_EVENT_CALL, NAMES, pid, 0));
	assert_int_equal(tracing_stat(tracing, pid, NAMES).count, ARRAY_SIZE(lengths));
	assert_int_equal(tracing_stat(tracing, pid, NAMES).bytes, 0);
}

static void get_badly(_unused_ void *userdata)
{
	get("wrong", 500); /* CUDA_ERROR_NOT_FOUND */
	get("right", 0);
}

static void a_call_that_fails_names_nothing(void **state)
{
	struct tracing *tracing = tracing_of(state);
	pid_t pid;

	traced_body = give;
	tracing_attach(tracing, (const void *)traced_inner, NAMES, &names);
	assert_int_equal(traced_run(get_badly, NULL, &pid), 0);
	tracing_drain(tracing);
	check_name(name_of(tracing, NAMES, pid, 0), "right");
	assert_null(name_of(tracing, NAMES, pid, 1));
	assert_int_equal(tracing_stat(tracing, pid, NAMES).count, 2);
	assert_int_equal(tracing_errors(tracing, pid, NAMES, 500), 1);
}

/* Without reading the name. */
static int give_blindly(uint64_t a, uint64_t b, _unused_ uint64_t c, uint64_t d, uint64_t e, uint64_t f)
{
	return give(a, b, 0, d, e, f);
}

static void get_unreadable(_unused_ void *userdata)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED || mprotect(pages + page, page, PROT_NONE) < 0)
		_exit(1);
	memset(pages, 'x', page);
	get(pages + page, 0);
	get(NULL, 0);
	get(pages + page - 20, 0); /* runs into what cannot be read */
	pages[page - 1] = '\0';
	get(pages + page - 6, 0);
}

static void a_name_that_cannot_be_read_is_said_to_be(void **state)
{
	struct tracing *tracing = tracing_of(state);
	pid_t pid;

	traced_body = give_blindly;
	tracing_attach(tracing, (const void *)traced_inner, NAMES, &names);
	assert_int_equal(traced_run(get_unreadable, NULL, &pid), 0);
	tracing_drain(tracing);
	for (unsigned i = 0; i < 3; i++) {
		const struct trace_name *event = name_of(tracing, NAMES, pid, i);

		assert_non_null(event);
		assert_int_equal(event->header.flags, TRACE_FLAG_UNREAD);
		assert_int_equal(event->name_n, 0);
		assert_int_equal(event->cut, 0);
		assert_int_equal(event->name[0], '\0');
		assert_int_equal(event->handle, HANDLE + MODULE);
	}
	check_name(name_of(tracing, NAMES, pid, 3), "xxxxx");
}

static void without_a_result_nothing_is_named(void **state)
{
	struct tracing *tracing = tracing_of(state);
	struct trace_spec spec = names;
	pid_t pid;

	spec.flags &= (uint8_t)~TRACE_SPEC_RETURNS;
	traced_body = give;
	tracing_attach(tracing, (const void *)traced_inner, NAMES, &spec);
	assert_int_equal(traced_run(get_badly, NULL, &pid), 0);
	tracing_drain(tracing);
	assert_null(name_of(tracing, NAMES, pid, 0));
	assert_null(tracing_event(tracing, TRACE_EVENT_CALL, NAMES, pid, 0));
	assert_int_equal(tracing_stat(tracing, pid, NAMES).count, 2);
}

/* cuFuncGetName(name *, function): the handle goes in, the name comes out. */
static int tell(uint64_t a, _unused_ uint64_t b, _unused_ uint64_t c, _unused_ uint64_t d,
		_unused_ uint64_t e, _unused_ uint64_t f)
{
	char *name = strdup("told");

	name_n = strlen(name);
	*(const char **)(uintptr_t)a = name;
	return 0;
}

static void ask(_unused_ void *userdata)
{
	const char *name;

	traced_inner(number(&name), HANDLE, 0, 0, 0, 0);
}

static void who_asks_for_a_name_tells_it(void **state)
{
	static const struct trace_spec spec = {
		.op = TRACE_OP_FUNCTION_NAME,
		.shape = TRACE_SHAPE_NAME,
		.flags = RETURNS,
		.operands = { [TRACE_OPERAND_HANDLE] = OPERAND(ARG, 1),
			      [TRACE_OPERAND_ADDR] = OPERAND(OUT, 0) },
	};
	struct tracing *tracing = tracing_of(state);
	const struct trace_name *event;
	pid_t pid;

	traced_body = tell;
	tracing_attach(tracing, (const void *)traced_inner, NAMES, &spec);
	assert_int_equal(traced_run(ask, NULL, &pid), 0);
	tracing_drain(tracing);
	event = name_of(tracing, NAMES, pid, 0);
	assert_non_null(event);
	assert_string_equal(event->name, "told");
	assert_int_equal(event->handle, HANDLE);
	assert_int_equal(event->of, 0);
}

/* ---- within other calls ---- */

/*
 * The outermost gets a kernel, calls something else from the same place, gets an alias of it, then fails to
 * get another.
 */
static int launch_lazily(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f)
{
	uint64_t handle = 0;

	if (a != 1)
		return give(a, b, c, d, e, f);
	traced_inner(number(&handle), MODULE, number("lazy"), 0, 0, 0);
	traced_fourth(0, 0, 0, 0, 0, 0);
	traced_third(number(&handle), HANDLE, 0, 0, 0, 0);
	get("absent", 500);
	traced_third(number(&handle), HANDLE, 0, 700, 0, 0);
	return 0;
}

static void call_outer(_unused_ void *userdata)
{
	traced_outer(1, 0, 0, 0, 0, 0);
}

static void attach_nest(struct tracing *tracing)
{
	tracing_attach(tracing, (const void *)traced_outer, OUTER, &outer);
	tracing_attach(tracing, (const void *)traced_inner, NAMES, &names);
	tracing_attach(tracing, (const void *)traced_third, ALIAS, &alias);
	tracing_attach(tracing, (const void *)traced_fourth, OTHER, &outer);
}

static void names_within_a_launch(void **state)
{
	struct tracing *tracing = tracing_of(state);
	const union tracing_event *call, *launch;
	pid_t pid;

	traced_body = launch_lazily;
	attach_nest(tracing);
	assert_int_equal(traced_run(call_outer, NULL, &pid), 0);
	tracing_drain(tracing);
	check_name(name_of(tracing, NAMES, pid, 0), "lazy");
	assert_null(name_of(tracing, NAMES, pid, 1));
	call = tracing_event(tracing, TRACE_EVENT_CALL, ALIAS, pid, 0);
	assert_non_null(call);
	assert_int_equal(call->call.handle, HANDLE + HANDLE);
	assert_int_equal(call->call.addr, HANDLE);
	assert_int_equal(call->call.result, 0);
	assert_int_equal(call->header.op, TRACE_OP_FUNCTION_ALIAS);
	assert_int_equal(call->header.flags, 0);
	assert_null(tracing_event(tracing, TRACE_EVENT_CALL, ALIAS, pid, 1));
	launch = tracing_event(tracing, TRACE_EVENT_CALL, OUTER, pid, 0);
	assert_non_null(launch);
	assert_true(call < launch); /* known before it is launched */
	assert_true(call->header.time_ns > launch->header.time_ns);
	assert_true(call->call.duration_ns < launch->call.duration_ns);
	/* They count as nested, as ever. */
	assert_int_equal(tracing_stat(tracing, pid, OUTER).count, 1);
	assert_int_equal(tracing_stat(tracing, pid, NAMES).count, 0);
	assert_int_equal(tracing_stat(tracing, pid, NAMES).nested, 2);
	assert_int_equal(tracing_stat(tracing, pid, ALIAS).nested, 2);
	assert_int_equal(tracing_counters(tracing).unmatched, 0);
	assert_int_equal(tracing_counters(tracing).abandoned, 0);
}

/* A name within an alias within a launch: each has its own place. */
static int launch_deeply(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f)
{
	uint64_t handle = 0;

	if (a == 1)
		return traced_third(number(&handle), 2, 0, 0, 0, 3);
	if (f == 3)
		get("deep", 0);
	return give(a, b, c, d, e, f);
}

static void names_within_aliases(void **state)
{
	struct tracing *tracing = tracing_of(state);
	const union tracing_event *call;
	pid_t pid;

	traced_body = launch_deeply;
	attach_nest(tracing);
	assert_int_equal(traced_run(call_outer, NULL, &pid), 0);
	tracing_drain(tracing);
	check_name(name_of(tracing, NAMES, pid, 0), "deep");
	call = tracing_event(tracing, TRACE_EVENT_CALL, ALIAS, pid, 0);
	assert_non_null(call);
	assert_int_equal(call->call.handle, HANDLE + 2);
	assert_int_equal(call->call.addr, 2);
}

/*
 * traced_tail jumps to traced_inner with the same arguments: as cuModuleLoadData may to what it is made of.
 */
static void jump_into(_unused_ void *userdata)
{
	uint64_t handle;

	traced_tail(number(&handle), MODULE, number("jumped"), 0, 0, 0);
}

static void a_name_that_is_jumped_to(void **state)
{
	struct tracing *tracing = tracing_of(state);
	pid_t pid;

	traced_body = give;
	tracing_attach(tracing, (const void *)traced_tail, OUTER, &outer);
	tracing_attach(tracing, (const void *)traced_inner, NAMES, &names);
	assert_int_equal(traced_run(jump_into, NULL, &pid), 0);
	tracing_drain(tracing);
	check_name(name_of(tracing, NAMES, pid, 0), "jumped");
	assert_null(name_of(tracing, NAMES, pid, 1));
	assert_non_null(tracing_event(tracing, TRACE_EVENT_CALL, OUTER, pid, 0));
	assert_int_equal(tracing_stat(tracing, pid, NAMES).nested, 1);
}

static void what_is_not_wanted_within_others_is_not_told(void **state)
{
	struct tracing *tracing = tracing_of(state);
	struct trace_spec seldom = names;
	pid_t pid;

	seldom.flags &= (uint8_t)~TRACE_SPEC_ALWAYS;
	traced_body = launch_lazily;
	tracing_attach(tracing, (const void *)traced_outer, OUTER, &outer);
	tracing_attach(tracing, (const void *)traced_inner, NAMES, &seldom);
	assert_int_equal(traced_run(call_outer, NULL, &pid), 0);
	tracing_drain(tracing);
	assert_null(name_of(tracing, NAMES, pid, 0));
	tracing_detach(tracing);
	/* Sums only. */
	seldom.flags = TRACE_SPEC_RETURNS | TRACE_SPEC_ALWAYS;
	tracing_attach(tracing, (const void *)traced_outer, OUTER, &outer);
	tracing_attach(tracing, (const void *)traced_inner, NAMES, &seldom);
	assert_int_equal(traced_run(call_outer, NULL, &pid), 0);
	tracing_drain(tracing);
	assert_null(name_of(tracing, NAMES, pid, 0));
	assert_int_equal(tracing_stat(tracing, pid, NAMES).nested, 2);
}

static void call_ordered(void *userdata)
{
	int *pipes = userdata;
	char c;

	call_outer(NULL);
	if (write(pipes[1], "", 1) != 1 || read(pipes[2], &c, 1) != 1)
		_exit(1);
	call_outer(NULL);
}

static void a_quiet_process_names_nothing(void **state)
{
	struct tracing *tracing = tracing_of(state);
	int pipes[4], fd = attach_map_fd(tracing->backend, "procs"), status;
	struct trace_proc proc;
	uint32_t tgid;
	pid_t pid;
	char c;

	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(pipe(pipes + 2), 0);
	traced_body = launch_lazily;
	attach_nest(tracing);
	pid = fork();
	if (pid == 0) {
		call_ordered(pipes);
		_exit(0);
	}
	assert_int_equal(read(pipes[0], &c, 1), 1);
	tgid = (uint32_t)pid;
	assert_int_equal(bpf_map_lookup_elem(fd, &tgid, &proc), 0);
	proc.flags |= TRACE_PROC_QUIET;
	assert_int_equal(bpf_map_update_elem(fd, &tgid, &proc, BPF_EXIST), 0);
	__atomic_add_fetch(&attach_control(tracing->backend)->epoch, 1, __ATOMIC_RELEASE);
	assert_int_equal(write(pipes[3], "", 1), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	tracing_drain(tracing);
	check_name(name_of(tracing, NAMES, pid, 0), "lazy");
	assert_null(name_of(tracing, NAMES, pid, 1));
	assert_int_equal(tracing_stat(tracing, pid, NAMES).nested, 4);
	for (size_t i = 0; i < ARRAY_SIZE(pipes); i++)
		close(pipes[i]);
}

/* ---- calls that do not return ---- */

static jmp_buf away;

static int leave(uint64_t a, _unused_ uint64_t b, uint64_t c, _unused_ uint64_t d, _unused_ uint64_t e,
		 _unused_ uint64_t f)
{
	uint64_t handle = 1;

	/* Both are called from the same place of the stack. */
	if (a == 1 && c)
		traced_inner(number(&handle), MODULE, number("left"), 0, 0, 0);
	else if (a == 1)
		traced_third(number(&handle), 0, 0, 0, 0, 0);
	else if (c == number("left"))
		longjmp(away, 1);
	return 0;
}

static void call_and_leave(_unused_ void *userdata)
{
	if (setjmp(away) == 0)
		traced_outer(1, 0, 1, 0, 0, 0);
	traced_outer(1, 0, 0, 0, 0, 0);
}

/* Where a call that was left lay on the stack, another one returns: that names nothing. */
static void a_name_that_was_left_is_none(void **state)
{
	struct tracing *tracing = tracing_of(state);
	static const struct trace_spec launch = { .op = TRACE_OP_SYNC_DEVICE, .flags = RETURNS };
	pid_t pid;

	traced_body = leave;
	tracing_attach(tracing, (const void *)traced_outer, OUTER, &outer);
	tracing_attach(tracing, (const void *)traced_inner, NAMES, &names);
	tracing_attach(tracing, (const void *)traced_third, OTHER, &launch);
	assert_int_equal(traced_run(call_and_leave, NULL, &pid), 0);
	tracing_drain(tracing);
	assert_null(name_of(tracing, NAMES, pid, 0));
	assert_int_equal(tracing_stat(tracing, pid, NAMES).nested, 1);
	assert_int_equal(tracing_stat(tracing, pid, OTHER).nested, 1);
	assert_int_equal(tracing_stat(tracing, pid, OUTER).count, 1);
}

/* ---- processes ---- */

static void fork_between(void *userdata)
{
	pid_t *ret_child = userdata, child;

	get("parent", 0);
	child = fork();
	if (child == 0) {
		get("child", 0);
		_exit(0);
	}
	*ret_child = child;
	waitpid(child, NULL, 0);
	get("parent again", 0);
}

static void a_child_has_names_of_its_own(void **state)
{
	struct tracing *tracing = tracing_of(state);
	pid_t *children =
		      mmap(NULL, sizeof(pid_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0),
	      pid;

	assert_ptr_not_equal(children, MAP_FAILED);
	traced_body = give;
	tracing_attach(tracing, (const void *)traced_inner, NAMES, &names);
	assert_int_equal(traced_run(fork_between, children, &pid), 0);
	tracing_drain(tracing);
	check_name(name_of(tracing, NAMES, pid, 0), "parent");
	check_name(name_of(tracing, NAMES, pid, 1), "parent again");
	check_name(name_of(tracing, NAMES, children[0], 0), "child");
	munmap(children, sizeof(pid_t));
}

static int execute(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f)
{
	if (a == 1)
		get("before", 0);
	else
		execl("/proc/self/exe", "test", "--executed", NULL);
	return give(a, b, c, d, e, f);
}

static void a_program_executed_within_a_call_has_its_own(void **state)
{
	struct tracing *tracing = tracing_of(state);
	const union tracing_event *begin, *again;
	pid_t pid;

	traced_body = execute;
	tracing_attach(tracing, (const void *)traced_outer, OUTER, &outer);
	tracing_attach(tracing, (const void *)traced_inner, NAMES, &names);
	assert_int_equal(traced_run(call_outer, NULL, &pid), 0);
	tracing_drain(tracing);
	check_name(name_of(tracing, NAMES, pid, 0), "after");
	assert_null(name_of(tracing, NAMES, pid, 1));
	begin = tracing_event(tracing, TRACE_EVENT_PROCESS, -1, pid, 0);
	again = tracing_event(tracing, TRACE_EVENT_PROCESS, -1, pid, 1);
	assert_non_null(begin);
	assert_non_null(again);
	assert_true(again->process.incarnation > begin->process.incarnation);
	assert_int_equal(tracing_counters(tracing).abandoned, 1);
}

/* ---- very many ---- */

enum { FLOOD = 100000 };

static void flood(_unused_ void *userdata)
{
	for (unsigned i = 0; i < FLOOD; i++)
		get("_Z15a_kernel_with_a_name_of_medium_lengthPfS_S_i", 0);
}

static void a_flood_is_counted_to_the_event(void **state)
{
	struct tracing *tracing = tracing_of(state);
	struct trace_counters counters;
	uint64_t received = 0;
	pid_t pid;

	traced_body = give;
	tracing_attach(tracing, (const void *)traced_inner, NAMES, &names);
	assert_int_equal(traced_run(flood, NULL, &pid), 0);
	tracing_drain(tracing);
	counters = tracing_counters(tracing);
	for (unsigned i = 0; i < TRACING_CPUS; i++)
		received += tracing->received[i];
	assert_true(counters.dropped > 0);
	assert_true(received > 1000);
	assert_int_equal(counters.produced, received + counters.dropped);
	assert_true(counters.produced >= FLOOD);
	assert_int_equal(tracing_stat(tracing, pid, NAMES).count, FLOOD);
}

/* A name of 16 KiB has no room in what is left: it is lost whole, and said to be. */
static void a_name_without_room_is_lost(void **state)
{
	struct tracing *tracing = tracing_of(state);
	struct trace_counters before, after;
	pid_t pid;

	traced_body = give;
	tracing_attach(tracing, (const void *)traced_inner, NAMES, &names);
	assert_int_equal(traced_run(flood, NULL, &pid), 0); /* full */
	before = tracing_counters(tracing);
	assert_int_equal(traced_run(get_lengths, NULL, &pid), 0);
	after = tracing_counters(tracing);
	assert_true(after.dropped >= before.dropped + 4);
	tracing_drain(tracing);
	assert_int_equal(traced_run(get_badly, NULL, &pid), 0);
	tracing->events_n = 0;
	tracing_drain(tracing);
	check_name(name_of(tracing, NAMES, pid, 0), "right");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TRACING_TEST(names_of_every_length),
		TRACING_TEST(a_call_that_fails_names_nothing),
		TRACING_TEST(a_name_that_cannot_be_read_is_said_to_be),
		TRACING_TEST(without_a_result_nothing_is_named),
		TRACING_TEST(who_asks_for_a_name_tells_it),
		TRACING_TEST(names_within_a_launch),
		TRACING_TEST(names_within_aliases),
		TRACING_TEST(a_name_that_is_jumped_to),
		TRACING_TEST(what_is_not_wanted_within_others_is_not_told),
		TRACING_TEST(a_quiet_process_names_nothing),
		TRACING_TEST(a_name_that_was_left_is_none),
		TRACING_TEST(a_child_has_names_of_its_own),
		TRACING_TEST(a_program_executed_within_a_call_has_its_own),
		TRACING_TEST(a_flood_is_counted_to_the_event),
		TRACING_TEST(a_name_without_room_is_lost),
	};

	if (argc > 1 && strcmp(argv[1], "--executed") == 0) {
		traced_body = give;
		get("after", 0);
		return 0;
	}
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests_name("attach_names", tests, NULL, NULL);
}
