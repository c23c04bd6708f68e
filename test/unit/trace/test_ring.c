// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <linux/bpf.h>
#include <string.h>
#include <sys/mman.h>

#include "trace/ring.h"

enum { BYTES = 65536 };

/* A ring in memory, and what came out of it. */
struct lab {
	_Alignas(8) uint8_t data[BYTES];
	uint64_t consumer, producer;
	struct ring ring;
	struct ring_order order;
	unsigned records, events;
	uint32_t sizes[64];
	_Alignas(8) uint8_t last[sizeof(struct trace_name) + TRACE_NAME_LARGE]; /* as large as any */
};

static int set_up(void **state)
{
	static struct lab lab;

	memset(&lab, 0, sizeof(lab));
	lab.ring = (struct ring){
		.consumer = &lab.consumer, .producer = &lab.producer, .data = lab.data, .mask = BYTES - 1
	};
	assert_int_equal(ring_order_init(&lab.order, 4), 0);
	*state = &lab;
	return 0;
}

static int tear_down(void **state)
{
	struct lab *lab = *state;

	ring_order_done(&lab->order);
	return 0;
}

static void put_word(struct lab *lab, uint64_t at, uint32_t word)
{
	memcpy(lab->data + (at & (BYTES - 1)), &word, sizeof(word));
}

static void produce(struct lab *lab, const void *data, uint32_t size, uint32_t bits)
{
	put_word(lab, lab->producer, size | bits);
	for (uint32_t i = 0; i < size; i++)
		lab->data[(lab->producer + 8 + i) & (BYTES - 1)] = ((const uint8_t *)data)[i];
	lab->producer += (size + 8 + 7) / 8 * 8;
}

static void on_record(const void *data, uint32_t size, void *userdata)
{
	struct lab *lab = userdata;

	lab->sizes[lab->records++ % 64] = size;
	memcpy(lab->last, data, MIN(size, (uint32_t)sizeof(lab->last)));
	lab->events += ring_order_take(&lab->order, data, size) != NULL;
}

static struct trace_call event(uint64_t seq, uint16_t cpu, uint8_t type)
{
	return (struct trace_call){ .header = { .seq = seq, .cpu = cpu, .type = type, .tgid = 7 } };
}

static void records_in_order(void **state)
{
	struct lab *lab = *state;
	struct trace_call e = event(1, 0, TRACE_EVENT_LAUNCH);

	produce(lab, &e, sizeof(struct trace_launch), 0);
	produce(lab, &e, sizeof(struct trace_call), BPF_RINGBUF_DISCARD_BIT);
	e.header.seq = 2;
	produce(lab, &e, sizeof(struct trace_launch), 0);
	produce(lab, &e, sizeof(struct trace_launch), BPF_RINGBUF_BUSY_BIT);
	assert_int_equal(ring_drain(&lab->ring, on_record, lab), 2);
	assert_int_equal(lab->events, 2);
	assert_int_equal(lab->order.received, 2);
	assert_int_equal(lab->order.by_type[TRACE_EVENT_LAUNCH], 2);
	assert_int_equal(lab->order.by_type[TRACE_EVENT_CALL], 0);
	assert_int_equal(lab->order.missing, 0);
	/* the busy one stays */
	assert_int_equal(lab->producer - lab->consumer, sizeof(struct trace_launch) + BPF_RINGBUF_HDR_SZ);
	assert_false(ring_pending(&lab->ring));
	put_word(lab, lab->consumer, sizeof(struct trace_launch));
	assert_true(ring_pending(&lab->ring));
	assert_int_equal(ring_drain(&lab->ring, on_record, lab), 1);
	assert_int_equal(lab->consumer, lab->producer);
}

static void records_cut_in_two(void **state)
{
	struct lab *lab = *state;

	for (uint64_t seq = 1; seq <= 1000; seq++) {
		struct trace_call e = event(seq, 1, TRACE_EVENT_CALL);

		e.size = seq;
		produce(lab, &e, sizeof(e), 0);
		assert_int_equal(ring_drain(&lab->ring, on_record, lab), 1);
		assert_memory_equal(lab->last, &e, sizeof(e));
	}
	assert_int_equal(lab->order.cpus[1].received, 1000);
	assert_int_equal(lab->order.cpus[1].highest, 1000);
}

static void gaps(void **state)
{
	struct lab *lab = *state;
	static const uint64_t seqs[] = { 1, 2, 5, 4, 9 };

	for (size_t i = 0; i < ARRAY_SIZE(seqs); i++) {
		struct trace_call e = event(seqs[i], 2, TRACE_EVENT_CALL);

		produce(lab, &e, sizeof(struct trace_call), 0);
	}
	ring_drain(&lab->ring, on_record, lab);
	assert_int_equal(lab->order.missing, 4); /* 3, 6, 7, 8 */
	assert_int_equal(lab->order.cpus[2].highest - lab->order.cpus[2].received, 4);
}

static void not_believed(void **state)
{
	struct lab *lab = *state;
	struct trace_call e = event(1, 0, TRACE_EVENTS);

	produce(lab, &e, sizeof(e), 0); /* a type of tomorrow */
	e = event(2, 0, TRACE_EVENT_NONE);
	produce(lab, &e, sizeof(e), 0);
	assert_int_equal(ring_drain(&lab->ring, on_record, lab), 2);
	assert_int_equal(lab->order.unknown, 2);
	assert_int_equal(lab->order.received, 2);
	e = event(3, 0, TRACE_EVENT_LAUNCH);
	produce(lab, &e, sizeof(struct trace_launch) - 1, 0); /* cut */
	produce(lab, &e, sizeof(struct trace_header) - 1, 0);
	produce(lab, &e, 0, 0);
	e = event(4, 4, TRACE_EVENT_LAUNCH); /* no such CPU */
	produce(lab, &e, sizeof(struct trace_launch), 0);
	e = event(0, 0, TRACE_EVENT_LAUNCH); /* numbers begin with 1 */
	produce(lab, &e, sizeof(struct trace_launch), 0);
	e = event(4, 0, TRACE_EVENT_LAUNCH);
	e.header.call = TRACE_CALLS_MAX;
	produce(lab, &e, sizeof(struct trace_launch), 0);
	assert_int_equal(ring_drain(&lab->ring, on_record, lab), 6);
	assert_int_equal(lab->order.bad, 6);
	assert_int_equal(lab->events, 0);
	assert_int_equal(lab->ring.torn, 0);
}

/* ---- names ---- */

union named {
	struct trace_name name;
	char room[sizeof(struct trace_name) + TRACE_NAME_LARGE + 8];
};

static union named *a_name(uint64_t seq, uint32_t n)
{
	static union named named;

	memset(&named, 0, sizeof(named));
	named.name.header = event(seq, 0, TRACE_EVENT_NAME).header;
	named.name.name_n = n;
	memset(named.name.name, 'n', n);
	return &named;
}

static void names_of_all_sizes(void **state)
{
	struct lab *lab = *state;
	static const struct {
		uint32_t room, n;
	} good[] = { { TRACE_NAME_SMALL, 0 },  { TRACE_NAME_SMALL, TRACE_NAME_SMALL - 1 },
		     { TRACE_NAME_MEDIUM, 1 }, { TRACE_NAME_MEDIUM, TRACE_NAME_MEDIUM - 1 },
		     { TRACE_NAME_LARGE, 20 }, { TRACE_NAME_LARGE, TRACE_NAME_LARGE - 1 } };
	uint64_t seq = 0;

	/* Some of them lie over the ring's end. */
	for (int round = 0; round < 20; round++)
		for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
			const union named *named = a_name(++seq, good[i].n);
			uint32_t size = (uint32_t)sizeof(struct trace_name) + good[i].room;

			produce(lab, named, size, 0);
			assert_int_equal(ring_drain(&lab->ring, on_record, lab), 1);
			assert_int_equal(lab->events, seq);
			assert_int_equal(lab->sizes[(lab->records - 1) % 64], size);
			assert_memory_equal(lab->last, named, size);
		}
	assert_int_equal(lab->order.bad, 0);
}

static void names_that_lie(void **state)
{
	struct lab *lab = *state;
	union named *named = a_name(1, TRACE_NAME_SMALL); /* as long as the record */
	uint32_t head = sizeof(struct trace_name), small = head + TRACE_NAME_SMALL;

	produce(lab, named, small, 0);
	named = a_name(2, 10);
	named->name.name_n = 9; /* it does not end there */
	produce(lab, named, small, 0);
	named->name.name_n = UINT32_MAX;
	produce(lab, named, small, 0);
	named = a_name(3, 10);
	produce(lab, named, small - 1, 0);
	produce(lab, named, small + 8, 0); /* no size of ours */
	produce(lab, named, head, 0);
	produce(lab, named, head + TRACE_NAME_LARGE + 8, 0);
	assert_int_equal(ring_drain(&lab->ring, on_record, lab), 7);
	assert_int_equal(lab->order.bad, 7);
	assert_int_equal(lab->events, 0);
}

static void lengths_that_lie(void **state)
{
	struct lab *lab = *state;
	struct trace_call e = event(1, 0, TRACE_EVENT_CALL);

	put_word(lab, 0, BYTES); /* longer than what was produced */
	lab->producer = 512;
	assert_int_equal(ring_drain(&lab->ring, on_record, lab), 0);
	assert_int_equal(lab->ring.torn, 1);
	assert_int_equal(lab->consumer, 512);
	/* More produced than the ring holds. */
	lab->producer = 512 + BYTES + 8;
	assert_int_equal(ring_drain(&lab->ring, on_record, lab), 0);
	assert_int_equal(lab->ring.torn, 2);
	/* A record longer than any event, over the ring's end. */
	lab->producer = lab->consumer = BYTES * 3 - 64;
	produce(lab, lab->data, 0, 0);
	lab->consumer = lab->producer;
	put_word(lab, lab->producer, 20000);
	lab->producer += 20008;
	assert_int_equal(ring_drain(&lab->ring, on_record, lab), 1);
	assert_int_equal(lab->sizes[(lab->records - 1) % 64], 0);
	/* And on it goes. */
	produce(lab, &e, sizeof(struct trace_call), 0);
	assert_int_equal(ring_drain(&lab->ring, on_record, lab), 1);
	assert_int_equal(lab->events, 1);
}

/* A record of @size bytes that begins with @event. */
static void produce_padded(struct lab *lab, const void *event, uint32_t n, uint32_t size)
{
	char *record = calloc(1, size);

	assert_non_null(record);
	memcpy(record, event, n);
	produce(lab, record, size, 0);
	ring_drain(&lab->ring, on_record, lab);
	free(record);
}

static void stacks_that_lie(void **state)
{
	const uint32_t small = sizeof(struct trace_stack) + TRACE_STACK_SMALL * sizeof(struct trace_frame);
	struct trace_stack stack = { .header = { .type = TRACE_EVENT_STACK, .seq = 1 } };
	struct lab *lab = *state;

	stack.n = TRACE_STACK_SMALL;
	produce_padded(lab, &stack, sizeof(stack), small);
	assert_int_equal(lab->order.bad, 0);
	stack.header.seq = 2;
	stack.n = TRACE_STACK_SMALL + 1;
	produce_padded(lab, &stack, sizeof(stack), small);
	stack.header.seq = 3;
	stack.n = 1;
	produce_padded(lab, &stack, sizeof(stack), small + sizeof(struct trace_frame)); /* no size of ours */
	assert_int_equal(lab->order.bad, 2);
}

static void native_frames_that_lie(void **state)
{
	const uint32_t small = sizeof(struct trace_native) + TRACE_STACK_SMALL * sizeof(__u64);
	struct trace_native native = { .header = { .type = TRACE_EVENT_NATIVE, .seq = 1 } };
	struct lab *lab = *state;

	native.n = TRACE_STACK_SMALL;
	produce_padded(lab, &native, sizeof(native), small);
	assert_int_equal(lab->order.bad, 0);
	native.header.seq = 2;
	native.n = TRACE_STACK_SMALL + 1;
	produce_padded(lab, &native, sizeof(native), small);
	native.header.seq = 3;
	native.n = 1;
	native.stop = TRACE_NATIVE_STOPS;
	produce_padded(lab, &native, sizeof(native), small);
	native.header.seq = 4;
	native.stop = TRACE_NATIVE_END;
	produce_padded(lab, &native, sizeof(native), small + sizeof(__u64)); /* no size of ours */
	assert_int_equal(lab->order.bad, 3);
}

static void functions_that_lie(void **state)
{
	const uint32_t small = sizeof(struct trace_code) + TRACE_LINES_SMALL;
	struct trace_code code = { .header = { .type = TRACE_EVENT_CODE, .seq = 1 } };
	struct lab *lab = *state;

	code.lines_n = TRACE_LINES_SMALL;
	code.name.n = TRACE_CODE_NAME;
	produce_padded(lab, &code, sizeof(code), small);
	assert_int_equal(lab->order.bad, 0);
	code.header.seq = 2;
	code.lines_n = TRACE_LINES_SMALL + 1;
	produce_padded(lab, &code, sizeof(code), small);
	code.header.seq = 3;
	code.lines_n = 0;
	code.name.n = TRACE_CODE_NAME + 1;
	produce_padded(lab, &code, sizeof(code), small);
	assert_int_equal(lab->order.bad, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(records_in_order, set_up, tear_down),
		cmocka_unit_test_setup_teardown(records_cut_in_two, set_up, tear_down),
		cmocka_unit_test_setup_teardown(gaps, set_up, tear_down),
		cmocka_unit_test_setup_teardown(not_believed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(names_of_all_sizes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(names_that_lie, set_up, tear_down),
		cmocka_unit_test_setup_teardown(lengths_that_lie, set_up, tear_down),
		cmocka_unit_test_setup_teardown(stacks_that_lie, set_up, tear_down),
		cmocka_unit_test_setup_teardown(native_frames_that_lie, set_up, tear_down),
		cmocka_unit_test_setup_teardown(functions_that_lie, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
