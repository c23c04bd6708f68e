// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <string.h>

#include "screen/export.h"

static void a_picture_escapes_what_is_in_it(_unused_ void **state)
{
	static const char *const parts[] = {
		"&lt;script&gt;&quot;&amp;'", "<title>a &lt; b</title>", ">LOST</text>",
		"<rect x=\"30\" y=\"32\" width=\"36\"", /* what is reversed has a background */
	};
	struct canvas canvas = { 0 };
	struct strbuf out;

	assert_int_equal(canvas_resize(&canvas, 2, 20), 0);
	canvas_text(&canvas, 0, 0, 20, ROLE_TEXT, "<script>\"&'");
	canvas_text(&canvas, 1, 2, 5, ROLE_BAD, "LOST");
	canvas_reverse(&canvas, 1, 2, 4);
	strbuf_init(&out, 0);
	assert_int_equal(canvas_as_svg(&canvas, "a < b", &out), 0);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		if (!strstr(out.data, parts[i]))
			fail_msg("no %s in %s", parts[i], out.data);
	assert_null(strstr(out.data, "<script"));
	strbuf_done(&out);
	canvas_done(&canvas);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_picture_escapes_what_is_in_it),
	};

	return cmocka_run_group_tests_name("export", tests, NULL, NULL);
}
