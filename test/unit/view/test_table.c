// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <string.h>

#include "base/macro.h"
#include "base/text.h"
#include "fixture.h"
#include "view/snapshot/read.h"
#include "view/table/table.h"
#include "view/view.h"

typedef int table_fn(const struct snapshot *s, const struct table_options *options, struct strbuf *out);

static table_fn *const tables[] = { table_gpus, table_processes, table_node };

static char *table(const struct snapshot *s, table_fn *fn, bool colour, unsigned width)
{
	struct table_options options = { .colour = colour, .width = width };
	struct strbuf out;
	char *text;

	strbuf_init(&out, 0);
	assert_int_equal(fn(s, &options, &out), 0);
	text = strbuf_take(&out);
	assert_non_null(text);
	return text;
}

/* No line wider than asked for, at any width, and always whole characters. */
static void widths(void **state)
{
	struct snapshot *s = fixture_small();

	(void)state;
	for (unsigned width = 1; width <= 200; width++)
		for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
			_cleanup_free_ char *text = table(s, tables[i], false, width);

			assert_true(utf8_valid(text, strlen(text)));
			for (char *save = NULL, *line = strtok_r(text, "\n", &save); line;
			     line = strtok_r(NULL, "\n", &save))
				assert_true(text_width(line) <= width);
		}
	fixture_free(s);
}

static void simulated_is_said(void **state)
{
	struct snapshot *s = fixture_small();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		_cleanup_free_ char *simulated = NULL, *real = NULL;

		s->simulated = true;
		simulated = table(s, tables[i], false, 0);
		s->simulated = false;
		real = table(s, tables[i], false, 0);
		assert_int_equal(strncmp(simulated, "SIMULATED DATA", 14), 0);
		assert_null(strstr(real, "SIMULATED"));
	}
	fixture_free(s);
}

static void colour_only_when_asked(void **state)
{
	struct snapshot *s = fixture_small();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		_cleanup_free_ char *plain = table(s, tables[i], false, 0),
				    *coloured = table(s, tables[i], true, 0);
		char *to = coloured;

		assert_null(strchr(plain, '\033'));
		assert_non_null(strchr(coloured, '\033'));
		/* Without its escapes the coloured one is the plain one. */
		for (const char *from = coloured; *from; from++) {
			if (*from == '\033')
				from += strcspn(from, "m");
			else
				*to++ = *from;
		}
		*to = '\0';
		assert_string_equal(coloured, plain);
	}
	fixture_free(s);
}

static void unknown_is_a_dash(void **state)
{
	struct snapshot *s = fixture_small();
	_cleanup_free_ char *gpus = table(s, table_gpus, false, 0);
	char *lost = strstr(gpus, "LOST");

	(void)state;
	assert_non_null(lost);
	lost[strcspn(lost, "\n")] = '\0';
	assert_null(strstr(lost, "%"));
	assert_null(strstr(lost, "GiB"));
	fixture_free(s);
}

static void expect(const char *document, table_fn *fn, const char *wanted, const char *unwanted)
{
	json_t *json = json_loads(document, 0, NULL);
	struct table_options options = { 0 };
	struct snapshot *s;
	struct strbuf out;

	assert_non_null(json);
	strbuf_init(&out, 0);
	assert_int_equal(snapshot_read(json, &s), 0);
	assert_int_equal(fn(s, &options, &out), 0);
	snapshot_read_free(s);
	if (!strstr(out.data, wanted) || (unwanted && strstr(out.data, unwanted)))
		fail_msg("wanted \"%s\", not \"%s\": %s", wanted, unwanted ? unwanted : "", out.data);
	strbuf_done(&out);
	json_decref(json);
}

/* Processes may be traced where there is no GPU, or its driver hangs. */
static void trouble_has_one_word_in_all_tables(_unused_ void **state)
{
	static const char *const documents[][2] = {
		{ "{\"gpus\": [], \"processes\": [], \"traced\": [{\"pid\": 7}], \"error\": \"REASON\"}",
		  "No GPUs: REASON" },
		{ "{\"gpus\": [{\"gpu\": 0}], \"processes\": [], \"traced\": [{\"pid\": 7}], \"error\": "
		  "\"REASON\"}",
		  "No new data: REASON" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(documents); i++)
		expect(documents[i][0], table_processes, documents[i][1], NULL);
}

static void nothing_to_show(void **state)
{
	struct snapshot *s = fixture_empty();
	_cleanup_free_ char *gpus = table(s, table_gpus, false, 0),
			    *processes = table(s, table_processes, false, 0);
	_cleanup_free_ char *node = table(s, table_node, false, 0);

	(void)state;
	assert_int_equal(strncmp(gpus, "No GPUs: ", 9), 0);
	assert_non_null(strstr(gpus, "install the NVIDIA driver"));
	assert_int_equal(strncmp(processes, "No GPU processes: ", 18), 0);
	assert_non_null(strstr(processes, "install the NVIDIA driver"));
	assert_non_null(strstr(node, "install the NVIDIA driver"));
	fixture_free(s);
}

static void what_wants_doing_is_said(void **state)
{
	(void)state;
	expect("{\"gpus\":[{\"gpu\":3,\"present\":true,\"recovery_action\":2}]}", table_gpus,
	       "GPU 3: the driver asks for this: reboot the node", NULL);
	expect("{\"gpus\":[{\"gpu\":3,\"present\":true,\"recovery_action\":77}]}", table_gpus,
	       "recovery action 77", NULL);
	expect("{\"gpus\":[{\"gpu\":3,\"present\":true,\"remapped_rows_failed\":1}]}", table_gpus,
	       "could not be remapped", NULL);
	expect("{\"gpus\":[{\"gpu\":3,\"present\":true,\"remapped_rows_pending\":1,"
	       "\"retired_pages_pending\":0}]}",
	       table_gpus, "to be remapped", "to be retired");
	expect("{\"gpus\":[{\"gpu\":3,\"present\":true,\"nvlink_links\":{\"active\":17,\"total\":18}}]}",
	       table_gpus, "17 of its 18 NVLinks", NULL);
	expect("{\"gpus\":[{\"gpu\":3,\"present\":true,\"temperature_celsius\":87,"
	       "\"temperature_threshold_celsius\":{\"slowdown\":87}}]}",
	       table_gpus, "slows down", NULL);
	expect("{\"gpus\":[{\"gpu\":3,\"present\":true,\"temperature_celsius\":86,\"recovery_action\":0,"
	       "\"temperature_threshold_celsius\":{\"slowdown\":87},\"nvlink_links\":{\"active\":18,"
	       "\"total\":18}}]}",
	       table_gpus, "3", "GPU 3:");
}

static void processes_of_old_data_have_no_load(void **state)
{
	(void)state;
	expect("{\"gpus\":[{\"gpu\":3,\"uuid\":\"u\",\"present\":false,\"stale\":true,\"age_seconds\":9}],"
	       "\"processes\":[{\"gpu\":3,\"uuid\":\"u\",\"pid\":7,\"utilization_ratio\":0.5}]}",
	       table_processes, "GPU 3 is lost: its processes are as of 9 s ago", "50 %");
	expect("{\"gpus\":[{\"gpu\":3,\"uuid\":\"u\",\"present\":true,\"stale\":false}],\"processes\":["
	       "{\"gpu\":3,\"uuid\":\"u\",\"pid\":7,\"utilization_ratio\":0.5}]}",
	       table_processes, "50 %", "ago");
}

static void a_gpu_has_the_processes_of_its_instances(void **state)
{
	(void)state;
	expect("{\"gpus\":[{\"gpu\":3,\"present\":true,\"processes_live\":0,\"mig\":[{\"processes_live\":2},"
	       "{\"processes_live\":3}]}]}",
	       table_gpus, "  5", NULL);
}

/* Of one list that could not be read the sum is not known, and what is shown of processes is not all. */
static void processes_that_could_not_be_listed(void **state)
{
	static const char *const documents[] = {
		"{\"gpus\":[{\"gpu\":3,\"present\":true,\"processes_live\":5,"
		"\"mig\":[{\"processes_live\":null}]}],\"processes\":[]}",
		"{\"gpus\":[{\"gpu\":3,\"present\":true,\"processes_live\":null,\"mig\":[]}],"
		"\"processes\":[{\"pid\":7}]}",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(documents); i++) {
		expect(documents[i], table_processes, "Processes are missing", NULL);
		expect(documents[i], table_processes, "on GPU 3\n", NULL);
	}
	expect(documents[0], table_gpus, "MIG", " 5");
	expect(documents[1], table_gpus, "GPU", " 0");
	expect("{\"gpus\":[{\"gpu\":3,\"present\":true,\"processes_live\":0}],\"processes\":[]}",
	       table_processes, "No GPU", "missing");
	expect("{\"gpus\":[{\"gpu\":3,\"present\":true}],\"processes\":[]}", table_processes, "No GPU",
	       "missing");
}

static void a_driver_that_is_not_recognised(void **state)
{
	static const char text[] = "{\"gpus\":[{\"gpu\":3}],\"processes\":[{\"pid\":7}],"
				   "\"node\":{\"unrecognised\":\"architecture 99\"}}";

	(void)state;
	expect(text, table_gpus, "doctor says more): architecture 99", NULL);
	expect(text, table_processes, "doctor says more): architecture 99", NULL);
	expect("{\"gpus\":[{\"gpu\":3}],\"node\":{\"unrecognised\":null}}", table_gpus, "GPU", "doctor");
}

/* A document of somebody else's making: wrong types and missing members are unknown, not a crash. */
static void foreign_documents(void **state)
{
	static const char *const texts[] = {
		"{\"gpus\":[{}],\"processes\":[{}],\"node\":{}}",
		"{\"gpus\":[null,1,\"x\",[]],\"processes\":[null,1,\"x\",[]],\"node\":{\"topology\":[null,"
		"{\"a\":-1,\"b\":99},{}],\"workloads\":[null,{}],\"rejected\":{\"x\":\"y\"}}}",
		"{\"gpus\":[{\"gpu\":\"x\",\"name\":7,\"mig\":[{}],\"xids\":[{},1],"
		"\"clocks_event_reason\":{\"a\":\"b\"}}],\"processes\":[{\"types\":[1,\"\",\"compute\",\"b\","
		"\"c\",\"d\",\"e\",\"f\",\"g\",\"h\"],\"uid\":-5,\"busy_seconds_total\":1e300,"
		"\"memory_bytes\":1e300}],\"node\":{\"gpus\":3}}",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		for (size_t k = 0; k < ARRAY_SIZE(tables); k++)
			expect(texts[i], tables[k], "", NULL);
}

static void terminal_text(void **state)
{
	static const struct {
		const char *text, *clean;
		unsigned width;
	} cases[] = {
		{ "plain", "plain", 5 },
		{ "a\tb\nc\x7f", "a?b?c?", 6 },
		{ "\033[31mred", "?[31mred", 8 },
		{ "\xc2\x9b"
		  "31m",
		  "?31m", 4 }, /* CSI in one character */
		{ "\xe2\x80\xaegnp.exe", "?gnp.exe", 8 }, /* right-to-left override */
		{ "caf\xc3\xa9", "caf\xc3\xa9", 4 },
		{ "cafe\xcc\x81", "cafe\xcc\x81", 4 },
		{ "\xe8\xa8\x93\xe7\xb7\xb4", "\xe8\xa8\x93\xe7\xb7\xb4", 4 },
		{ "\xf0\x9f\x94\xa5", "\xf0\x9f\x94\xa5", 2 },
		{ "\xff\xc3(", "?\?(", 3 },
	};
	struct strbuf out;

	(void)state;
	strbuf_init(&out, 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		strbuf_reset(&out);
		text_clean(&out, cases[i].text);
		assert_string_equal(out.data, cases[i].clean);
		assert_int_equal(text_width(out.data), cases[i].width);
	}
	strbuf_done(&out);
}

/* The mark of a claim is seen however long the claim is, and the rest of the row is, too. */
static void claims_are_marked_and_cut(_unused_ void **state)
{
	struct snapshot *s = fixture_small();
	char long_name[sizeof(s->jobs[0].name)], text[SHORT_TEXT];
	_cleanup_free_ char *all = NULL;

	memset(long_name, 'x', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = '\0';
	memcpy(s->jobs[0].name, long_name, sizeof(long_name));
	memcpy(s->jobs[1].name, long_name, sizeof(long_name));
	memcpy(s->jobs[1].run, long_name, sizeof(long_name));
	all = table(s, table_processes, false, 0);
	assert_non_null(strstr(all, " job 4711.0 (claimed: xxxxxxxxxxxxxxxxxxxxxxxxxxxxx...) "));
	assert_non_null(strstr(all, " claimed job 2022[3] xxxxxxxxxxxxxxxxxxxxxxxxxxxxx...  "));
	assert_non_null(strstr(all, "  sweep/xxxxxxxxxxxxxxxxxxxxxxxxxxxxx...  "));
	assert_string_equal(text_shorten("", text), "");
	memset(long_name + SHORT_COLUMNS, 0, sizeof(long_name) - SHORT_COLUMNS);
	assert_string_equal(text_shorten(long_name, text), long_name);
	/* Two columns each; no width at all; no text at all. */
	assert_string_equal(text_shorten("日日日日日日日日日日日日日日日日日", text),
			    "日日日日日日日日日日日日日日...");
	for (unsigned i = 0; i + 3 < sizeof(long_name); i += 2)
		memcpy(long_name + i, "\xcc\x80", 3);
	assert_true(strlen(text_shorten(long_name, text)) < SHORT_TEXT);
	assert_string_equal(text_shorten("a\xe6\x97", text), "a??");
	fixture_free(s);
}

static char *groups_table(const struct snapshot *s, enum group_by by)
{
	struct table_options options = { 0 };
	struct strbuf out;

	strbuf_init(&out, 0);
	assert_int_equal(table_groups(s, by, &options, &out), 0);
	return strbuf_take(&out);
}

static void a_dash_among_sums_is_explained(_unused_ void **state)
{
	struct snapshot *s = fixture_small();
	_cleanup_free_ char *some = groups_table(s, GROUP_USER), *all = NULL;

	assert_non_null(strstr(some, "\nSM, BUSY: \"-\" where"));
	for (uint32_t i = 0; i < s->processes_n; i++)
		for (unsigned k = 0; k < GROUP_FIGURES; k++)
			s->processes[i].p[group_metrics[k]] = PRESENCE_PRESENT;
	all = groups_table(s, GROUP_USER);
	assert_null(strstr(all, "\"-\""));
	fixture_free(s);
}

static void jobs_have_what_they_were_given(_unused_ void **state)
{
	struct snapshot *s = fixture_small();
	_cleanup_free_ char *text = groups_table(s, GROUP_JOB);

	assert_non_null(strstr(text, "ALLOCATED"));
	assert_non_null(strstr(text, "claimed 1"));
	assert_non_null(strstr(text, "\nclaimed 2022[3] "));
	assert_non_null(strstr(text, "CLAIMED NAME"));
	fixture_free(s);
}

/* In a narrow window, columns without values go before those with some. */
static void empty_columns_go_first(_unused_ void **state)
{
	static const struct table_column columns[] = { { .title = "ID" },
						       { .title = "EMPTY" },
						       { .title = "USER", .dispensable = 1 },
						       { .title = "NAME", .flexible = true } };
	static const struct {
		unsigned width;
		const char *lines;
	} cases[] = {
		{ 0, "ID  EMPTY  USER  NAME\n-   -      me    program\n-   -      you   other\n" },
		{ 18, "ID  USER  NAME\n-   me    program\n-   you   other\n" },
		{ 13, "ID  NAME\n-   program\n-   other\n" },
	};
	struct table t;
	struct strbuf out;

	strbuf_init(&out, 0);
	table_init(&t, columns, ARRAY_SIZE(columns));
	for (unsigned row = 0; row < 2; row++) {
		table_cell(&t, COLOUR_NONE, "");
		table_cell(&t, COLOUR_NONE, "");
		table_cell(&t, COLOUR_NONE, row ? "you" : "me");
		table_cell(&t, COLOUR_NONE, row ? "other" : "program");
	}
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		strbuf_reset(&out);
		assert_int_equal(table_write(&t, &(struct table_options){ .width = cases[i].width }, &out),
				 0);
		assert_string_equal(out.data, cases[i].lines);
	}
	table_done(&t);
	strbuf_done(&out);
}

/* Nothing of a text is lost, whatever the width. */
static void texts_are_wrapped(_unused_ void **state)
{
	static const struct {
		unsigned width;
		const char *text, *lines;
	} cases[] = {
		{ 0, "  one two", "  one two\n" },
		{ 20, "GPU 0: Check NVLink bridges and XIDs", "GPU 0: Check NVLink\n    bridges and XIDs\n" },
		{ 20, "    indented by four columns", "    indented by four\n    columns\n" },
		{ 20, "abcdefghijklmnopqrstuvwxyz", "abcdefghijklmnopqrst\n    uvwxyz\n" },
		{ 20, "two  blanks at the  end", "two  blanks at the\n    end\n" },
		{ 8, "    one two", "one two\n" },
		{ 1, "ab", "a\nb\n" },
		{ 20, "", "\n" },
	};
	struct strbuf out;

	strbuf_init(&out, 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		strbuf_reset(&out);
		table_line(&(struct table_options){ .width = cases[i].width }, &out, COLOUR_NONE,
			   cases[i].text);
		assert_string_equal(out.data, cases[i].lines);
	}
	strbuf_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(widths),
		cmocka_unit_test(claims_are_marked_and_cut),
		cmocka_unit_test(a_dash_among_sums_is_explained),
		cmocka_unit_test(jobs_have_what_they_were_given),
		cmocka_unit_test(empty_columns_go_first),
		cmocka_unit_test(texts_are_wrapped),
		cmocka_unit_test(simulated_is_said),
		cmocka_unit_test(colour_only_when_asked),
		cmocka_unit_test(unknown_is_a_dash),
		cmocka_unit_test(nothing_to_show),
		cmocka_unit_test(trouble_has_one_word_in_all_tables),
		cmocka_unit_test(what_wants_doing_is_said),
		cmocka_unit_test(processes_of_old_data_have_no_load),
		cmocka_unit_test(a_gpu_has_the_processes_of_its_instances),
		cmocka_unit_test(processes_that_could_not_be_listed),
		cmocka_unit_test(a_driver_that_is_not_recognised),
		cmocka_unit_test(foreign_documents),
		cmocka_unit_test(terminal_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
