// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <linux/auxvec.h>
#include <unistd.h>

#include "base/macro.h"
#include "tracing.h"

enum { CALL = 11 };

#define FLAGS (TRACE_SPEC_RETURNS | TRACE_SPEC_EVENT)
#define OPERAND(from_, arg_, width_, value_)                                                    \
	{                                                                                       \
		.from = TRACE_FROM_##from_, .arg = (arg_), .width = (width_), .value = (value_) \
	}

static void *pointer(uint64_t value)
{
	return (void *)(uintptr_t)value;
}

/* The one event of the call that @fn makes in a child. */
static const union tracing_event *event_of(struct tracing *tracing, const void *code,
					   const struct trace_spec *spec, enum trace_event_type type,
					   void (*fn)(void *userdata), pid_t *ret_pid)
{
	const union tracing_event *event;

	tracing_attach(tracing, code, CALL, spec);
	assert_int_equal(traced_run(fn, NULL, ret_pid), 0);
	tracing_drain(tracing);
	event = tracing_event(tracing, type, CALL, *ret_pid, 0);
	assert_non_null(event);
	assert_null(tracing_event(tracing, type, CALL, *ret_pid, 1));
	return event;
}

/* ---- launches ---- */

static void check_launch(const union tracing_event *event, uint64_t shared)
{
	static const uint32_t grid[] = { 1000000, 65535, 3 }, block[] = { 1024, 2, 5 };

	assert_int_equal(event->launch.function, 0x1234567890);
	assert_memory_equal(event->launch.grid, grid, sizeof(grid));
	assert_memory_equal(event->launch.block, block, sizeof(block));
	assert_int_equal(event->launch.shared_bytes, shared);
	assert_int_equal(event->launch.stream, 0x7fff00001111);
	assert_int_equal(event->launch.result, 0);
	assert_int_equal(event->header.op, TRACE_OP_LAUNCH);
	assert_int_equal(event->header.flags & TRACE_FLAG_UNREAD, 0);
}

static void launch(_unused_ void *userdata)
{
	traced_launch(pointer(0x1234567890), 1000000, 65535, 3, 1024, 2, 5, 49152, pointer(0x7fff00001111),
		      NULL, NULL);
}

static void a_launch_of_the_driver(void **state)
{
	struct tracing *tracing = tracing_of(state);
	const struct trace_spec spec = { .op = TRACE_OP_LAUNCH, .shape = TRACE_SHAPE_LAUNCH, .flags = FLAGS };
	pid_t pid;

	check_launch(event_of(tracing, (const void *)traced_launch, &spec, TRACE_EVENT_LAUNCH, launch, &pid),
		     49152);
}

static void launch_dim3(_unused_ void *userdata)
{
	traced_launch_dim3(pointer(0x1234567890), (struct traced_dim3){ 1000000, 65535, 3 },
			   (struct traced_dim3){ 1024, 2, 5 }, NULL, 49152, pointer(0x7fff00001111));
}

static void a_launch_of_the_runtime(void **state)
{
	struct tracing *tracing = tracing_of(state);
	const struct trace_spec spec = { .op = TRACE_OP_LAUNCH,
					 .shape = TRACE_SHAPE_LAUNCH_DIM3,
					 .flags = FLAGS,
					 .event_flags = TRACE_FLAG_RUNTIME };
	pid_t pid;
	const union tracing_event *event = event_of(tracing, (const void *)traced_launch_dim3, &spec,
						    TRACE_EVENT_LAUNCH, launch_dim3, &pid);

	check_launch(event, 49152);
	assert_int_equal(event->header.flags, TRACE_FLAG_RUNTIME);
}

static void launch_config(_unused_ void *userdata)
{
	const struct traced_config config = {
		{ 1000000, 65535, 3 }, { 1024, 2, 5 }, UINT64_C(0x100000008), pointer(0x7fff00001111)
	};

	traced_launch_config(&config, pointer(0x1234567890), NULL, NULL);
}

/* The runtime's shared bytes are 64 bits wide, the driver's 32 and padding. */
static void launches_by_a_configuration(void **state)
{
	struct tracing *tracing = tracing_of(state);
	struct trace_spec spec = { .op = TRACE_OP_LAUNCH,
				   .shape = TRACE_SHAPE_LAUNCH_CONFIG,
				   .flags = FLAGS };
	pid_t pid;

	check_launch(event_of(tracing, (const void *)traced_launch_config, &spec, TRACE_EVENT_LAUNCH,
			      launch_config, &pid),
		     8);
	tracing_detach(tracing);
	spec.event_flags = TRACE_FLAG_RUNTIME;
	check_launch(event_of(tracing, (const void *)traced_launch_config, &spec, TRACE_EVENT_LAUNCH,
			      launch_config, &pid),
		     UINT32_MAX);
}

static void launch_without_memory(_unused_ void *userdata)
{
	traced_launch_config(pointer(8), pointer(0x1234567890), NULL, NULL);
}

static void what_cannot_be_read_is_said_to_be(void **state)
{
	struct tracing *tracing = tracing_of(state);
	const struct trace_spec spec = { .shape = TRACE_SHAPE_LAUNCH_CONFIG, .flags = FLAGS };
	pid_t pid;
	const union tracing_event *event = event_of(tracing, (const void *)traced_launch_config, &spec,
						    TRACE_EVENT_LAUNCH, launch_without_memory, &pid);

	assert_int_equal(event->header.flags, TRACE_FLAG_UNREAD);
	assert_int_equal(event->launch.grid[0], 0);
	assert_int_equal(event->launch.stream, 0);
	assert_int_equal(tracing_stat(tracing, pid, CALL).count, 1);
}

/*
 * What of a configuration lies at the end of what is mapped, as long as is known of it; a later version may
 * be longer, none is shorter.
 */
static void launch_at_the_end(_unused_ void *userdata)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const struct traced_config config = {
		{ 1000000, 65535, 3 }, { 1024, 2, 5 }, 49152, pointer(0x7fff00001111)
	};
	char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED || munmap(pages + page, page) < 0)
		_exit(1);
	memcpy(pages + page - sizeof(config), &config, sizeof(config));
	traced_launch_config((const struct traced_config *)(void *)(pages + page - sizeof(config)),
			     pointer(0x1234567890), NULL, NULL);
}

static void nothing_is_read_behind_what_is_known_of_a_structure(void **state)
{
	struct tracing *tracing = tracing_of(state);
	const struct trace_spec spec = { .op = TRACE_OP_LAUNCH,
					 .shape = TRACE_SHAPE_LAUNCH_CONFIG,
					 .flags = FLAGS };
	pid_t pid;

	check_launch(event_of(tracing, (const void *)traced_launch_config, &spec, TRACE_EVENT_LAUNCH,
			      launch_at_the_end, &pid),
		     49152);
}

/* ---- operands ---- */

static int give(uint64_t a, uint64_t b, _unused_ uint64_t c, _unused_ uint64_t d, _unused_ uint64_t e,
		_unused_ uint64_t f)
{
	*(uint64_t *)(uintptr_t)a = 0xabcdef0123;
	return (int)b;
}

static uint64_t given;
static struct {
	uint64_t unused, height, depth;
} sizes = { 0, 3, 5 };

static void allocate(_unused_ void *userdata)
{
	traced_outer((uint64_t)(uintptr_t)&given, 0, 1000, (uint64_t)(uintptr_t)&sizes,
		     UINT64_C(0xffffffff00000007), 9);
}

static void fail_to_allocate(_unused_ void *userdata)
{
	traced_outer((uint64_t)(uintptr_t)&given, 2, 1000, (uint64_t)(uintptr_t)&sizes, 7, 9);
}

static const struct trace_spec allocation = {
	.op = TRACE_OP_ALLOC,
	.flags = FLAGS,
	.depth_in = 16,
	.operands = { [TRACE_OPERAND_ADDR] = OPERAND(OUT, 0, 8, 0),
		      [TRACE_OPERAND_SIZE] = OPERAND(ARG, 2, 8, 0),
		      [TRACE_OPERAND_TIMES] = OPERAND(IN, 3, 8, 8),
		      [TRACE_OPERAND_STREAM] = OPERAND(ARG, 5, 8, 0),
		      [TRACE_OPERAND_HANDLE] = OPERAND(CONST, 0, 0, -2),
		      [TRACE_OPERAND_KIND] = OPERAND(ARG, 4, 4, 0) },
};

static void operands_of_every_kind(void **state)
{
	struct tracing *tracing = tracing_of(state);
	const union tracing_event *event;
	pid_t pid;

	traced_body = give;
	event = event_of(tracing, (const void *)traced_outer, &allocation, TRACE_EVENT_CALL, allocate, &pid);
	assert_int_equal(event->call.addr, 0xabcdef0123);
	assert_int_equal(event->call.size, 1000 * 3 * 5);
	assert_int_equal(event->call.stream, 9);
	assert_int_equal(event->call.handle, UINT64_MAX - 1);
	assert_int_equal(event->call.kind, 7);
	assert_int_equal(event->call.result, 0);
	assert_int_equal(event->header.op, TRACE_OP_ALLOC);
	assert_int_equal(event->header.tid, pid);
	assert_int_equal(tracing_stat(tracing, pid, CALL).bytes, 15000);
}

static void a_failed_call_has_no_bytes_and_no_address(void **state)
{
	struct tracing *tracing = tracing_of(state);
	const union tracing_event *event;
	pid_t pid;

	traced_body = give;
	event = event_of(tracing, (const void *)traced_outer, &allocation, TRACE_EVENT_CALL, fail_to_allocate,
			 &pid);
	assert_int_equal(event->call.addr, 0);
	assert_int_equal(event->call.result, 2);
	assert_int_equal(tracing_stat(tracing, pid, CALL).bytes, 0);
	assert_int_equal(tracing_stat(tracing, pid, CALL).errors, 1);
	assert_int_equal(tracing_errors(tracing, pid, CALL, 2), 1);
}

static void multiply_beyond_64_bits(_unused_ void *userdata)
{
	traced_outer(UINT64_C(1) << 33, UINT64_C(1) << 31, 0, 0, 0, 0);
	traced_outer(UINT64_C(1) << 32, UINT64_C(1) << 31, 0, 0, 0, 0);
	traced_outer(UINT64_C(0x100000001), UINT64_C(0xffffffff), 0, 0, 0, 0);
	traced_outer(UINT64_C(0x100000001), UINT64_C(0x100000000), 0, 0, 0, 0);
}

static void sizes_saturate(void **state)
{
	struct tracing *tracing = tracing_of(state);
	const struct trace_spec spec = { .flags = FLAGS | TRACE_SPEC_SKIP_BYTES,
					 .operands = { [TRACE_OPERAND_SIZE] = OPERAND(ARG, 0, 8, 0),
						       [TRACE_OPERAND_TIMES] = OPERAND(ARG, 1, 8, 0) } };
	static const uint64_t wanted[] = { UINT64_MAX, UINT64_C(1) << 63, UINT64_MAX, UINT64_MAX };
	pid_t pid;

	tracing_attach(tracing, (const void *)traced_outer, CALL, &spec);
	assert_int_equal(traced_run(multiply_beyond_64_bits, NULL, &pid), 0);
	tracing_drain(tracing);
	for (unsigned i = 0; i < ARRAY_SIZE(wanted); i++)
		assert_true(tracing_event(tracing, TRACE_EVENT_CALL, CALL, pid, i)->call.size == wanted[i]);
	assert_int_equal(tracing_stat(tracing, pid, CALL).bytes, 0);
}

static void count_elements(_unused_ void *userdata)
{
	for (uint64_t type = 0; type <= 12; type++)
		traced_outer(0xc0, 1000, type, 4, 7, 0);
	traced_outer(0xc0, UINT64_MAX, 8, 4, 7, 0);
}

/* Of each type of NCCL, of one that is not known, and more than there can be. */
static void elements_are_reported_as_bytes(void **state)
{
	static const uint64_t wanted[] = { 1000, 1000, 4000, 4000, 8000, 8000, 2000,
					   4000, 8000, 2000, 1000, 1000, 0,    UINT64_MAX };
	struct tracing *tracing = tracing_of(state);
	const struct trace_spec spec = { .op = TRACE_OP_NCCL_REDUCE,
					 .shape = TRACE_SHAPE_ELEMENTS,
					 .flags = FLAGS | TRACE_SPEC_SKIP_BYTES,
					 .operands = { [TRACE_OPERAND_ADDR] = OPERAND(ARG, 0, 8, 0),
						       [TRACE_OPERAND_SIZE] = OPERAND(ARG, 1, 8, 0),
						       [TRACE_OPERAND_KIND] = OPERAND(ARG, 2, 4, 0),
						       [TRACE_OPERAND_HANDLE] = OPERAND(ARG, 3, 4, 0),
						       [TRACE_OPERAND_TIMES] = OPERAND(ARG, 4, 4, 0) } };
	pid_t pid;

	tracing_attach(tracing, (const void *)traced_outer, CALL, &spec);
	assert_int_equal(traced_run(count_elements, NULL, &pid), 0);
	tracing_drain(tracing);
	for (unsigned i = 0; i < ARRAY_SIZE(wanted); i++) {
		const struct trace_call *call = &tracing_event(tracing, TRACE_EVENT_CALL, CALL, pid, i)->call;

		assert_true(call->size == wanted[i]);
		assert_int_equal(call->addr, 0xc0);
		assert_int_equal(call->handle, 4);
		assert_int_equal(call->other, 7); /* and no factor of the size */
	}
}

static void make_communicator(_unused_ void *userdata)
{
	uint8_t id[128];

	for (unsigned i = 0; i < sizeof(id); i++)
		id[i] = (uint8_t)i;
	traced_outer((uintptr_t)id, 8, 5, 0, 0, 0);
}

static void an_id_is_reported_as_nccls_hash_of_it(void **state)
{
	struct tracing *tracing = tracing_of(state);
	const struct trace_spec spec = { .op = TRACE_OP_NCCL_INIT,
					 .shape = TRACE_SHAPE_UNIQUE_ID,
					 .flags = FLAGS,
					 .operands = { [TRACE_OPERAND_ADDR] = OPERAND(ARG, 0, 8, 0),
						       [TRACE_OPERAND_KIND] = OPERAND(ARG, 1, 4, 0),
						       [TRACE_OPERAND_TIMES] = OPERAND(ARG, 2, 4, 0) } };
	pid_t pid;
	const struct trace_call *call = &event_of(tracing, (const void *)traced_outer, &spec,
						  TRACE_EVENT_CALL, make_communicator, &pid)
						 ->call;

	assert_true(call->addr == UINT64_C(0x6afe1cc17717e1f4));
	assert_int_equal(call->kind, 8);
	assert_int_equal(call->other, 5);
}

static int not_ready(_unused_ uint64_t a, _unused_ uint64_t b, _unused_ uint64_t c, _unused_ uint64_t d,
		     _unused_ uint64_t e, _unused_ uint64_t f)
{
	return 600;
}

static void call_plainly(_unused_ void *userdata)
{
	traced_outer(0, 0, 0, 0, 0, 0);
}

static void not_ready_is_an_answer_to_a_query_and_else_an_error(void **state)
{
	struct tracing *tracing = tracing_of(state);
	struct trace_spec spec = { .op = TRACE_OP_QUERY_EVENT, .result = TRACE_RESULT_CUDA, .flags = FLAGS };
	pid_t pid;

	traced_body = not_ready;
	assert_int_equal(event_of(tracing, (const void *)traced_outer, &spec, TRACE_EVENT_CALL, call_plainly,
				  &pid)
				 ->call.result,
			 600);
	assert_int_equal(tracing_stat(tracing, pid, CALL).errors, 0);
	tracing_detach(tracing);
	spec.op = TRACE_OP_SYNC_EVENT;
	event_of(tracing, (const void *)traced_outer, &spec, TRACE_EVENT_CALL, call_plainly, &pid);
	assert_int_equal(tracing_stat(tracing, pid, CALL).errors, 1);
}

/* ---- arguments on the stack ---- */

static void launch_deep(_unused_ void *userdata)
{
	/* The same convention: what counts is where the probe sits. */
	__typeof__(traced_launch) *deep = (__typeof__(traced_launch) *)(void *)traced_deep;

	deep(pointer(0x1234567890), 1000000, 65535, 3, 1024, 2, 5, 49152, pointer(0x7fff00001111), NULL,
	     NULL);
}

static void a_site_where_the_stack_pointer_is_lower(void **state)
{
	struct tracing *tracing = tracing_of(state);
	const struct trace_spec spec = { .op = TRACE_OP_LAUNCH,
					 .shape = TRACE_SHAPE_LAUNCH,
					 .flags = TRACE_SPEC_EVENT };
	struct attach_site site =
		traced_site((const char *)(const void *)traced_deep + traced_deep_offset, CALL);
	pid_t pid;

	site.stack = traced_deep_stack;
	tracing_attach_site(tracing, &site, &spec);
	assert_int_equal(traced_run(launch_deep, NULL, &pid), 0);
	tracing_drain(tracing);
	assert_non_null(tracing_event(tracing, TRACE_EVENT_LAUNCH, CALL, pid, 0));
	check_launch(tracing_event(tracing, TRACE_EVENT_LAUNCH, CALL, pid, 0), 49152);
}

static void allocate_3d(_unused_ void *userdata)
{
	struct traced_pitched pitched = { .pitch = 512 };

	traced_malloc3d(&pitched, (struct traced_extent){ 500, 3, 5 });
}

static void an_extent_by_value(void **state)
{
	struct tracing *tracing = tracing_of(state);
	const struct trace_spec spec = { .op = TRACE_OP_ALLOC,
					 .shape = TRACE_SHAPE_EXTENT,
					 .flags = FLAGS,
					 .operands = { [TRACE_OPERAND_SIZE] = OPERAND(OUT, 0, 8, 8) } };
	pid_t pid;

	assert_int_equal(event_of(tracing, (const void *)traced_malloc3d, &spec, TRACE_EVENT_CALL,
				  allocate_3d, &pid)
				 ->call.size,
			 512 * 3 * 5);
}

/* ---- elements ---- */

static void set_elements(_unused_ void *userdata)
{
	traced_outer(1000, 3, 5, 0, 0, 0);
}

static void elements_of_bytes_and_a_depth_that_is_an_argument(void **state)
{
	struct tracing *tracing = tracing_of(state);
	const struct trace_spec spec = { .op = TRACE_OP_SET,
					 .flags = FLAGS,
					 .depth_in = 2,
					 .operands = { [TRACE_OPERAND_SIZE] = OPERAND(ARG, 0, 8, 4),
						       [TRACE_OPERAND_TIMES] = OPERAND(ARG, 1, 8, 0) } };
	pid_t pid;

	assert_int_equal(event_of(tracing, (const void *)traced_outer, &spec, TRACE_EVENT_CALL, set_elements,
				  &pid)
				 ->call.size,
			 4 * 1000 * 3 * 5);
	assert_int_equal(tracing_stat(tracing, pid, CALL).bytes, 4 * 1000 * 3 * 5);
}

static void copy_extents(_unused_ void *userdata)
{
	traced_outer(1000, 0, 0, 0, 0, 0);
	traced_outer(1000, 0x700000, 0, 0, 0, 0);
	traced_outer(1000, 0, 0x700000, 0, 0, 0);
}

static void an_extent_of_arrays_counts_elements(void **state)
{
	struct tracing *tracing = tracing_of(state);
	const struct trace_spec spec = { .op = TRACE_OP_COPY,
					 .shape = TRACE_SHAPE_ARRAYS,
					 .flags = FLAGS,
					 .operands = { [TRACE_OPERAND_SIZE] = OPERAND(ARG, 0, 8, 0),
						       [TRACE_OPERAND_HANDLE] = OPERAND(ARG, 1, 8, 0),
						       [TRACE_OPERAND_ADDR] = OPERAND(ARG, 2, 8, 0) } };
	pid_t pid;

	tracing_attach(tracing, (const void *)traced_outer, CALL, &spec);
	assert_int_equal(traced_run(copy_extents, NULL, &pid), 0);
	tracing_drain(tracing);
	assert_int_equal(tracing_event(tracing, TRACE_EVENT_CALL, CALL, pid, 0)->call.size, 1000);
	assert_int_equal(tracing_event(tracing, TRACE_EVENT_CALL, CALL, pid, 1)->call.size, 0);
	assert_int_equal(tracing_event(tracing, TRACE_EVENT_CALL, CALL, pid, 2)->call.size, 0);
	assert_int_equal(tracing_stat(tracing, pid, CALL).bytes, 1000);
}

/* ---- batches ---- */

static uint64_t batch[TRACE_BATCH_MAX + 2];

static void copy_batches(_unused_ void *userdata)
{
	for (unsigned i = 0; i < ARRAY_SIZE(batch); i++)
		batch[i] = i + 1;
	traced_outer((uint64_t)(uintptr_t)batch, 0, 0, 0, 0, 0);
	traced_outer((uint64_t)(uintptr_t)batch, 19, 0, 0, 0, 0);
	traced_outer((uint64_t)(uintptr_t)batch, TRACE_BATCH_MAX, 0, 0, 0, 0);
	traced_outer((uint64_t)(uintptr_t)batch, TRACE_BATCH_MAX + 1, 0, 0, 0, 0);
	traced_outer(8, 4, 0, 0, 0, 0);
	batch[0] = UINT32_MAX - 1ULL; /* a sum that carries from its lower half */
	batch[1] = (3ULL << 32) + 2;
	traced_outer((uint64_t)(uintptr_t)batch, 2, 0, 0, 0, 0);
	batch[2] = UINT64_MAX - (4ULL << 32); /* the largest sum, and then one more */
	traced_outer((uint64_t)(uintptr_t)batch, 3, 0, 0, 0, 0);
	traced_outer((uint64_t)(uintptr_t)batch, 4, 0, 0, 0, 0);
}

static void batches_are_added_up(void **state)
{
	struct tracing *tracing = tracing_of(state);
	const struct trace_spec spec = { .op = TRACE_OP_COPY,
					 .shape = TRACE_SHAPE_BATCH,
					 .flags = FLAGS,
					 .operands = { [TRACE_OPERAND_SIZE] = OPERAND(ARG, 0, 8, 0),
						       [TRACE_OPERAND_TIMES] = OPERAND(ARG, 1, 8, 0) } };
	static const struct {
		uint64_t size;
		unsigned flags;
	} wanted[] = { { 0, 0 },
		       { 190, 0 },
		       { 128 * 129 / 2, 0 },
		       { 128 * 129 / 2, TRACE_FLAG_BATCH_CUT },
		       { 0, TRACE_FLAG_UNREAD },
		       { 4ULL << 32, 0 },
		       { UINT64_MAX, 0 },
		       { UINT64_MAX, 0 } };
	pid_t pid;

	tracing_attach(tracing, (const void *)traced_outer, CALL, &spec);
	assert_int_equal(traced_run(copy_batches, NULL, &pid), 0);
	tracing_drain(tracing);
	for (unsigned i = 0; i < ARRAY_SIZE(wanted); i++) {
		const union tracing_event *event = tracing_event(tracing, TRACE_EVENT_CALL, CALL, pid, i);

		assert_int_equal(event->call.size, wanted[i].size);
		assert_int_equal(event->header.flags, wanted[i].flags);
	}
}

/* ---- the environment ---- */

enum { MANY = 8192 }; /* variables that are looked at: ENVIRON_CHUNKS times ENVIRON_CHUNK */

static void change_variables(_unused_ void *userdata)
{
	static char order[] = "CUDA_DEVICE_ORDER=PCI_BUS_ID";
	static char name[MANY + 1][24];
	static char long_value[5000];

	/*
	 * A child of fork() has no page of a file before it touches it, and the kernel side waits for none. A
	 * program that loads libcuda has looked up symbols.
	 */
	if (!dlsym(RTLD_DEFAULT, "environ"))
		_exit(EXIT_FAILURE);
	(void)*(volatile char *)getauxval(AT_PHDR);
	unsetenv("CUDA_VISIBLE_DEVICES");
	traced_outer(0, 0, 0, 0, 0, 0);
	setenv("CUDA_VISIBLE_DEVICE", "9", 1);
	setenv("CUDA_VISIBLE_DEVICES_", "9", 1);
	setenv("CUDA_VISIBLE_DEVICES", "1,0", 1);
	putenv(order);
	traced_outer(0, 0, 0, 0, 0, 0);
	memset(long_value, '7', sizeof(long_value) - 1);
	setenv("CUDA_VISIBLE_DEVICES", long_value, 1);
	unsetenv("CUDA_DEVICE_ORDER");
	traced_outer(0, 0, 0, 0, 0, 0);
	clearenv();
	traced_outer(0, 0, 0, 0, 0, 0);
	for (unsigned i = 0; i <= MANY; i++) {
		snprintf(name[i], sizeof(name[i]), "V%u=", i);
		putenv(name[i]);
	}
	setenv("CUDA_VISIBLE_DEVICES", "3", 1);
	traced_outer(0, 0, 0, 0, 0, 0);
	for (unsigned i = 0; i < 2 * TRACE_INITS_MAX; i++)
		traced_outer(0, 0, 0, 0, 0, 0);
}

/* What getenv() would find at that moment, in any way that it was changed. */
static void variables_that_select_devices(void **state)
{
	static const struct {
		uint64_t which, set;
		uint32_t name_n;
		const char *name;
	} wanted[] = {
		{ TRACE_VARIABLE_VISIBLE, TRACE_SET_NO, 0, "" },
		{ TRACE_VARIABLE_ORDER, TRACE_SET_NO, 0, "" },
		{ TRACE_VARIABLE_VISIBLE, TRACE_SET_YES, 3, "1,0" },
		{ TRACE_VARIABLE_ORDER, TRACE_SET_YES, 10, "PCI_BUS_ID" },
		{ TRACE_VARIABLE_VISIBLE, TRACE_SET_YES, 4999, "7777777" },
		{ TRACE_VARIABLE_ORDER, TRACE_SET_NO, 0, "" },
		{ TRACE_VARIABLE_VISIBLE, TRACE_SET_NO, 0, "" },
		{ TRACE_VARIABLE_ORDER, TRACE_SET_NO, 0, "" },
		{ TRACE_VARIABLE_VISIBLE, TRACE_SET_UNKNOWN, 0, "" },
		{ TRACE_VARIABLE_ORDER, TRACE_SET_UNKNOWN, 0, "" },
	};
	struct tracing *tracing = tracing_of(state);
	const struct trace_spec spec = { .op = TRACE_OP_INIT, .flags = TRACE_SPEC_RETURNS };
	const struct trace_name *event;
	pid_t pid;

	tracing_attach(tracing, (const void *)traced_outer, CALL, &spec);
	assert_int_equal(traced_run(change_variables, NULL, &pid), 0);
	tracing_drain(tracing);
	for (unsigned i = 0; i < ARRAY_SIZE(wanted); i++) {
		const union tracing_event *any = tracing_event(tracing, TRACE_EVENT_NAME, CALL, pid, i);

		assert_non_null(any);
		event = &any->name;
		assert_int_equal(event->header.op, TRACE_OP_INIT);
		assert_int_equal(event->handle, wanted[i].which);
		assert_int_equal(event->of, wanted[i].set);
		assert_int_equal(event->name_n, wanted[i].name_n);
		assert_int_equal(event->cut, 0);
		assert_memory_equal(event->name, wanted[i].name, strlen(wanted[i].name));
	}
	assert_non_null(tracing_event(tracing, TRACE_EVENT_NAME, CALL, pid, TRACE_INITS_MAX * 2 - 1));
	assert_null(tracing_event(tracing, TRACE_EVENT_NAME, CALL, pid, TRACE_INITS_MAX * 2));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TRACING_TEST(a_launch_of_the_driver),
		TRACING_TEST(a_launch_of_the_runtime),
		TRACING_TEST(launches_by_a_configuration),
		TRACING_TEST(what_cannot_be_read_is_said_to_be),
		TRACING_TEST(nothing_is_read_behind_what_is_known_of_a_structure),
		TRACING_TEST(operands_of_every_kind),
		TRACING_TEST(a_failed_call_has_no_bytes_and_no_address),
		TRACING_TEST(sizes_saturate),
		TRACING_TEST(elements_are_reported_as_bytes),
		TRACING_TEST(an_id_is_reported_as_nccls_hash_of_it),
		TRACING_TEST(not_ready_is_an_answer_to_a_query_and_else_an_error),
		TRACING_TEST(a_site_where_the_stack_pointer_is_lower),
		TRACING_TEST(an_extent_by_value),
		TRACING_TEST(elements_of_bytes_and_a_depth_that_is_an_argument),
		TRACING_TEST(an_extent_of_arrays_counts_elements),
		TRACING_TEST(batches_are_added_up),
		TRACING_TEST(variables_that_select_devices),
	};

	return cmocka_run_group_tests_name("attach_shapes", tests, NULL, NULL);
}
