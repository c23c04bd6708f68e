// SPDX-License-Identifier: Apache-2.0
/*
 * Screens of "gpusonde top" from hand-made nodes, without a terminal: compared with test/unit/cmd/screens.
 * With GPUSONDE_TEST_UPDATE set they are written there, and docs/top.svg with them: look at the difference.
 */
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/process_id.h"
#include "base/text.h"
#include "cmd/top/lines.h"
#include "cmd/top/settings.h"
#include "cmd/top_screen.h"

enum { MOMENTS = 120 };

static void screens(_unused_ void **state)
{
	static const struct {
		const char *fixture;
		int columns, rows;
		enum tab tab;
	} kept[] = {
		{ "small", 80, 24, TAB_GPUS },        { "small", 60, 16, TAB_GPUS },
		{ "small", 200, 60, TAB_GPUS },       { "small", 100, 30, TAB_OWNERS },
		{ "small", 80, 16, TAB_TOPOLOGY },    { "small", 100, 20, TAB_EVENTS },
		{ "full", 80, 24, TAB_GPUS },         { "full", 60, 16, TAB_GPUS },
		{ "full", 200, 60, TAB_GPUS },        { "full", 120, 30, TAB_PROCESSES },
		{ "traced", 120, 30, TAB_CALLS },     { "traced", 120, 30, TAB_KERNELS },
		{ "traced", 160, 30, TAB_PROCESSES }, { "empty", 80, 16, TAB_GPUS },
	};

	for (size_t i = 0; i < ARRAY_SIZE(kept); i++) {
		char name[80];

		begin(kept[i].fixture);
		top.tab = kept[i].tab;
		snprintf(name, sizeof(name), "%s-%s-%dx%d.txt", kept[i].fixture, tabs[kept[i].tab].brief,
			 kept[i].columns, kept[i].rows);
		is_as_kept("test/unit/cmd/screens", name, draw(kept[i].columns, kept[i].rows));
		end();
	}
}

/* Each size, tab and mode: nothing is drawn outside, nothing fails. */
static void every_size(_unused_ void **state)
{
	static const char *const fixtures[] = { "small", "full", "traced", "empty" };

	for (size_t i = 0; i < ARRAY_SIZE(fixtures); i++) {
		begin(fixtures[i]);
		for (unsigned tab = 0; tab < TABS; tab++)
			for (enum mode mode = MODE_TABLE; mode <= MODE_SIGNALS; mode++)
				for (int size = 1; size <= 400; size += 57) {
					top.tab = (enum tab)tab;
					top.mode = mode;
					canvas.ascii = size & 1;
					draw(size, size / 3 + 1);
				}
		end();
	}
}

static int count(const char *text, const char *what)
{
	int n = 0;

	for (const char *at = strstr(text, what); at; at = strstr(at + 1, what))
		n++;
	return n;
}

/* An NVL72's GPUs fit a large terminal, and eight the smallest. */
static void many_gpus_fit(_unused_ void **state)
{
	struct snapshot *s = node_of("full");
	json_t *document, *gpus;
	struct strbuf text;
	char name[8];

	strbuf_init(&text, 0);
	assert_int_equal(view_json_text(s, JSON_GPUS | JSON_PROCESSES | JSON_NODE, &text), 0);
	document = json_loadb(text.data, text.len, 0, NULL);
	gpus = json_object_get(document, "gpus");
	make_plausible(json_array_get(gpus, 0), 0);
	for (int i = 1; i < 8; i++)
		make_plausible(json_array_get(gpus, (size_t)i), i);
	for (int i = 8; i < 72; i++) {
		json_t *copy = json_deep_copy(json_array_get(gpus, 0));

		json_object_set_new(copy, "gpu", json_integer(i));
		json_array_append_new(gpus, copy);
	}
	strbuf_done(&text);
	begin("full");
	sample_free(top.sample);
	text.data = json_dumps(document, JSON_COMPACT);
	assert_int_equal(sample_of_text(text.data, strlen(text.data), &top.sample), 0);
	free(text.data);
	json_decref(document);
	draw(200, 50);
	for (int i = 0; i < 72; i++) {
		snprintf(name, sizeof(name), " %2d ", i);
		assert_non_null(strstr(draw(200, 50), name));
	}
	assert_null(strstr(draw(120, 30), "not all GPUs fit"));
	assert_non_null(strstr(draw(60, 16), "not all GPUs fit"));
	end();
	fixture_free(s);
}

static void forget(json_t *gpus, size_t gpu, const char *group, const char *figure)
{
	json_t *in = json_array_get(gpus, gpu);

	assert_int_equal(json_object_set_new(group ? json_object_get(in, group) : in, figure, json_null()),
			 0);
}

/* What is not known of all GPUs says of how many it is; two figures side by side are of the same GPUs. */
static void totals_say_of_how_many(_unused_ void **state)
{
	json_t *document, *gpus;
	char *text;

	begin("full");
	document = json_loadb(top.sample->text.data, top.sample->text.len, 0, NULL);
	gpus = json_object_get(document, "gpus");
	assert_null(strstr(draw(200, 30), " of 8)"));
	forget(gpus, 0, "utilization_ratio", "gpu");
	forget(gpus, 1, NULL, "memory_used_bytes");
	forget(gpus, 2, NULL, "memory_total_bytes");
	forget(gpus, 3, NULL, "power_watts");
	forget(gpus, 4, "power_limit_watts", "enforced");
	for (size_t i = 0; i < 8; i++)
		forget(gpus, i, NULL, "temperature_celsius");
	sample_free(top.sample);
	text = json_dumps(document, JSON_COMPACT);
	assert_int_equal(sample_of_text(text, strlen(text), &top.sample), 0);
	/* 0.86 to 0.20; 75, 57, 51, 45, 39, 33 GB of 6 * 85.5; 688 W and less by 55 each, without 523. */
	assert_non_null(strstr(draw(200, 30), "util 53 % (7 of 8)   memory 279.4/477.9 GiB (6 of 8)   "
					      "power 3441 W (7 of 8)   processes 64"));
	assert_non_null(
		strstr(draw(80, 24), "util 53 % (7/8)   memory 279.4/477.9 GiB (6/8)   power 3441 W (7/8)"));
	free(text);
	json_decref(document);
	end();
}

static void rows_are_filtered(_unused_ void **state)
{
	begin("small");
	press('2');
	assert_int_equal((top_make_rows(&top), top.rows.n), 5);
	press('f');
	type("pid=1001");
	assert_int_equal((top_make_rows(&top), top.rows.n), 1);
	press(KEY_CODE_ENTER);
	assert_int_equal(top.prompt, PROMPT_NONE);
	assert_non_null(strstr(draw(100, 20), "filter \"pid=1001\""));
	/* Escape keeps what was before. */
	press('f');
	type("x");
	press(KEY_CODE_ESCAPE);
	assert_string_equal(top.views[TAB_PROCESSES].filter, "pid=1001");
	press('f');
	for (int i = 0; i < 8; i++)
		press(KEY_CODE_BACKSPACE);
	type("gpu_mem>3G");
	press(KEY_CODE_ENTER);
	assert_int_equal((top_make_rows(&top), top.rows.n), 1);
	press('f');
	for (int i = 0; i < 20; i++)
		press(KEY_CODE_BACKSPACE);
	type("nothing=1");
	assert_true((top_make_rows(&top), top.rows.bad_filter));
	assert_non_null(strstr(draw(100, 20), "no such column"));
	end();
}

static void conditions_compare_in_the_columns_unit(_unused_ void **state)
{
	static const struct {
		const char *filter;
		uint32_t rows;
	} conditions[] = {
		{ "gpu_mem>8191M", 1 }, { "gpu_mem>7gib", 1 }, { "gpu_mem>8G", 0 }, { "gpu_mem>7Gx", 0 },
		{ "pid=1001", 1 },      { "pid~1001", 1 },     { "pid!=1001", 4 },  { "sm>=0", 3 },
		{ "sm>20", 1 },         { "sm>20%", 1 },       { "sm<20%", 2 },     { "sm<=25", 3 },
	};

	begin("small");
	press('2');
	for (size_t i = 0; i < ARRAY_SIZE(conditions); i++) {
		char *filter = top.views[TAB_PROCESSES].filter;

		snprintf(filter, FILTER_TEXT, "%s", conditions[i].filter);
		top_make_rows(&top);
		if (top.rows.n != conditions[i].rows)
			fail_msg("%s: %u rows", filter, top.rows.n);
	}
	end();
}

/* Instances after their GPU, as in the snapshot, with the states that it has. */
static void a_table_has_every_gpu(_unused_ void **state)
{
	const struct snapshot *s;
	unsigned instances = 0;

	begin("small");
	press('b');
	top_make_rows(&top);
	s = top.sample->snapshot;
	assert_int_equal(top.rows.n, s->entities_n);
	for (uint32_t i = 0; i < s->entities_n; i++) {
		assert_ptr_equal(top.rows.list[i].entity, &s->entities[i]);
		instances += top.rows.list[i].parent != NULL;
	}
	assert_true(instances > 0);
	assert_non_null(strstr(draw(80, 24), " sw_power_c")); /* "ok slowed" of one line leads there */
	end();
}

static void first_pid(uint32_t pid)
{
	top_make_rows(&top);
	assert_int_equal(json_integer_value(json_object_get(top.rows.list[0].object, "pid")), pid);
}

static void rows_are_sorted(_unused_ void **state)
{
	const struct column *column;
	unsigned n;

	begin("small");
	top.views[TAB_PROCESSES].keys_n = 0;
	press('2');
	press('>'); /* GPU: the largest first */
	press('>'); /* PID */
	column = &tab_columns(TAB_PROCESSES, &n)[top.views[TAB_PROCESSES].keys[0].column];
	assert_string_equal(column->title, "PID");
	assert_int_equal(top.views[TAB_PROCESSES].keys_n, 2);
	press('r');
	first_pid(1001);
	end();
}

static struct process *process_of(json_int_t pid)
{
	struct snapshot *s = top.sample->snapshot;

	for (uint32_t i = 0; i < s->processes_n; i++)
		if (s->processes[i].id.pid == pid)
			return &s->processes[i];
	fail();
	return NULL;
}

/* What is selected stays so, though its row moves; an end of it selects nobody else's row for a signal. */
static void selection_follows_its_row(_unused_ void **state)
{
	const struct row *row;
	json_int_t pid;

	begin("small");
	press('2');
	draw(80, 24);
	for (int i = 0; i < 2; i++) { /* nothing is selected yet */
		press(i == 0 ? 'k' : KEY_CODE_ENTER);
		assert_int_equal(top.mode, MODE_TABLE);
		assert_non_null(strstr(draw(80, 24), "select a process first"));
	}
	press(KEY_CODE_DOWN);
	press(KEY_CODE_DOWN);
	top_make_rows(&top);
	row = top_selected(&top);
	pid = json_integer_value(json_object_get(row->object, "pid"));
	top.views[TAB_PROCESSES].keys[0] = (struct sort_key){ .column = 1 };
	top.views[TAB_PROCESSES].keys_n = 1;
	top_make_rows(&top);
	row = top_selected(&top);
	assert_int_equal(json_integer_value(json_object_get(row->object, "pid")), pid);
	/* It is not this machine's. */
	press('k');
	assert_int_equal(top.mode, MODE_TABLE);
	assert_non_null(strstr(top.message, "is not one of this machine's"));
	/* It is, and there since before it was seen; then its PID is of one that came later. */
	for (int64_t later_ns = NSEC_PER_SEC; later_ns >= -2 * NSEC_PER_SEC; later_ns -= 3 * NSEC_PER_SEC) {
		struct host_process host = { .pid = (uint32_t)pid,
					     .start_ticks = process_ticks((uint64_t)clock_boot_ns()) };
		struct host_process *before = top.sample->processes;
		uint32_t n = top.sample->processes_n;

		process_of(pid)->first_real_ns = clock_real_ns() + later_ns;
		top.sample->processes = &host;
		top.sample->processes_n = 1;
		press('k');
		assert_int_equal(top.mode, later_ns > 0 ? MODE_SIGNALS : MODE_TABLE);
		top.mode = MODE_TABLE;
		top.sample->processes = before;
		top.sample->processes_n = n;
	}
	press(KEY_CODE_ENTER);
	assert_int_equal(top.mode, MODE_PROCESS);
	assert_non_null(strstr(draw(100, 30), "Process "));
	top.process.pid += 1000;
	assert_non_null(strstr(draw(100, 30), "It has ended"));
	end();
}

static void earlier_moments(_unused_ void **state)
{
	struct sample *earlier = NULL;

	begin("small");
	past_add(top.past, top.sample);
	past_add(top.past, top.sample);
	press('[');
	assert_int_equal(top.back, 1);
	assert_true(top.frozen);
	press('[');
	assert_int_equal(top.back, 1);
	assert_int_equal(past_get(top.past, 1, &earlier), 0);
	assert_int_equal(earlier->snapshot->processes_n, top.sample->snapshot->processes_n);
	sample_free(earlier);
	assert_int_equal(past_get(top.past, 2, &earlier), -ENOENT);
	assert_non_null(strstr(draw(100, 24), " AGO"));
	press('L');
	assert_int_equal(top.back, 0);
	assert_false(top.frozen);
	end();
}

static void settings_are_kept(_unused_ void **state)
{
	struct strbuf out;
	struct top other = { 0 };

	begin("small");
	press('2');
	press('c');
	press(KEY_CODE_DOWN);
	press(' '); /* PID is not shown */
	press(KEY_CODE_ENTER);
	press('>');
	press('r');
	press('g');
	strbuf_init(&out, 0);
	settings_format(&top, &out);
	top_init(&other);
	settings_parse(&other, out.data);
	assert_int_equal(other.by, GROUP_CONTAINER);
	assert_int_equal(other.views[TAB_PROCESSES].shown_n, top.views[TAB_PROCESSES].shown_n);
	assert_memory_equal(other.views[TAB_PROCESSES].shown, top.views[TAB_PROCESSES].shown,
			    top.views[TAB_PROCESSES].shown_n * sizeof(unsigned));
	assert_true(other.views[TAB_PROCESSES].keys[0].reversed);
	/* What others wrote there does no harm. */
	settings_parse(&other,
		       "columns.Proc=,,,none,PID,PID,\norder.Proc=-,PID\nscale=99999\n=\n.=\ngroup=\n");
	assert_int_equal(other.views[TAB_PROCESSES].shown_n, 1);
	assert_true(other.scale < SCALES);
	strbuf_done(&out);
	end();
}

static void mouse_selects_tabs_and_rows(_unused_ void **state)
{
	struct event click = { .type = EVENT_CLICK };

	begin("small");
	draw(120, 30);
	click.row = top.tabs_row;
	click.column = 10;
	keys_take(&top, &click, 120);
	assert_int_equal(top.tab, TAB_PROCESSES);
	draw(120, 30);
	click.row = top.table_row - 1;
	keys_take(&top, &click, 120); /* the title of PIDs, twice */
	assert_int_equal(top.views[TAB_PROCESSES].keys[0].column, 1);
	assert_false(top.views[TAB_PROCESSES].keys[0].reversed);
	keys_take(&top, &click, 120);
	assert_true(top.views[TAB_PROCESSES].keys[0].reversed);
	draw(120, 30);
	click.row = top.table_row + 2;
	keys_take(&top, &click, 120);
	assert_int_equal(top.views[TAB_PROCESSES].selected, 2);
	keys_take(&top, &click, 120);
	assert_int_equal(top.mode, MODE_PROCESS);
	end();
}

static void stacks_of_a_process(_unused_ void **state)
{
	struct strbuf page;

	begin("full");
	press('2');
	draw(160, 40);
	press(KEY_CODE_HOME);
	press(KEY_CODE_ENTER);
	assert_int_equal(top_pages(&top) & 1u << PAGE_STACKS, 0);
	press('s');
	assert_int_not_equal(top_pages(&top) & 1u << PAGE_STACKS, 0);
	assert_non_null(strstr(draw(160, 40), "No stacks: an agent takes them"));
	strbuf_init(&page, 0);
	strbuf_addf(&page, "{\"estimated\":true,\"rows\":[[%u,0,1", top.process.pid);
	for (unsigned i = 0; i < STACK_WEIGHTS; i++)
		strbuf_adds(&page, ",7");
	strbuf_addf(&page, ",0,1],[%u,0,1,9],[1,0,1,99],[%u],7,[]],", top.process.pid, top.process.pid);
	strbuf_adds(&page, "\"places\":[[2,3,10],[4,3,-1],[99]],\"texts\":[\"p\",\"cuLaunch\",\"outer\","
			   "\"a.py\",\"inner\"]}");
	top.sample->pages[PAGE_STACKS] = json_loadb(page.data, page.len, 0, NULL);
	strbuf_done(&page);
	assert_non_null(
		strstr(draw(160, 60), "~7 launches  cuLaunch\n      inner  a.py:-1\n      outer  a.py:10"));
	assert_null(strstr(draw(160, 60), "99 launches"));
	press('s');
	assert_null(strstr(draw(160, 60), "launches  cuLaunch"));
	end();
}

/* ---- several machines ---- */

static void hosts_as_they_are_named(_unused_ void **state)
{
	static const struct {
		const char *text, *url, *name;
	} hosts[] = {
		{ "node1", "http://node1:9470", "node1" },
		{ "node1.example:80", "http://node1.example:80", "node1.example:80" },
		{ "10.0.0.1", "http://10.0.0.1:9470", "10.0.0.1" },
		{ "::1", "http://[::1]:9470", "[::1]" },
		{ "[fe80::1%eth0]", "http://[fe80::1%eth0]:9470", "[fe80::1%eth0]" },
		{ "[::1]:99", "http://[::1]:99", "[::1]:99" },
		{ "https://a.example/gpus/", "https://a.example/gpus", "https://a.example/gpus" },
		{ "http://b:9470", "http://b:9470", "b" },
	};
	static const char *const wrong[] = {
		"",           "a b",           "-x",   "http://",         "ftp://a", "u:p@a",
		"http://u@a", "http://a/?x=1", "a\nb", "http://a\r\nX: y"
	};
	struct host_list list = { 0 };
	char why[HOST_WHY_TEXT], name[16];

	for (size_t i = 0; i < ARRAY_SIZE(hosts); i++) {
		assert_int_equal(host_list_add(&list, hosts[i].text, why), 0);
		assert_string_equal(list.list[i].url, hosts[i].url);
		assert_string_equal(list.list[i].name, hosts[i].name);
	}
	assert_int_equal(host_list_add(&list, "b", why), 0); /* again */
	assert_int_equal(list.n, ARRAY_SIZE(hosts));
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_int_equal(host_list_add(&list, wrong[i], why), -EINVAL);
	for (int i = 0; list.n < 256; i++) {
		snprintf(name, sizeof(name), "h%d", i);
		assert_int_equal(host_list_add(&list, name, why), 0);
	}
	assert_int_equal(host_list_add(&list, "onemore", why), -EINVAL);
	host_list_done(&list);
}

static void add_part(struct sample *all, const char *name, struct sample *sample, const char *failure)
{
	struct host_part *part = &all->parts[all->parts_n++];

	snprintf(part->name, sizeof(part->name), "%s", name);
	snprintf(part->failure, sizeof(part->failure), "%s", failure);
	part->age_ns = sample ? NSEC_PER_SEC / 4 : -1;
	part->sample = sample;
	if (sample)
		snprintf(sample->host, sizeof(sample->host), "%s", name);
}

/* Two machines with the same GPUs and processes, and one that is silent. */
static void begin_several(void)
{
	struct snapshot *s = node_of("small");
	struct sample *all = calloc(1, sizeof(*all)), *first;

	begin("small");
	first = top.sample;
	all->parts = calloc(3, sizeof(*all->parts));
	atomic_init(&all->references, 1);
	all->mono_ns = first->mono_ns;
	all->real_ns = first->real_ns;
	top.now_mono_ns = all->mono_ns;
	add_part(all, "node1", first, "");
	add_part(all, "node2", sample_of(s, false), "");
	add_part(all, "node3", NULL, "nobody answers there");
	top.sample = all;
	top.several = true;
	top.tab = TAB_HOSTS;
	fixture_free(s);
}

static void several_machines(_unused_ void **state)
{
	uint32_t processes;
	struct row row;

	begin_several();
	processes = top.sample->parts[0].sample->snapshot->processes_n;
	assert_non_null(strstr(draw(160, 40), "node3 does not answer: nobody answers there"));
	assert_int_equal(top.rows.n, 3);
	/* The figures of fewer than its four GPUs say so, also where there is little room. */
	assert_int_equal(count(draw(80, 24), "   4    (1) 57 %    (2) 85.0 GiB "), 2);
	assert_int_equal(count(draw(200, 40), "(2) 57 \u00b0C "), 2);
	press('2');
	draw(160, 40);
	assert_int_equal(top.rows.n, 2 * processes);
	assert_int_equal(count(draw(160, 40), "node2 "), processes);
	/* Rows of two machines that are the same are two, and the selection tells them apart. */
	press(KEY_CODE_END);
	draw(160, 40);
	assert_int_equal(top.views[TAB_PROCESSES].selected, 2 * processes - 1);
	press(KEY_CODE_ENTER);
	assert_int_equal(top.mode, MODE_PROCESS);
	assert_true(top_find_process(&top, &row));
	assert_string_equal(row.sample->host, "node2");
	assert_non_null(strstr(draw(160, 40), " on node2"));
	press(KEY_CODE_ESCAPE);
	press('H');
	press(KEY_CODE_DOWN);
	press(KEY_CODE_DOWN);
	press(KEY_CODE_ENTER);
	assert_string_equal(top.host, "node2");
	assert_int_equal(top.tab, TAB_GPUS);
	press('2');
	draw(160, 40);
	assert_int_equal(top.rows.n, processes);
	press('H');
	press(KEY_CODE_END);
	press(KEY_CODE_ENTER);
	assert_non_null(strstr(draw(160, 40), "nobody answers there"));
	press('H');
	for (unsigned i = 0; i < TABS; i++, draw(60, 16))
		press(KEY_CODE_TAB);
	assert_int_equal(top.tab, TAB_HOSTS);
	end();
}

static void add_utilization(double ratio, int64_t seconds)
{
	struct snapshot *s = top.sample->snapshot;

	for (uint32_t i = 0; i < s->entities_n; i++)
		s->entities[i].id.v[gpu_metrics[GPU_UTILIZATION_GPU].slot] = ratio;
	for (uint32_t i = 0; i < s->processes_n; i++)
		s->processes[i].v[PROCESS_UTILIZATION] = ratio / 2;
	top.sample->mono_ns = seconds * NSEC_PER_SEC;
	trails_add(top.trails, top.sample);
}

/* Of what a curve shows: neither of what was before, nor, where it stands still, of what has come since. */
static void curves_say_their_highest(_unused_ void **state)
{
	struct trail_curve curve = { .figure = TRAIL_UTILIZATION,
				     .end_ns = 1000 * NSEC_PER_SEC,
				     .window_ns = 120 * NSEC_PER_SEC };
	char key[TRAIL_KEY];

	begin("small");
	add_utilization(0.95, 870);
	add_utilization(0.53, 950);
	add_utilization(0.21, 1000);
	assert_non_null(strstr(draw(200, 60), "GPU 0 utilisation max 53 % "));
	assert_non_null(strstr(draw(200, 60), "GPU 0 power max 59 % of limit "));
	press('w');
	assert_non_null(strstr(draw(200, 60), "GPU 0 utilisation max 95 % "));
	add_utilization(0.77, 1010);
	trail_key_of_entity(top.sample, &top.sample->snapshot->entities[0], key);
	curve.trail = trails_find(top.trails, key);
	assert_int_equal((int)(trail_highest(&curve) * 100 + 0.5), 53);
	assert_int_equal((int)(trail_curve_value(&curve, 119, 120) * 100 + 0.5), 21);
	end();
}

/* Where nothing else needs the room, a process's curves have it. */
static void curves_of_a_process(_unused_ void **state)
{
	begin("full");
	add_utilization(0.8, 990);
	add_utilization(0.4, 1000);
	press('2');
	draw(160, 40);
	press(KEY_CODE_HOME);
	press(KEY_CODE_ENTER);
	assert_non_null(strstr(draw(160, 40), "max 40 %"));
	assert_null(strstr(draw(160, 12), "max 40 %"));
	end();
}

static void the_filter_says_what_it_takes(_unused_ void **state)
{
	begin("full");
	press('f');
	assert_non_null(strstr(draw(80, 24), "filter:   words, gpu=0, user=root"));
	press('x');
	assert_null(strstr(draw(80, 24), "words, gpu=0"));
	end();
}

/* A picture for the README, of a node that is at work. */
static void the_picture(_unused_ void **state)
{
	struct snapshot *s;
	struct strbuf out;

	begin("full");
	s = top.sample->snapshot;
	for (int k = 0; k < MOMENTS; k++) {
		for (uint32_t i = 0; i < s->entities_n; i++)
			s->entities[i].id.v[gpu_metrics[GPU_UTILIZATION_GPU].slot] =
				0.5 + 0.35 * sin(k * (0.07 + 0.02 * i)) + 0.05 * (k % 3);
		top.sample->mono_ns = (1000 - MOMENTS + k) * NSEC_PER_SEC;
		trails_add(top.trails, top.sample);
	}
	add_host(top.sample);
	draw(132, 36);
	strbuf_init(&out, 0);
	assert_int_equal(canvas_as_svg(&canvas, "gpusonde top: eight GPUs and their processes", &out), 0);
	is_as_kept("docs", "top.svg", out.data);
	strbuf_done(&out);
	end();
}

/* Each key of keys.def, in each tab and in each mode that another one leads to, one after the other. */
static void every_key_everywhere(_unused_ void **state)
{
	static const uint32_t before[] = { 0, 'h', 'c', 'k', 'f', '/', KEY_CODE_ENTER };

	for (unsigned tab = 0; tab < TABS; tab++)
		for (size_t k = 0; k < ARRAY_SIZE(before); k++) {
			begin("full");
			for (unsigned i = 0; i < key_table_n; i++) {
				top.tab = (enum tab)tab;
				top.several = tab == TAB_HOSTS;
				top.mode = MODE_TABLE;
				top.prompt = PROMPT_NONE;
				press(KEY_CODE_DOWN);
				if (before[k])
					press(before[k]);
				press(key_table[i].key);
				draw(i % 2 ? 60 : 132, i % 2 ? 16 : 40);
			}
			end();
		}
}

/* On the smallest screen all of it can be read, in whole sentences. */
static void help_scrolls(_unused_ void **state)
{
	char words[LINE_TEXT];

	begin("full");
	draw(60, 16);
	press('h');
	assert_non_null(strstr(draw(60, 16), "any key: back  Up Down"));
	for (unsigned i = 0; i < key_table_n; i++) {
		bool seen = !key_table[i].help[0];

		/* How it begins, up to where the line may end. */
		snprintf(words, sizeof(words), "%-13s%.20s", key_table[i].name, key_table[i].help);
		press(KEY_CODE_HOME);
		for (int k = 0; k < 100 && !seen; k++) {
			seen = strstr(draw(60, 16), words);
			press(KEY_CODE_DOWN);
		}
		if (!seen)
			fail_msg("the help lacks: %s", words);
	}
	press(KEY_CODE_END);
	assert_non_null(strstr(draw(60, 16), "m Host"));
	assert_int_equal(top.mode, MODE_HELP);
	press('x');
	assert_int_equal(top.mode, MODE_TABLE);
	press('h');
	draw(200, 60);
	press(KEY_CODE_DOWN);
	assert_int_equal(top.mode, MODE_TABLE);
	end();
}

static void the_manual_lists_every_key(_unused_ void **state)
{
	_cleanup_free_ char *text = malloc(FILE_BYTES);
	char path[PATH_MAX], line[400];

	snprintf(path, sizeof(path), "%s/docs/top.md", test_source_root());
	assert_int_equal(read_file(path, text, FILE_BYTES, NULL), 0);
	for (unsigned i = 0; i < key_table_n; i++) {
		if (!key_table[i].help[0])
			continue;
		snprintf(line, sizeof(line), "| `%s` | %s |\n", key_table[i].name, key_table[i].help);
		if (!strstr(text, line))
			fail_msg("docs/top.md lacks: %s", line);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(screens),
		cmocka_unit_test(every_size),
		cmocka_unit_test(many_gpus_fit),
		cmocka_unit_test(totals_say_of_how_many),
		cmocka_unit_test(rows_are_filtered),
		cmocka_unit_test(conditions_compare_in_the_columns_unit),
		cmocka_unit_test(a_table_has_every_gpu),
		cmocka_unit_test(rows_are_sorted),
		cmocka_unit_test(selection_follows_its_row),
		cmocka_unit_test(earlier_moments),
		cmocka_unit_test(settings_are_kept),
		cmocka_unit_test(mouse_selects_tabs_and_rows),
		cmocka_unit_test(stacks_of_a_process),
		cmocka_unit_test(hosts_as_they_are_named),
		cmocka_unit_test(several_machines),
		cmocka_unit_test(curves_say_their_highest),
		cmocka_unit_test(curves_of_a_process),
		cmocka_unit_test(the_filter_says_what_it_takes),
		cmocka_unit_test(the_picture),
		cmocka_unit_test(every_key_everywhere),
		cmocka_unit_test(help_scrolls),
		cmocka_unit_test(the_manual_lists_every_key),
	};

	setenv("TZ", "UTC", 1);
	tzset();
	return cmocka_run_group_tests_name("top", tests, NULL, NULL);
}
