// SPDX-License-Identifier: Apache-2.0
/* Pages of text on a canvas. */
#include "shown.h"

#include "screen/page.h"

static struct canvas canvas;

static int draw(const char *text, int rows, int columns, int scroll)
{
	struct strbuf page;
	int r;

	assert_int_equal(canvas_resize(&canvas, rows, columns), 0);
	strbuf_init(&page, 0);
	strbuf_adds(&page, text);
	r = page_draw(&canvas, &page, rows, scroll);
	strbuf_done(&page);
	return r;
}

static int finish(_unused_ void **state)
{
	canvas_done(&canvas);
	return 0;
}

static void colours_become_roles(_unused_ void **state)
{
	assert_int_equal(draw("\033[1mA\033[0m b\n\033[1;31mc\033[0m\033[33md\033[0m\n", 2, 10, 0), 2);
	assert_shown(&canvas, "A b\ncd\n");
	assert_int_equal(canvas_cell(&canvas, 0, 0)->role, ROLE_HEAD);
	assert_int_equal(canvas_cell(&canvas, 0, 2)->role, ROLE_TEXT);
	assert_int_equal(canvas_cell(&canvas, 1, 0)->role, ROLE_BAD);
	assert_int_equal(canvas_cell(&canvas, 1, 1)->role, ROLE_WARN);
}

static void other_codes_are_shown(_unused_ void **state)
{
	draw("a\033[2Jb\033", 1, 20, 0);
	assert_shown(&canvas, "a?[2Jb?\n");
}

static void long_lines_go_on_at_blanks(_unused_ void **state)
{
	assert_int_equal(draw("one two three four\n", 4, 9, 0), 3);
	assert_shown(&canvas, "one two\nthree\nfour\n\n");
	assert_int_equal(draw("abcdefghijkl", 4, 5, 0), 3);
	assert_shown(&canvas, "abcde\nfghij\nkl\n\n");
	assert_int_equal(draw("\u6f22\u5b57\u6f22\n", 3, 4, 0), 2);
	assert_shown(&canvas, "\u6f22\u5b57\n\u6f22\n\n");
	draw("a\n", 1, 1, 0);
	assert_shown(&canvas, "a\n");
}

/* The titles of the table that the first row is of stay where they are. */
static void titles_stay(_unused_ void **state)
{
	static const char page[] = "\033[1mA\033[0m\n1\n2\n3\n\n\033[1mB\033[0m\n4\n5\n6\n";

	assert_int_equal(draw(page, 3, 9, 0), 9);
	assert_shown(&canvas, "A\n1\n2\n");
	draw(page, 3, 9, 1);
	assert_shown(&canvas, "A\n2\n3\n");
	draw(page, 3, 9, 6);
	assert_shown(&canvas, "B\n5\n6\n");
	draw(page, 3, 9, 100);
	assert_shown(&canvas, "\n\n\n");
}

/* "SIMULATED" is never scrolled away. */
static void a_warning_stays(_unused_ void **state)
{
	static const char page[] = "\033[33mW\033[0m\n\033[1mA\033[0m\n1\n2\n3\n4\n";

	draw(page, 4, 9, 0);
	assert_shown(&canvas, "W\nA\n1\n2\n");
	assert_int_equal(draw(page, 4, 9, 1), 6);
	assert_shown(&canvas, "W\nA\n2\n3\n");
	draw(page, 4, 9, 2);
	assert_shown(&canvas, "W\nA\n3\n4\n");
	draw("a\n\033[33mw\033[0m\nb\nc\n", 2, 9, 2);
	assert_shown(&canvas, "b\nc\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(colours_become_roles, finish),
		cmocka_unit_test_teardown(other_codes_are_shown, finish),
		cmocka_unit_test_teardown(long_lines_go_on_at_blanks, finish),
		cmocka_unit_test_teardown(titles_stay, finish),
		cmocka_unit_test_teardown(a_warning_stays, finish),
	};

	return cmocka_run_group_tests_name("page", tests, NULL, NULL);
}
