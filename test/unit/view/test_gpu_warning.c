// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <string.h>

#include "base/macro.h"
#include "view/view.h"

static struct entity gpu;

static void set(unsigned slot, double v)
{
	gpu.id.v[slot] = v;
	gpu.id.p[slot] = PRESENCE_PRESENT;
}

static int setup(_unused_ void **state)
{
	gpu = (struct entity){ .present = true, .id.parent = READING_NONE };
	set(SLOT_TEMPERATURE, 60);
	set(SLOT_TEMPERATURE_LIMIT_SLOWDOWN, 90);
	set(SLOT_NVLINK_LINKS, 18);
	set(SLOT_NVLINK_LINKS_ACTIVE, 18);
	set(SLOT_RECOVERY_ACTION, 0);
	set(SLOT_REMAPPED_ROWS_PENDING, 0);
	return 0;
}

/* The first that is true; "ok": none. */
static const char *state_of(struct gpu_warning *ret_warning)
{
	for (unsigned i = 0; i < GPU_WARNINGS; i++)
		if (gpu_warning(&gpu, i, ret_warning))
			return ret_warning->state;
	return "ok";
}

static void expect(const char *state, bool severe, const char *text)
{
	struct gpu_warning warning = { 0 };

	assert_string_equal(state_of(&warning), state);
	assert_int_equal(warning.severe, severe);
	if (!strstr(warning.text, text))
		fail_msg("\"%s\" is not in \"%s\"", text, warning.text);
}

static void nothing_to_say(_unused_ void **state)
{
	expect("ok", false, "");
	memset(gpu.id.p, 0, sizeof(gpu.id.p)); /* nothing is known */
	expect("ok", false, "");
	set(SLOT_RECOVERY_ACTION, 1);
	gpu.present = false;
	expect("ok", false, ""); /* said otherwise */
}

static void what_the_driver_asks_for(_unused_ void **state)
{
	static const char *const states[] = { "RESET", "REBOOT", "DRAIN", "RESET", "RESET", "RECOVER" };

	for (unsigned i = 0; i < ARRAY_SIZE(states); i++) {
		set(SLOT_RECOVERY_ACTION, i + 1);
		expect(states[i], true, "the driver asks for");
	}
}

static void heat(_unused_ void **state)
{
	set(SLOT_TEMPERATURE, 90);
	expect("HOT", true, "from which it slows down");
	set(SLOT_TEMPERATURE, 80);
	expect("ok", false, "");
	set(SLOT_EVENT_REASON_HW_THERMAL_SLOWDOWN, 1);
	expect("HOT", true, "slowed down by its heat, at 80");
	gpu.id.p[SLOT_TEMPERATURE] = PRESENCE_ABSENT;
	expect("HOT", true, "slowed down by its heat: look");
}

static void memory_and_links(_unused_ void **state)
{
	set(SLOT_NVLINK_LINKS_ACTIVE, 12);
	expect("DEGRADED", false, "12 of its 18 NVLinks");
	set(SLOT_RETIRED_PAGES_PENDING, 1);
	expect("RESET", false, "wait to be retired");
	set(SLOT_REMAPPED_ROWS_PENDING, 1);
	expect("RESET", false, "wait to be remapped");
	set(SLOT_REMAPPED_ROWS_FAILED, 1);
	expect("DEGRADED", true, "could not be remapped");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(nothing_to_say, setup),
		cmocka_unit_test_setup(what_the_driver_asks_for, setup),
		cmocka_unit_test_setup(heat, setup),
		cmocka_unit_test_setup(memory_and_links, setup),
	};

	return cmocka_run_group_tests_name("gpu_warning", tests, NULL, NULL);
}
