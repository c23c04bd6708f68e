// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include "screen/bar.h"
#include "screen/sparkline.h"
#include "shown.h"

static struct canvas canvas;

static void shows(const char *wanted)
{
	assert_shown(&canvas, wanted);
	canvas_clear(&canvas);
}

static void bars(_unused_ void **state)
{
	canvas.ascii = false;
	assert_int_equal(canvas_resize(&canvas, 1, 4), 0);
	bar_draw(&canvas, 0, 0, 4, ROLE_GOOD, 0.5);
	shows("\u2588\u2588\u2591\u2591\n");
	bar_draw(&canvas, 0, 0, 4, ROLE_GOOD, 0.625);
	shows("\u2588\u2588\u258c\u2591\n");
	bar_draw(&canvas, 0, 0, 4, ROLE_GOOD, 7);
	shows("\u2588\u2588\u2588\u2588\n");
	/* A little, nothing, and what is not known look different. */
	bar_draw(&canvas, 0, 0, 4, ROLE_GOOD, 0.0001);
	shows("\u258f\u2591\u2591\u2591\n");
	bar_draw(&canvas, 0, 0, 4, ROLE_GOOD, 0);
	shows("\u2591\u2591\u2591\u2591\n");
	bar_draw(&canvas, 0, 0, 4, ROLE_GOOD, -1);
	shows("\u00b7\u00b7\u00b7\u00b7\n");
	canvas.ascii = true;
	bar_draw(&canvas, 0, 0, 4, ROLE_GOOD, 0.55);
	shows("##+.\n");
}

static double value(const void *userdata, int i, _unused_ int n)
{
	return ((const double *)userdata)[i];
}

static void curves(_unused_ void **state)
{
	static const double values[] = { -1, 0, 0.5, 1, 2 };

	canvas.ascii = false;
	assert_int_equal(canvas_resize(&canvas, 2, 5), 0);
	sparkline_draw(&canvas, 0, 0, 1, 5, ROLE_TEXT, value, values);
	shows(" \u2581\u2584\u2588\u2588\n\n");
	sparkline_draw(&canvas, 0, 0, 2, 5, ROLE_TEXT, value, values);
	shows("   \u2588\u2588\n \u2581\u2588\u2588\u2588\n");
	canvas_done(&canvas);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bars),
		cmocka_unit_test(curves),
	};

	return cmocka_run_group_tests_name("widgets", tests, NULL, NULL);
}
