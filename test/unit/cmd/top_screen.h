// SPDX-License-Identifier: Apache-2.0
/* Hand-made nodes on the screen of "gpusonde top", without a terminal. */
#pragma once

#include "test.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/text.h"
#include "cmd/top/draw.h"
#include "cmd/top/keys.h"
#include "screen/export.h"
#include "view/fixture.h"
#include "view/view.h"

enum { FILE_BYTES = 1 << 20 };

static struct top top;
static struct canvas canvas;

static inline struct snapshot *node_of(const char *fixture)
{
	return STRV_EQ(fixture, "small")  ? fixture_small() :
	       STRV_EQ(fixture, "full")   ? fixture_full() :
	       STRV_EQ(fixture, "traced") ? fixture_traced() :
					    fixture_empty();
}

/* The fixture has numbers that tell rows apart; people look at pictures of a GPU. */
static inline void make_plausible(json_t *gpu, int i)
{
	static const struct {
		const char *path;
		double first, step;
	} numbers[] = {
		{ "utilization_ratio.gpu", 0.97, -0.11 },
		{ "memory_total_bytes", 85520809984, 0 },
		{ "memory_used_bytes", 75e9, -6e9 },
		{ "power_watts", 688, -55 },
		{ "power_limit_watts.enforced", 700, 0 },
		{ "temperature_celsius", 67, -2 },
		{ "temperature_threshold_celsius.slowdown", 87, 0 },
		{ "clock_hertz.sm", 1980e6, 0 },
		{ "sm_active_ratio", 0.84, -0.1 },
		{ "pipe_active_ratio.tensor", 0.52, -0.06 },
		{ "dram_active_ratio", 0.41, -0.04 },
		{ "pcie_tx_bytes_per_second", 1.7e9, -1e8 },
		{ "pcie_rx_bytes_per_second", 3.4e9, -2e8 },
		{ "nvlink_tx_bytes_per_second", 148e9, -15e9 },
		{ "nvlink_rx_bytes_per_second", 148e9, -15e9 },
		{ "recovery_action", 0, 0 },
		{ "remapped_rows_failed", 0, 0 },
		{ "remapped_rows_pending", 0, 0 },
		{ "retired_pages_pending", 0, 0 },
		{ "nvlink_links.total", 18, 0 },
		{ "nvlink_links.active", 18, 0 },
	};
	json_t *reasons = json_object_get(gpu, "clocks_event_reason"), *reason;
	const char *name;

	json_object_foreach(reasons, name, reason)
		json_object_set_new(reasons, name, json_integer(i == 1 && STRV_EQ(name, "sw_power_cap")));
	for (size_t k = 0; k < ARRAY_SIZE(numbers); k++) {
		const char *dot = strchr(numbers[k].path, '.');
		char part[64];
		json_t *in = gpu;

		snprintf(part, sizeof(part), "%.*s", (int)strcspn(numbers[k].path, "."), numbers[k].path);
		in = dot ? json_object_get(gpu, part) : gpu;
		json_object_set_new(in, dot ? dot + 1 : part,
				    json_real(numbers[k].first + numbers[k].step * i));
	}
}

static inline void make_document_plausible(struct strbuf *text)
{
	static const char *const programs[] = { "python3", "vllm", "tritonserver", "ffmpeg" };
	json_t *document = json_loadb(text->data, text->len, 0, NULL), *one;
	char *dumped;
	size_t i;

	json_array_foreach(json_object_get(document, "gpus"), i, one)
		make_plausible(one, (int)i);
	json_array_foreach(json_object_get(document, "processes"), i, one) {
		json_object_set_new(one, "utilization_ratio", json_real(0.6 / (double)(i % 8 + 1)));
		json_object_set_new(one, "memory_bytes", json_real(34e9 / (double)(i % 8 + 1)));
		json_object_set_new(one, "busy_seconds_total", json_real(5400.0 / (double)(i % 8 + 1)));
		json_object_set_new(one, "comm", json_string(programs[i % ARRAY_SIZE(programs)]));
	}
	dumped = json_dumps(document, JSON_COMPACT);
	strbuf_reset(text);
	strbuf_adds(text, dumped);
	free(dumped);
	json_decref(document);
}

static inline struct sample *sample_of(struct snapshot *s, bool plausible)
{
	struct sample *sample = NULL;
	struct strbuf text;

	strbuf_init(&text, 0);
	assert_int_equal(view_json_text(s, JSON_GPUS | JSON_PROCESSES | JSON_NODE, &text), 0);
	if (plausible)
		make_document_plausible(&text);
	assert_int_equal(sample_of_text(text.data, text.len, &sample), 0);
	strbuf_done(&sample->text);
	sample->text = text;
	return sample;
}

/* A page of the fixture's, as the agent would give it. */
static inline void add_page(struct sample *sample, enum page page, struct snapshot *s, unsigned sections)
{
	struct strbuf text;

	strbuf_init(&text, 0);
	assert_int_equal(view_json_text(s, sections, &text), 0);
	sample->pages[page] = json_loadb(text.data, text.len, 0, NULL);
	strbuf_done(&text);
}

static inline void begin(const char *fixture)
{
	struct snapshot *s = node_of(fixture);

	top = (struct top){ .period_ns = NSEC_PER_SEC };
	canvas.ascii = false;
	top_init(&top);
	assert_int_equal(trails_new(&top.trails), 0);
	assert_int_equal(past_new(&top.past), 0);
	top.sample = sample_of(s, STRV_EQ(fixture, "full"));
	if (s->trace && s->trace->enabled) {
		add_page(top.sample, PAGE_TRACE, s, JSON_TRACE);
		add_page(top.sample, PAGE_KERNELS, s, JSON_KERNELS);
	}
	add_page(top.sample, PAGE_EVENTS, s, JSON_EVENTS);
	/* What the host says of its processes would be this machine's. */
	top.now_real_ns = top.sample->snapshot->real_ns + NSEC_PER_SEC / 2;
	top.sample->mono_ns = 1000 * NSEC_PER_SEC;
	fixture_free(s);
}

static inline void end(void)
{
	top_done(&top);
	canvas_done(&canvas);
}

/* What the host would say of these processes. */
static inline void add_host(struct sample *sample)
{
	const struct snapshot *s = sample->snapshot;

	sample->processes = calloc(s->processes_n + 1u, sizeof(*sample->processes));
	sample->users = calloc(1, sizeof(*sample->users));
	assert_non_null(sample->processes);
	assert_non_null(sample->users);
	for (uint32_t i = 0; i < s->processes_n; i++)
		sample->processes[i] = (struct host_process){ .pid = s->processes[i].id.pid,
							      .state = i % 3 ? 'S' : 'R',
							      .threads = 8 + i % 5 * 16,
							      .resident_bytes = (1 + i % 7) * 1500000000u,
							      .cores = 1.0 / (1 + i % 4) };
	sample->processes_n = s->processes_n;
	sample->users[0] = (struct host_user){ .uid = s->processes[0].uid, .name = "ml" };
	sample->users_n = 1;
}

static inline const char *draw(int columns, int rows)
{
	static struct strbuf out;

	assert_int_equal(canvas_resize(&canvas, rows, columns), 0);
	top_make_rows(&top);
	draw_screen(&top, &canvas);
	strbuf_done(&out);
	strbuf_init(&out, 0);
	assert_int_equal(canvas_as_text(&canvas, &out), 0);
	return out.data;
}

static inline void press(uint32_t key)
{
	const struct event event = { .type = EVENT_KEY, .key = key };

	top_make_rows(&top);
	keys_take(&top, &event, 80);
}

static inline void type(const char *text)
{
	for (; *text; text++)
		press((unsigned char)*text);
}

static inline void is_as_kept(const char *folder, const char *name, const char *text)
{
	_cleanup_free_ char *kept = malloc(FILE_BYTES);
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s/%s", test_source_root(), folder, name);
	if (getenv("GPUSONDE_TEST_UPDATE"))
		assert_int_equal(write_file_atomic(path, text, strlen(text), 0644), 0);
	if (read_file(path, kept, FILE_BYTES, NULL) < 0)
		fail_msg("%s is missing: GPUSONDE_TEST_UPDATE=1 writes it", path);
	if (!STRV_EQ(kept, text))
		fail_msg("%s differs from what is drawn:\n%s", path, text);
}
