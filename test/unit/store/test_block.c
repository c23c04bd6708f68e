// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/macro.h"
#include "store/decimal.h"
#include "store/restore.h"
#include "view/findings.h"
#include "view/fixture.h"
#include "view/view.h"

static struct fields fields[STORE_TABLES];
static struct stored_layout layout;

static int setup(_unused_ void **state)
{
	struct strbuf text;
	int r = fields_new(fields);

	strbuf_init(&text, 0);
	if (r == 0)
		r = layout_write(fields, &text);
	if (r == 0)
		r = layout_read(fields, text.data, text.len, &layout);
	strbuf_done(&text);
	return r;
}

static int teardown(_unused_ void **state)
{
	layout_done(&layout);
	fields_done(fields);
	return 0;
}

/* ---- what views show ---- */

static void render(const struct snapshot *s, struct strbuf *out)
{
	static const struct dcgm_style style = { 0 };
	const struct table_options table = { .width = 0 };
	unsigned all = JSON_GPUS | JSON_PROCESSES | JSON_NODE | JSON_TRACE | JSON_KERNELS | JSON_EVENTS;

	strbuf_reset(out);
	assert_int_equal(view_prometheus(s, EXPOSITION_PROMETHEUS, NULL, out), 0);
	assert_int_equal(view_prometheus(s, EXPOSITION_OPENMETRICS, NULL, out), 0);
	assert_int_equal(view_dcgm(s, &style, EXPOSITION_PROMETHEUS, out), 0);
	assert_int_equal(view_json_text(s, all, out), 0);
	assert_int_equal(table_gpus(s, &table, out), 0);
	assert_int_equal(table_processes(s, &table, out), 0);
	assert_int_equal(table_groups(s, GROUP_POD, &table, out), 0);
	assert_int_equal(table_node(s, &table, out), 0);
	assert_int_equal(table_kernels(s, &table, true, 0, out), 0);
	if (s->trace && s->trace->findings)
		assert_int_equal(json_findings(s->trace->findings, out), 0);
}

/* The text up to where two differ, with what is around it, for people. */
static void assert_same_pages(const struct strbuf *a, const struct strbuf *b)
{
	size_t i = 0;

	while (i < a->len && i < b->len && a->data[i] == b->data[i])
		i++;
	if (i == a->len && i == b->len)
		return;
	print_error("recorded: %.200s\nrestored: %.200s\n", a->data + (i > 100 ? i - 100 : 0),
		    b->data + (i > 100 ? i - 100 : 0));
	fail();
}

/* DCGM's page shows nanoseconds of seconds, and so digits behind the 15 that are recorded. */
static void round_numbers(struct snapshot *s)
{
	struct decimal d;

	for (uint32_t i = 0; i < s->entities_n; i++)
		for (unsigned slot = 0; slot < GPU_SLOTS; slot++)
			if (decimal_of(s->entities[i].id.v[slot], &d))
				s->entities[i].id.v[slot] = decimal_value(d);
}

/* What is not recorded: looks back, arguments of the user's functions, and what libraries above CUDA did. */
static void forget(struct snapshot *s)
{
	round_numbers(s);
	for (uint32_t i = 0; i < s->processes_n; i++)
		memset(s->processes[i].recent, 0, sizeof(s->processes[i].recent));
	if (!s->trace)
		return;
	for (uint32_t i = 0; i < s->trace->all_calls_n; i++)
		s->trace->all_calls[i].arguments_n = 0;
	nccl_measurements_unref(TAKE_PTR(s->measured));
	gpu_times_unref(TAKE_PTR(s->gpu_times));
	free(TAKE_PTR(s->trace->nccl));
	free(TAKE_PTR(s->trace->blas));
	free(TAKE_PTR(s->trace->torch));
	free(TAKE_PTR(s->trace->python));
}

/* ---- blocks ---- */

static void add(struct block_writer *writer, const struct snapshot *s, bool slow, struct frame_mark *mark)
{
	struct strbuf bytes;
	struct frame frame;
	uint64_t left_out;

	strbuf_init(&bytes, 0);
	assert_int_equal(frame_write(s, slow, mark, &bytes, &left_out), 0);
	assert_int_equal(left_out, 0);
	assert_int_equal(frame_read(bytes.data, bytes.len, &frame), 0);
	assert_int_equal(block_writer_add(writer, &frame), 0);
	strbuf_done(&bytes);
}

static struct block *reopen(struct block_writer *writer, bool last)
{
	struct block *block = NULL;
	struct strbuf out;

	strbuf_init(&out, 0);
	assert_int_equal(block_writer_finish(writer, last, &out), 0);
	assert_int_equal(block_read(fields, &layout, out.data, out.len, &block), 0);
	strbuf_done(&out);
	return block;
}

static void assert_restores(const struct block *block, const struct snapshot *s)
{
	struct snapshot *restored = NULL;
	struct strbuf a, b;

	strbuf_init(&a, 0);
	strbuf_init(&b, 0);
	assert_int_equal(restore_snapshot(block, fields, &restored), 0);
	render(s, &a);
	render(restored, &b);
	assert_same_pages(&a, &b);
	restored_free(restored);
	strbuf_done(&a);
	strbuf_done(&b);
}

static void assert_alone(struct snapshot *s)
{
	struct block_writer *writer;
	struct frame_mark mark = { 0 };
	struct block *block;

	forget(s);
	assert_int_equal(block_writer_new(fields, &writer), 0);
	add(writer, s, true, &mark);
	block = reopen(writer, true);
	assert_int_equal(block_frames(block), 1);
	assert_true(block_next(block));
	assert_restores(block, s);
	assert_false(block_next(block));
	assert_int_equal(block_error(block), 0);
	block_free(block);
	block_writer_free(writer);
	fixture_free(s);
}

static void test_pages_are_the_same(_unused_ void **state)
{
	assert_alone(fixture_small());
	assert_alone(fixture_full());
	assert_alone(fixture_traced());
	assert_alone(fixture_untraced());
	assert_alone(fixture_empty());
}

/* Of frame @i: numbers grow and jump, a process goes and another one comes, texts change. */
static void change(struct snapshot *s, unsigned i)
{
	struct entity *e = &s->entities[0];

	s->real_ns += INT64_C(1000000000) - (i == 7 ? INT64_C(3600000000000) : 0); /* the clock is set back */
	s->boot_ns += INT64_C(1000000000);
	e->sampled_boot_ns = s->boot_ns - INT64_C(123456789);
	e->id.v[SLOT_POWER] = 300 + 0.125 * (i * 7919 % 1000);
	e->id.v[SLOT_ENERGY] += e->id.v[SLOT_POWER] + 1.0 / 3;
	e->id.v[SLOT_BUSY_GPU] += 0.001 * i;
	e->id.p[SLOT_TEMPERATURE] = i % 3 ? PRESENCE_PRESENT : PRESENCE_FAILED;
	e->stale = i % 5 == 0;
	s->processes[0].v[PROCESS_MEMORY] = 1e9 * (i % 4);
	s->processes[0].id.pid = i < 10 ? 1001 : 1000;
	s->processes[2].series[PROCESS_BUSY] = s->processes[2].v[PROCESS_BUSY]; /* its series has all */
	s->processes[2].has_series = true;
	for (unsigned link = 0; link < 6; link++) {
		e->id.v[SLOT_NVLINK_LINK_RX_BYTES + link] +=
			1024 * (4e8 + i * 7919 % 5000 * 1e4 + link * i % 7);
		e->id.p[SLOT_NVLINK_LINK_RX_BYTES + link] = PRESENCE_PRESENT;
	}
	snprintf(s->processes[1].comm, sizeof(s->processes[1].comm), "step %u", i / 4);
	s->sources[SOURCE_NVML].in_use = true;
	snprintf(s->sources[SOURCE_NVML].error, sizeof(s->sources[0].error), "%s", i % 6 ? "" : "it hung");
	round_numbers(s);
}

/* @last: the block is packed. */
static void check_many_frames(bool last)
{
	struct snapshot *writing = fixture_small(), *reading = fixture_small();
	struct block_writer *writer;
	struct frame_mark mark = { 0 };
	struct block *block;

	forget(writing);
	forget(reading);
	assert_int_equal(block_writer_new(fields, &writer), 0);
	for (unsigned i = 0; i < 60; i++) {
		change(writing, i);
		add(writer, writing, i % 10 == 0, &mark);
		assert_int_equal(block_writer_frames(writer), i + 1);
	}
	block = reopen(writer, last);
	for (unsigned i = 0; i < 60; i++) {
		change(reading, i);
		assert_true(block_next(block));
		assert_restores(block, reading);
		/* Exits are in one frame alone. */
		assert_int_equal(block_rows(block, STORE_EXITED), i == 0 ? 2 : 0);
	}
	assert_false(block_next(block));
	assert_int_equal(block_error(block), 0);
	block_free(block);
	/* And after it was closed. */
	block_writer_reset(writer);
	add(writer, writing, true, &mark);
	block = reopen(writer, last);
	assert_true(block_next(block));
	assert_restores(block, writing);
	block_free(block);
	block_writer_free(writer);
	fixture_free(writing);
	fixture_free(reading);
}

static void test_many_frames(_unused_ void **state)
{
	check_many_frames(false);
	check_many_frames(true);
}

/* Between two slow frames what is slow stays. */
static void test_slow_tables(_unused_ void **state)
{
	struct snapshot *s = fixture_traced();
	struct block_writer *writer;
	struct frame_mark mark = { 0 };
	struct block *block;
	uint32_t kernels = s->trace->kernels_n;

	forget(s);
	assert_int_equal(block_writer_new(fields, &writer), 0);
	add(writer, s, true, &mark);
	s->trace->kernels_n = 1;
	add(writer, s, false, &mark);
	add(writer, s, true, &mark);
	s->trace->kernels_n = kernels;
	block = reopen(writer, true);
	assert_true(kernels > 1);
	assert_true(block_next(block));
	assert_int_equal(block_rows(block, STORE_KERNELS), kernels);
	assert_true(block_next(block));
	assert_int_equal(block_rows(block, STORE_KERNELS), kernels);
	assert_true(block_next(block));
	assert_int_equal(block_rows(block, STORE_KERNELS), 1);
	block_free(block);
	block_writer_free(writer);
	fixture_free(s);
}

/* Whatever byte is another one: refused, or a snapshot that can be shown. */
static void test_torn(_unused_ void **state)
{
	struct snapshot *s = fixture_small();
	struct block_writer *writer;
	struct frame_mark mark = { 0 };
	struct strbuf out;

	assert_int_equal(block_writer_new(fields, &writer), 0);
	add(writer, s, true, &mark);
	strbuf_init(&out, 0);
	assert_int_equal(block_writer_finish(writer, true, &out), 0);
	for (size_t n = 0; n < out.len; n += 1 + out.len / 200) {
		struct block *block;

		assert_int_equal(block_read(fields, &layout, out.data, n, &block), -EBADMSG);
	}
	strbuf_done(&out);
	block_writer_free(writer);
	fixture_free(s);
}

static size_t unpack(const struct strbuf *block, uint8_t **ret_bytes)
{
	size_t n = (size_t)ZSTD_getFrameContentSize(block->data, block->len);

	*ret_bytes = malloc(n + 1);
	assert_non_null(*ret_bytes);
	assert_int_equal(ZSTD_decompress(*ret_bytes, n, block->data, block->len), n);
	return n;
}

/* 0, or the error of a block with these bytes. */
static int read_bytes(const uint8_t *bytes, size_t n)
{
	size_t room = ZSTD_compressBound(n);
	_cleanup_free_ char *data = malloc(room);
	struct block *block = NULL;
	int r;

	assert_non_null(data);
	r = block_read(fields, &layout, data, ZSTD_compress(data, room, bytes, n, 1), &block);
	while (r == 0 && block_next(block))
		;
	r = r == 0 ? block_error(block) : r;
	block_free(block);
	return r;
}

/* Of packed blocks: any byte is another one, the end is missing, or there is more. */
static void test_torn_packed(_unused_ void **state)
{
	struct snapshot *s = fixture_small();
	struct block_writer *writer;
	struct frame_mark mark = { 0 };
	struct strbuf plain, packed;
	unsigned refused = 0;
	uint8_t *bytes;
	size_t n;

	assert_int_equal(block_writer_new(fields, &writer), 0);
	for (unsigned i = 0; i < 60; i++) {
		change(s, i);
		add(writer, s, i % 10 == 0, &mark);
	}
	strbuf_init(&plain, 0);
	strbuf_init(&packed, 0);
	assert_int_equal(block_writer_finish(writer, false, &plain), 0);
	assert_int_equal(block_writer_finish(writer, true, &packed), 0);
	assert_true(packed.len * 4 < plain.len * 3);
	n = unpack(&packed, &bytes);
	assert_memory_equal(bytes, "gsblock3", 8);
	assert_int_equal(read_bytes(bytes, n), 0);
	for (size_t i = 0; i < n; i += 1 + n / 2000) {
		bytes[i] ^= 0x41;
		refused += read_bytes(bytes, n) == -EBADMSG;
		bytes[i] ^= 0x41;
		if (i % 16 == 0)
			assert_int_equal(read_bytes(bytes, i), -EBADMSG);
	}
	assert_true(refused > 10);
	bytes[n] = 0;
	assert_int_equal(read_bytes(bytes, n + 1), -EBADMSG);
	free(bytes);
	strbuf_done(&plain);
	strbuf_done(&packed);
	block_writer_free(writer);
	fixture_free(s);
}

/* Indexes of nothing, and times of no clock. */
static void test_contradictions(_unused_ void **state)
{
	struct snapshot *s = fixture_small(), *restored;
	struct block_writer *writer;
	struct frame_mark mark = { 0 };
	struct block *block;

	s->processes[0].entity = (uint16_t)s->entities_n;
	assert_int_equal(block_writer_new(fields, &writer), 0);
	add(writer, s, true, &mark);
	s->processes[0].entity = 0;
	s->real_ns = INT64_MAX;
	add(writer, s, true, &mark);
	block = reopen(writer, true);
	for (unsigned i = 0; i < 2; i++) {
		assert_true(block_next(block));
		assert_int_equal(restore_snapshot(block, fields, &restored), -EBADMSG);
	}
	block_free(block);
	block_writer_free(writer);
	fixture_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pages_are_the_same), cmocka_unit_test(test_many_frames),
		cmocka_unit_test(test_slow_tables),        cmocka_unit_test(test_torn),
		cmocka_unit_test(test_torn_packed),        cmocka_unit_test(test_contradictions),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
