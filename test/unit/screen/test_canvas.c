// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <string.h>

#include "screen/canvas.h"
#include "shown.h"

static struct canvas canvas;

static void begin(int rows, int columns)
{
	canvas.ascii = false;
	assert_int_equal(canvas_resize(&canvas, rows, columns), 0);
}

static void texts_stay_in_their_columns(_unused_ void **state)
{
	begin(2, 12);
	assert_int_equal(canvas_text(&canvas, 0, 0, 5, ROLE_TEXT, "seven77"), 5);
	assert_int_equal(canvas_text(&canvas, 0, 6, 6, ROLE_TEXT, "abc"), 3);
	canvas_right(&canvas, 1, 0, 5, ROLE_TEXT, "12");
	canvas_right(&canvas, 1, 6, 4, ROLE_TEXT, "123456");
	assert_shown(&canvas, "seve\u2026 abc\n   12 123\u2026\n");
	canvas.ascii = true;
	canvas_clear(&canvas);
	canvas_text(&canvas, 0, 0, 5, ROLE_TEXT, "seven77");
	canvas_text(&canvas, 1, 0, 9, ROLE_TEXT, "66 \u00b0C");
	assert_shown(&canvas, "seve~\n66 ?C\n");
}

static void what_is_outside_is_not_drawn(_unused_ void **state)
{
	begin(1, 4);
	canvas_text(&canvas, 0, 2, 10, ROLE_TEXT, "abcdef");
	canvas_text(&canvas, 1, 0, 4, ROLE_TEXT, "x");
	canvas_text(&canvas, -1, 0, 4, ROLE_TEXT, "x");
	canvas_text(&canvas, 0, -2, 4, ROLE_TEXT, "uvwx");
	canvas_text(&canvas, 0, 0, 0, ROLE_TEXT, "y");
	canvas_text(&canvas, 0, 0, -3, ROLE_TEXT, "y");
	canvas_reverse(&canvas, 0, 2, 100);
	assert_shown(&canvas, "wxab\n");
	assert_true(canvas_cell(&canvas, 0, 3)->reversed);
	assert_null(canvas_cell(&canvas, 0, 4));
}

/* Escapes, line ends, characters that turn the direction, bytes that are no text. */
static void hostile_texts_are_question_marks(_unused_ void **state)
{
	begin(1, 40);
	canvas_text(&canvas, 0, 0, 40, ROLE_TEXT,
		    "a\033[31mb\nc\rd\u202ee\xff"
		    "f\xc3");
	assert_shown(&canvas, "a?[31mb?c?d?e?f?\n");
}

static void wide_characters_take_two_columns(_unused_ void **state)
{
	begin(1, 6);
	assert_int_equal(canvas_text(&canvas, 0, 0, 6, ROLE_TEXT, "\u6f22\u5b57"), 4);
	canvas_text(&canvas, 0, 4, 2, ROLE_TEXT, "ab");
	assert_shown(&canvas, "\u6f22\u5b57ab\n");
	/* Half of one is none. */
	canvas_text(&canvas, 0, 1, 1, ROLE_TEXT, "x");
	assert_shown(&canvas, " x\u5b57ab\n");
	canvas_clear(&canvas);
	canvas_text(&canvas, 0, 5, 2, ROLE_TEXT, "\u6f22");
	assert_shown(&canvas, "     ?\n");
	canvas_clear(&canvas);
	assert_int_equal(canvas_text(&canvas, 0, 0, 4, ROLE_TEXT, "\u6f22\u5b57\u6f22"), 3);
	assert_shown(&canvas, "\u6f22\u2026\n");
}

static void marks_join_the_character_before(_unused_ void **state)
{
	begin(1, 8);
	/* The third mark, one without a character, and a joiner are left out. */
	assert_int_equal(canvas_text(&canvas, 0, 0, 8, ROLE_TEXT, "\u0301e\u0301\u0302\u0303o\u200dx"), 3);
	assert_shown(&canvas, "e\u0301\u0302ox\n");
	canvas.ascii = true;
	canvas_clear(&canvas);
	canvas_text(&canvas, 0, 0, 8, ROLE_TEXT, "e\u0301o");
	assert_shown(&canvas, "eo\n");
}

static void sizes_are_bounded(_unused_ void **state)
{
	begin(0, -5);
	assert_int_equal(canvas.rows, 1);
	assert_int_equal(canvas.columns, 1);
	begin(100000, 100000);
	assert_int_equal(canvas.rows, CANVAS_ROWS_MAX);
	assert_int_equal(canvas.columns, CANVAS_COLUMNS_MAX);
	canvas_done(&canvas);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_stay_in_their_columns),
		cmocka_unit_test(what_is_outside_is_not_drawn),
		cmocka_unit_test(hostile_texts_are_question_marks),
		cmocka_unit_test(wide_characters_take_two_columns),
		cmocka_unit_test(marks_join_the_character_before),
		cmocka_unit_test(sizes_are_bounded),
	};

	return cmocka_run_group_tests_name("canvas", tests, NULL, NULL);
}
