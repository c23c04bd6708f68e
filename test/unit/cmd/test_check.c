// SPDX-License-Identifier: Apache-2.0
/* What "gpusonde check" makes of hand-made nodes. */
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cmd/check/check.h"
#include "view/fixture.h"

static struct snapshot *s;
static struct check_subject subject;

static struct entity *gpu(unsigned i)
{
	return &s->entities[i];
}

static void set(unsigned i, unsigned slot, double v)
{
	gpu(i)->id.v[slot] = v;
	gpu(i)->id.p[slot] = PRESENCE_PRESENT;
}

/* A healthy GPU, alone. */
static int setup(_unused_ void **state)
{
	s = fixture_full();
	s->entities_n = 1;
	s->xids_n = 0;
	memset(gpu(0)->id.p, PRESENCE_ABSENT, sizeof(gpu(0)->id.p));
	gpu(0)->present = true;
	gpu(0)->stale = false;
	set(0, SLOT_TEMPERATURE, 60);
	set(0, SLOT_TEMPERATURE_LIMIT_SLOWDOWN, 87);
	set(0, SLOT_TEMPERATURE_LIMIT_SHUTDOWN, 92);
	set(0, SLOT_ECC_UNCORRECTED_ALL, 0);
	subject = (struct check_subject){ .s = s, .no_agent = "", .no_snapshot = "" };
	return 0;
}

static int teardown(_unused_ void **state)
{
	fixture_free(s);
	return 0;
}

static void expect(enum check_condition condition, enum check_state state, const char *text)
{
	struct verdict verdict;

	check_judge(&subject, condition, &verdict);
	if (verdict.state != state || !strstr(verdict.text.data, text))
		fail_msg("%s is %s: %s", check_name(condition), check_state_name(verdict.state),
			 verdict.text.data);
	strbuf_done(&verdict.text);
}

static void all_is_well(_unused_ void **state)
{
	for (unsigned c = 0; c < CHECK_CONDITIONS; c++)
		expect(c, CHECK_OK, "");
}

static void what_is_wrong_with_gpus(_unused_ void **state)
{
	set(0, SLOT_TEMPERATURE, 88);
	expect(CHECK_heat, CHECK_CRITICAL, "GPU 0: 88");
	set(0, SLOT_RECOVERY_ACTION, 2);
	expect(CHECK_recovery, CHECK_CRITICAL, "reboot the node");
	set(0, SLOT_REMAPPED_ROWS_PENDING, 1);
	expect(CHECK_memory, CHECK_WARNING, "wait to be remapped");
	set(0, SLOT_REMAPPED_ROWS_FAILED, 1);
	expect(CHECK_memory, CHECK_CRITICAL, "; GPU 0: rows"); /* both */
	set(0, SLOT_ECC_UNCORRECTED_ALL, 3);
	expect(CHECK_ecc, CHECK_WARNING, "3 uncorrectable");
	set(0, SLOT_NVLINK_LINKS, 18);
	set(0, SLOT_NVLINK_LINKS_ACTIVE, 17);
	expect(CHECK_links, CHECK_WARNING, "17 of its 18");
}

static void gpus_that_are_not_there(_unused_ void **state)
{
	subject.gpus_expected = 2;
	expect(CHECK_gpus, CHECK_CRITICAL, "1 GPUs of 2");
	subject.gpus_expected = 1;
	expect(CHECK_gpus, CHECK_OK, "");
	gpu(0)->present = false;
	expect(CHECK_gpus, CHECK_CRITICAL, "GPU 0: gone");
	expect(CHECK_heat, CHECK_OK, "");
	gpu(0)->present = gpu(0)->stale = true;
	expect(CHECK_gpus, CHECK_CRITICAL, "does not answer");
}

static void without_current_figures(_unused_ void **state)
{
	s->fresh = false;
	snprintf(s->not_fresh_reason, sizeof(s->not_fresh_reason), "no reading for 8 s");
	expect(CHECK_driver, CHECK_CRITICAL, "no reading for 8 s");
	expect(CHECK_heat, CHECK_UNKNOWN, "no current figures");
	expect(CHECK_gpus, CHECK_OK, ""); /* it was there, and is not told to be stale */
	subject.s = NULL;
	subject.no_snapshot = "not understood";
	expect(CHECK_driver, CHECK_CRITICAL, "not understood");
	expect(CHECK_gpus, CHECK_UNKNOWN, "no current figures");
	subject.no_agent = "no agent runs";
	expect(CHECK_agent, CHECK_WARNING, "no agent runs");
}

static void no_driver_is_no_fault_where_none_is_expected(_unused_ void **state)
{
	struct source *driver = &s->sources[s->device_source];

	s->entities_n = 0;
	driver->state = READING_NO_LIBRARY;
	snprintf(driver->error, sizeof(driver->error), "no library");
	expect(CHECK_driver, CHECK_UNKNOWN, "no library");
	subject.gpus_expected = 8;
	expect(CHECK_driver, CHECK_CRITICAL, "no library");
}

static void xids_of_the_last_hour(_unused_ void **state)
{
	struct xid xid = { .entity = 0, .code = 79, .last_real_ns = s->real_ns - 600 * NSEC_PER_SEC };
	struct xid *own = s->xids;

	s->xids = &xid;
	s->xids_n = 1;
	expect(CHECK_xids, CHECK_CRITICAL, "XID 79 (");
	expect(CHECK_xids, CHECK_CRITICAL, ") 10 min ago: ");
	xid.last_real_ns = s->real_ns - 3601 * NSEC_PER_SEC;
	expect(CHECK_xids, CHECK_OK, "");
	xid = (struct xid){ .code = 13, .last_real_ns = s->real_ns }; /* a program's own error */
	expect(CHECK_xids, CHECK_OK, "");
	s->xids = own;
	s->xids_n = 0;
}

static void figures(_unused_ void **state)
{
	struct strbuf out;

	strbuf_init(&out, 0);
	set(0, SLOT_UTILIZATION_GPU, 0.375);
	set(0, SLOT_MEMORY_USED, 1000);
	set(0, SLOT_MEMORY_TOTAL, 4000);
	check_figures(s, &out);
	assert_string_equal(out.data, "'gpu0_utilization'=38%;;;0; 'gpu0_memory'=1000B;;;0;4000 "
				      "'gpu0_temperature'=60;87;92;0;");
	strbuf_reset(&out);
	gpu(0)->stale = true;
	check_figures(s, &out);
	assert_int_equal(out.len, 0);
	strbuf_done(&out);
}

static void the_worst_wins(_unused_ void **state)
{
	assert_int_equal(check_worse(CHECK_OK, CHECK_UNKNOWN), CHECK_UNKNOWN);
	assert_int_equal(check_worse(CHECK_UNKNOWN, CHECK_WARNING), CHECK_WARNING);
	assert_int_equal(check_worse(CHECK_CRITICAL, CHECK_WARNING), CHECK_CRITICAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(all_is_well, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_wrong_with_gpus, setup, teardown),
		cmocka_unit_test_setup_teardown(gpus_that_are_not_there, setup, teardown),
		cmocka_unit_test_setup_teardown(without_current_figures, setup, teardown),
		cmocka_unit_test_setup_teardown(no_driver_is_no_fault_where_none_is_expected, setup,
						teardown),
		cmocka_unit_test_setup_teardown(xids_of_the_last_hour, setup, teardown),
		cmocka_unit_test_setup_teardown(figures, setup, teardown),
		cmocka_unit_test(the_worst_wins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
