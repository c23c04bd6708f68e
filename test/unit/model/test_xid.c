// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/macro.h"
#include "lab.h"
#include "model/xid.h"

#define SECOND NSEC_PER_SEC
#define BUS "00000000:01:00.0" /* of the lab's GPU 0 */

static uint64_t count(struct lab *lab, uint32_t code)
{
	lab_wait(lab, 0);
	for (uint32_t i = 0; i < lab->s->xids_n; i++)
		if (lab->s->xids[i].code == code && STRV_EQ(lab->s->xids[i].pci_bus_id, BUS))
			return lab->s->xids[i].count;
	return 0;
}

/* A reading of GPU 0, and so many events of that code. */
static void driver(struct lab *lab, uint32_t code, unsigned events, int64_t ns)
{
	struct reading_entity *gpu = lab_gpu(lab, 0);

	for (unsigned i = 0; i < events; i++)
		lab_event(lab, gpu, code);
	lab_step(lab, ns);
}

static void kernel(struct lab *lab, uint32_t code)
{
	lab_kmsg(lab->model, BUS, code, clock_boot_ns(), 0);
}

static void each_source_alone_is_counted(void **state)
{
	struct lab *lab = *state;

	driver(lab, 79, 2, SECOND);
	assert_int_equal(count(lab, 79), 2);
	kernel(lab, 31);
	kernel(lab, 31);
	kernel(lab, 31);
	assert_int_equal(count(lab, 31), 3);
	assert_int_equal(lab->s->xids[0].entity, 0);
	assert_int_equal(lab->s->xids[0].code, 31);
	assert_int_equal(lab->s->xids[1].code, 79);
}

static void the_kernel_first_then_the_driver_is_one(void **state)
{
	struct lab *lab = *state;

	driver(lab, 0, 0, SECOND);
	kernel(lab, 79);
	assert_int_equal(count(lab, 79), 1);
	driver(lab, 79, 1, SECOND);
	assert_int_equal(count(lab, 79), 1);
	/* Matched is matched: the next event is another error. */
	driver(lab, 79, 1, SECOND);
	assert_int_equal(count(lab, 79), 2);
}

static void the_driver_first_then_the_kernel_is_one(void **state)
{
	struct lab *lab = *state;

	driver(lab, 79, 1, SECOND);
	clock_advance(SECOND);
	kernel(lab, 79);
	assert_int_equal(count(lab, 79), 1);
	kernel(lab, 79);
	assert_int_equal(count(lab, 79), 2);
}

static const struct xid_event *event(struct lab *lab, uint64_t number)
{
	lab_wait(lab, 0);
	for (uint32_t i = 0; i < lab->s->xid_events_n; i++)
		if (lab->s->xid_events[i].number == number)
			return &lab->s->xid_events[i];
	return NULL;
}

/* One event has what each source knows. */
static void events_have_what_every_source_says(void **state)
{
	struct lab *lab = *state;
	const struct xid_record record = { .pci_bus_id = BUS,
					   .code = 79,
					   .gi = UINT32_MAX,
					   .ci = UINT32_MAX,
					   .boot_ns = clock_boot_ns(),
					   .text = "pid=5, name=python, gone" };
	const struct xid_event *e;
	int64_t real_ns;

	driver(lab, 0, 0, SECOND);
	lab_event(lab, lab_gpu(lab, 0), 79);
	lab->reading->events[0].gi = 1;
	lab->reading->events[0].ci = 0;
	lab_step(lab, SECOND);
	e = event(lab, 1);
	assert_non_null(e);
	assert_int_equal(e->sources, 1u << SOURCE_NVML);
	assert_string_equal(e->text, "");
	real_ns = e->real_ns;
	model_kmsg_xid(lab->model, &record);
	e = event(lab, 1);
	assert_int_equal(e->sources, 1u << SOURCE_NVML | 1u << SOURCE_KMSG);
	assert_int_equal(e->gi, 1);
	assert_int_equal(e->ci, 0);
	assert_int_equal(e->entity, 0);
	assert_string_equal(e->text, "pid=5, name=python, gone");
	assert_true(e->real_ns < real_ns); /* the log knows when */
	assert_null(event(lab, 2));
	driver(lab, 31, 1, SECOND);
	e = event(lab, 2);
	assert_int_equal(e->code, 31);
	assert_int_equal(e->gi, UINT32_MAX);
}

static void events_are_the_newest(void **state)
{
	struct lab *lab = *state;

	driver(lab, 0, 0, SECOND);
	for (unsigned i = 0; i < 300; i++)
		kernel(lab, i);
	lab_wait(lab, 0);
	assert_int_equal(lab->s->xid_events_n, 256);
	for (uint32_t i = 0; i < 256; i++) {
		assert_int_equal(lab->s->xid_events[i].number, 45 + i);
		assert_int_equal(lab->s->xid_events[i].code, 44 + i);
	}
}

static void several_match_one_by_one(void **state)
{
	struct lab *lab = *state;

	driver(lab, 0, 0, SECOND);
	for (unsigned i = 0; i < 3; i++)
		kernel(lab, 13);
	driver(lab, 13, 2, SECOND);
	assert_int_equal(count(lab, 13), 3);
	driver(lab, 13, 2, SECOND); /* one is the third of the kernel's, one is new */
	assert_int_equal(count(lab, 13), 4);
}

static void another_code_or_gpu_or_time_is_another_error(void **state)
{
	struct lab *lab = *state;

	driver(lab, 0, 0, SECOND);
	kernel(lab, 79);
	driver(lab, 48, 1, SECOND);
	assert_int_equal(count(lab, 79), 1);
	assert_int_equal(count(lab, 48), 1);
	lab_kmsg(lab->model, "00000000:09:00.0", 48, clock_boot_ns(), 0);
	assert_int_equal(count(lab, 48), 1);
	assert_int_equal(lab->s->xids_n, 3);
	assert_int_equal(lab->s->xids[2].entity, READING_NONE);
	clock_advance(5 * SECOND);
	kernel(lab, 48);
	assert_int_equal(count(lab, 48), 2);
}

static void a_late_reading_still_matches(void **state)
{
	struct lab *lab = *state;

	driver(lab, 0, 0, SECOND);
	kernel(lab, 119); /* and then the driver hangs for a minute */
	driver(lab, 119, 1, 60 * SECOND);
	assert_int_equal(count(lab, 119), 1);
	/* After a new attachment the driver does not know of earlier ones. */
	kernel(lab, 119);
	clock_advance(60 * SECOND);
	lab->reading->attach = 2;
	lab->reading->begin_ns = clock_boot_ns();
	driver(lab, 119, 1, SECOND);
	assert_int_equal(count(lab, 119), 3);
}

static void the_window_follows_the_period(void **state)
{
	struct lab *lab = *state;

	model_set_period(lab->model, 30 * SECOND);
	driver(lab, 79, 1, 30 * SECOND);
	clock_advance(50 * SECOND);
	kernel(lab, 79);
	assert_int_equal(count(lab, 79), 1);
	clock_advance(70 * SECOND);
	kernel(lab, 79);
	assert_int_equal(count(lab, 79), 2);
}

static void the_time_last_seen_is_the_records(void **state)
{
	struct lab *lab = *state;
	int64_t now = clock_real_ns();

	driver(lab, 0, 0, SECOND);
	lab_kmsg(lab->model, BUS, 31, clock_boot_ns() - 40 * SECOND, 0);
	assert_int_equal(count(lab, 31), 1);
	assert_int_equal(lab->s->xids[0].last_real_ns, now + SECOND - 40 * SECOND);
	/* A clock ahead of ours does not make it tomorrow's. */
	lab_kmsg(lab->model, BUS, 31, clock_boot_ns() + 40 * SECOND, 0);
	assert_int_equal(count(lab, 31), 2);
	assert_int_equal(lab->s->xids[0].last_real_ns, clock_real_ns());
}

static void codes_are_bounded(void **state)
{
	struct lab *lab = *state;

	for (uint32_t code = 0; code < 100; code++)
		kernel(lab, code);
	assert_int_equal(count(lab, 0), 1);
	assert_int_equal(lab->s->xids_n, 64);
	assert_near(lab->s->agent[AGENT_DROPPED_XIDS], 36, 0);
	for (unsigned gpu = 0; gpu < 40; gpu++)
		for (uint32_t code = 0; code < 60; code++) {
			char bus[32];

			snprintf(bus, sizeof(bus), "00000001:%02X:00.0", gpu);
			lab_kmsg(lab->model, bus, code, clock_boot_ns(), 0);
		}
	lab_wait(lab, 0);
	assert_int_equal(lab->s->xids_n, 1024);
	for (uint32_t i = 1; i < 1024; i++)
		assert_true(lab->s->xids[i - 1].entity <= lab->s->xids[i].entity);
}

static void every_code_has_words(_unused_ void **state)
{
	uint32_t last = 0;

	for (uint32_t code = 1; code < 300; code++) {
		const struct xid_description *d = xid_describe(code);

		assert_true(d->first <= code && code <= d->last);
		assert_true(d->severity < XID_SEVERITIES && d->action < XID_ACTIONS);
		assert_non_null(d->name);
		assert_int_equal(d->meaning[strlen(d->meaning) - 1], '.');
		/* What the action says already. */
		if (d->action == XID_CHECK_APP)
			assert_null(strstr(d->meaning, "The GPU is"));
		assert_non_null(xid_severity_name(d->severity));
		assert_non_null(xid_action_text(d->action));
		if (d->first != 0 && d->first != last) {
			assert_true(d->first > last); /* in order, so that each is found */
			last = d->first;
		}
	}
	assert_string_equal(xid_describe(79)->name, "GPU has fallen off the bus");
	assert_int_equal(xid_describe(79)->severity, XID_CRITICAL);
	assert_int_equal(xid_describe(13)->severity, XID_APP);
	assert_int_equal(xid_describe(77)->first, 75);
	assert_string_equal(xid_describe(9999)->name, "Unknown XID");
}

static void addresses_are_written_as_nvml_does(_unused_ void **state)
{
	static const struct {
		const char *text, *wanted;
	} cases[] = {
		{ "PCI:0000:3b:00", "00000000:3B:00.0" },
		{ "0000:3b:00", "00000000:3B:00.0" },
		{ "PCI:0000:3b:00.1", "00000000:3B:00.1" },
		{ "00000000:3B:00.0", "00000000:3B:00.0" },
		{ "PCI:000a:ff:1f", "0000000A:FF:1F.0" },
		{ "PCI:0000:3b", NULL },
		{ "PCI:0000:3b:00.9", NULL },
		{ "PCI:0000:100:00", NULL },
		{ "PCI:0000:3b:20", NULL },
		{ "PCI:100000000:3b:00", NULL },
		{ "PCI:0000:3b:00 ", NULL },
		{ "", NULL },
		{ "PCI:", NULL },
		{ "PCI:0000:3b:00.", NULL },
	};

	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		char bus[32];
		int r = xid_bus_id(cases[i].text, strlen(cases[i].text), bus);

		assert_int_equal(r, cases[i].wanted ? 0 : -EINVAL);
		if (cases[i].wanted)
			assert_string_equal(bus, cases[i].wanted);
	}
}

int main(void)
{
#define CASE(name_) cmocka_unit_test_setup_teardown(name_, lab_setup, lab_teardown)
	const struct CMUnitTest tests[] = {
		CASE(each_source_alone_is_counted),
		CASE(the_kernel_first_then_the_driver_is_one),
		CASE(the_driver_first_then_the_kernel_is_one),
		CASE(several_match_one_by_one),
		CASE(events_have_what_every_source_says),
		CASE(events_are_the_newest),
		CASE(another_code_or_gpu_or_time_is_another_error),
		CASE(a_late_reading_still_matches),
		CASE(the_window_follows_the_period),
		CASE(the_time_last_seen_is_the_records),
		CASE(codes_are_bounded),
		cmocka_unit_test(every_code_has_words),
		cmocka_unit_test(addresses_are_written_as_nvml_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
