// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <string.h>

#include "base/clock.h"
#include "base/macro.h"
#include "cmd/top/draw.h"
#include "cmd/top/keys.h"
#include "screen/export.h"
#include "view/fixture.h"
#include "view/view.h"

static struct top top;

static int setup(_unused_ void **state)
{
	struct snapshot *s = fixture_small();
	struct strbuf text;

	top_init(&top);
	top.period_ns = NSEC_PER_SEC;
	top.replay = 60;
	strbuf_init(&text, 0);
	assert_int_equal(view_json_text(s, JSON_GPUS | JSON_PROCESSES | JSON_NODE, &text), 0);
	assert_int_equal(sample_of_text(text.data, text.len, &top.sample), 0);
	assert_int_equal(trails_new(&top.trails), 0);
	assert_int_equal(past_new(&top.past), 0);
	strbuf_done(&text);
	fixture_free(s);
	return 0;
}

static int teardown(_unused_ void **state)
{
	top_done(&top);
	return 0;
}

static void press(uint32_t key)
{
	const struct event event = { .type = EVENT_KEY, .key = key };

	top_make_rows(&top);
	keys_take(&top, &event, 80);
}

static void assert_shows(const char *text)
{
	struct canvas canvas = { 0 };
	struct strbuf out;

	strbuf_init(&out, 0);
	assert_int_equal(canvas_resize(&canvas, 24, 100), 0);
	top_make_rows(&top);
	draw_screen(&top, &canvas);
	assert_int_equal(canvas_as_text(&canvas, &out), 0);
	if (!strstr(out.data, text))
		fail_msg("no \"%s\" in:\n%s", text, out.data);
	strbuf_done(&out);
	canvas_done(&canvas);
}

static void keys_ask_for_moments(_unused_ void **state)
{
	const int64_t shown_ns = top.sample->snapshot->real_ns;

	assert_shows(", 60x");
	press('[');
	assert_true(top.frozen);
	assert_int_equal(top.asked_ns, shown_ns - NSEC_PER_SEC);
	press('}');
	assert_int_equal(top.asked_ns, shown_ns + 60 * NSEC_PER_SEC);
	assert_int_equal(top.back, 0);
	press('L');
	assert_int_equal(top.asked_ns, INT64_MAX);
	assert_true(top.frozen);
}

static void it_plays_on_from_what_is_shown(_unused_ void **state)
{
	top.recorded = top.frozen = true;
	assert_shows(", Space plays");
	press(' ');
	assert_false(top.frozen);
	assert_false(top.recorded);
	press(' ');
	assert_true(top.frozen);
}

static void no_process_of_it_gets_a_signal(_unused_ void **state)
{
	press('2');
	press(KEY_CODE_DOWN);
	press('k');
	assert_int_equal(top.mode, MODE_TABLE);
	assert_string_equal(top.message, "this is a recording");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(keys_ask_for_moments, setup, teardown),
		cmocka_unit_test_setup_teardown(it_plays_on_from_what_is_shown, setup, teardown),
		cmocka_unit_test_setup_teardown(no_process_of_it_gets_a_signal, setup, teardown),
	};

	return cmocka_run_group_tests_name("top_replay", tests, NULL, NULL);
}
