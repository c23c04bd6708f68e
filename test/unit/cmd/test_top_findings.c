// SPDX-License-Identifier: Apache-2.0
/* A finding's own screen in "gpusonde top", and the ways that lead to it. */
#include "test.h"

#include <stdio.h>
#include <time.h>

#include "cmd/top_screen.h"
#include "view/findings.h"

enum { PID = 1001 }; /* a process of the fixture */

static void set_finding(struct findings *findings, uint32_t i, uint32_t pid, const char *subject)
{
	struct finding *f = &findings->list[i];

	*f = (struct finding){ .rule = i % 2,
			       .id = i + 1,
			       .active = i != 2,
			       .pid = pid,
			       .begin_ns = (i + 1) * 1500000000ull,
			       .end_ns = (i + 1) * 61500000000ull,
			       .confidence = 0.8,
			       .without = 1 << 1,
			       .values_n = 4,
			       .values = { { "time_share", UNIT_RATIO, 0.125 },
					   { "mean_bytes", UNIT_BYTES, 2048 },
					   { "slowest", UNIT_SECONDS, 0.0021 },
					   { "calls", UNIT_NONE, 31 } } };
	snprintf(f->subject, sizeof(f->subject), "%s", subject);
}

/* Three: of a process that is listed, of one that is on no GPU, and of the first again, ended. */
static void add_findings(void)
{
	struct findings *findings = findings_new(3, 2, 2, 0, NULL);
	struct strbuf text;

	assert_non_null(findings);
	findings->n = 3;
	findings->rules_n = 2;
	findings->rules[0] = (struct finding_rule){ "copy_bound", "threads wait for copies",
						    "keep pages that are copied in pinned memory, and copy "
						    "what the next step needs while this one computes",
						    .active = 1 };
	findings->rules[1] = (struct finding_rule){ "sync_in_loop", "steps wait", "wait less", .active = 1 };
	findings->evidence[1] = "operations of NCCL";
	findings->real_offset_ns = 1700000000 * NSEC_PER_SEC;
	for (uint32_t i = 0; i < 3; i++)
		set_finding(findings, i, i == 1 ? 77 : PID, i == 0 ? "cudaMemcpy \033[31m" : "");
	utf8_sanitize(findings->list[0].subject);
	snprintf(findings->list[0].device, FINDING_DEVICE, "%s", top.sample->snapshot->entities[0].id.uuid);
	findings->list[1].cause = 1;
	findings->list[0].frames_n = findings->frames_n = 2;
	findings->frames[0] = (struct finding_frame){ 0, "main (train.py:7)", "" };
	findings->frames[1] = (struct finding_frame){ 1, "step (train.py:20)", "0, 2" };
	strbuf_init(&text, 0);
	assert_int_equal(json_findings(findings, &text), 0);
	json_decref(top.sample->pages[PAGE_FINDINGS]);
	top.sample->pages[PAGE_FINDINGS] = json_loadb(text.data, text.len, 0, NULL);
	strbuf_done(&text);
	free(findings);
}

static void begin_findings(const char *fixture)
{
	begin(fixture);
	add_findings();
	press('8');
	draw(120, 30);
}

static void screens_of_findings(_unused_ void **state)
{
	static const struct {
		int columns, rows;
	} sizes[] = { { 120, 40 }, { 60, 30 } };

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		char name[80];

		begin_findings("small");
		press(KEY_CODE_HOME);
		while (!STRV_EQ(text_member(top_selected(&top)->object, "finding"), "copy_bound") ||
		       !json_is_true(json_object_get(top_selected(&top)->object, "active")))
			press(KEY_CODE_DOWN);
		press(KEY_CODE_ENTER);
		assert_int_equal(top.mode, MODE_FINDING);
		assert_int_not_equal(top_pages(&top) & 1u << PAGE_FINDINGS, 0);
		snprintf(name, sizeof(name), "finding-%dx%d.txt", sizes[i].columns, sizes[i].rows);
		is_as_kept("test/unit/cmd/screens", name, draw(sizes[i].columns, sizes[i].rows));
		end();
	}
}

/* From its tab, to the process and back, to the next one, and out. */
static void ways_between_screens(_unused_ void **state)
{
	begin_findings("small");
	press(KEY_CODE_ENTER);
	assert_non_null(strstr(top.message, "select a finding"));
	press('1');
	draw(120, 30);
	press(KEY_CODE_HOME);
	while (top_selected(&top)->process->id.pid != PID)
		press(KEY_CODE_DOWN);
	press(KEY_CODE_ENTER);
	assert_int_equal(top.mode, MODE_PROCESS);
	assert_non_null(strstr(draw(120, 60), "threads wait for copies"));
	press(KEY_CODE_ENTER);
	assert_int_equal(top.mode, MODE_FINDING);
	assert_non_null(strstr(draw(120, 60), "copy_bound"));
	/* Of this process there is one more, which has ended. */
	press('n');
	assert_non_null(strstr(draw(120, 60), "It was so"));
	press('n');
	assert_null(strstr(draw(120, 60), "It was so"));
	press('t');
	assert_true(top.start_timeline);
	press('k');
	assert_int_equal(top.mode, MODE_FINDING);
	assert_non_null(strstr(top.message, "signals are sent from"));
	press(KEY_CODE_ESCAPE);
	assert_int_equal(top.mode, MODE_PROCESS);
	assert_int_equal(top.process.pid, PID);
	press(KEY_CODE_ESCAPE);
	assert_int_equal(top.mode, MODE_TABLE);
	end();
}

/* A key and a click lead to what the alert is about. */
static void the_alert_leads_to_it(_unused_ void **state)
{
	struct event click = { .type = EVENT_CLICK, .column = 3 };

	begin("full");
	add_findings();
	assert_non_null(strstr(draw(120, 30), "threads wait for copies: keep pages"));
	press('a');
	assert_int_equal(top.mode, MODE_FINDING);
	assert_non_null(strstr(draw(120, 40), "on no GPU now"));
	press('t');
	assert_false(top.start_timeline);
	press(KEY_CODE_ENTER);
	assert_int_equal(top.mode, MODE_FINDING);
	press(KEY_CODE_ESCAPE);
	assert_int_equal(top.mode, MODE_TABLE);
	draw(120, 30);
	click.row = top.alert_row;
	keys_take(&top, &click, 120);
	assert_int_equal(top.mode, MODE_FINDING);
	/* What is not found any more is said to be so. */
	json_array_clear(json_object_get(top.sample->pages[PAGE_FINDINGS], "findings"));
	assert_non_null(strstr(draw(120, 30), "not on the agent's list any more"));
	press('n');
	press(KEY_CODE_ENTER);
	end();
	/* Of a GPU that is gone the tab of GPUs tells more. */
	begin("small");
	press('9');
	draw(120, 30);
	press('a');
	assert_int_equal(top.mode, MODE_TABLE);
	assert_int_equal(top.tab, TAB_GPUS);
	end();
	begin("full");
	draw(120, 30);
	press('a');
	assert_non_null(strstr(top.message, "nothing is wrong"));
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(screens_of_findings),
		cmocka_unit_test(ways_between_screens),
		cmocka_unit_test(the_alert_leads_to_it),
	};

	setenv("TZ", "UTC", 1);
	tzset();
	return cmocka_run_group_tests_name("top_findings", tests, NULL, NULL);
}
