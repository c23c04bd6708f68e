// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/macro.h"
#include "base/row_list.h"
#include "model/finding.h"
#include "view/events.h"
#include "view/view.h"

enum { EVENTS = 16 };
static struct event events[EVENTS];
static unsigned events_n;
static struct event_watch *watch;
static struct snapshot snapshot;
static struct entity gpus[2];
static struct xid_event xids[4];
static struct process process;
static struct workload workload;
static struct owner owner;
static struct allocated allocated;
static struct trace_view trace;
static struct finding finding;
static struct finding_rule rule = { .name = "copy_bound", .title = "it waits", .remedy = "do not" };
static struct findings findings = { .list = &finding, .rules = &rule, .rules_n = 1 };

static void receive(const struct event *event, _unused_ void *userdata)
{
	assert_true(events_n < EVENTS);
	events[events_n++] = *event;
}

/* Of a second later. */
static bool ends;
static uint64_t take_after(int64_t seconds)
{
	snapshot.real_ns += seconds * NSEC_PER_SEC;
	snapshot.boot_ns += seconds * NSEC_PER_SEC;
	events_n = 0;
	return event_watch_take(watch, &snapshot, ends, receive, NULL);
}

static void add_xid(uint64_t number, uint32_t code, const char *text)
{
	struct xid_event *xid = &xids[snapshot.xid_events_n++];

	*xid = (struct xid_event){ .number = number,
				   .entity = 0,
				   .code = code,
				   .gi = UINT32_MAX,
				   .ci = UINT32_MAX,
				   .sources = 1u << SOURCE_KMSG,
				   .real_ns = snapshot.real_ns };
	PUT_TEXT(xid->text, text);
	PUT_TEXT(xid->pci_bus_id, "00000000:3B:00.0");
}

static void watch_anew(bool old_xids)
{
	event_watch_free(watch);
	assert_int_equal(event_watch_new(old_xids, &watch), 0);
}

static int begin(_unused_ void **state)
{
	ends = false;
	snapshot = (struct snapshot){ .real_ns = 1000 * NSEC_PER_SEC,
				      .boot_ns = 10 * NSEC_PER_SEC,
				      .fresh = true,
				      .entities = gpus,
				      .entities_n = 2,
				      .xid_events = xids,
				      .processes = &process,
				      .processes_n = 1,
				      .workloads = &workload,
				      .workloads_n = 1,
				      .allocated = &allocated,
				      .allocated_n = 1 };
	snapshot.sources[snapshot.device_source].state = READING_OK;
	for (unsigned i = 0; i < 2; i++) {
		gpus[i] = (struct entity){ .present = true, .id.parent = READING_NONE, .id.index = i };
		PUT_TEXT(gpus[i].id.uuid, i ? "GPU-1" : "GPU-0");
	}
	process = (struct process){ .id.pid = 77, .comm = "python", .workload = 0 };
	workload =
		(struct workload){ .kind = WORKLOAD_CONTAINER, .id = "c1", .pod_uid = "u1", .owner = &owner };
	owner = (struct owner){ .namespace = "ns", .pod = "p", .container = "c" };
	allocated = (struct allocated){ .entity = 1, .kind = WORKLOAD_POD, .id = "u2", .pod = "given" };
	watch_anew(true);
	return 0;
}

static int end(_unused_ void **state)
{
	event_watch_free(watch);
	watch = NULL;
	return 0;
}

static void xids_once_with_whose_they_are(_unused_ void **state)
{
	add_xid(1, 31, "pid=77, name=python, Ch 1");
	add_xid(2, 79, "pid='<unknown>', name=<unknown>");
	xids[1].entity = 1;
	assert_int_equal(take_after(1), 0);
	assert_int_equal(events_n, 2);
	assert_string_equal(events[0].name, "gpusonde.xid");
	assert_string_equal(events[0].uuid, "GPU-0");
	assert_string_equal(events[0].error, "xid_31");
	assert_int_equal(events[0].xid, 31);
	assert_int_equal(events[0].severity, SEVERITY_ERROR);
	assert_int_equal(events[0].pid, 77);
	assert_string_equal(events[0].comm, "python");
	assert_string_equal(events[0].container_id, "c1");
	assert_string_equal(events[0].pod_uid, "u1");
	assert_string_equal(events[0].pod, "p");
	assert_int_equal(events[0].real_ns, 1000 * NSEC_PER_SEC);
	assert_int_equal(events[0].observed_real_ns, 1001 * NSEC_PER_SEC);
	assert_non_null(strstr(events[0].body, "The driver says: pid=77"));
	/* No process is named: of the one that has the GPU. */
	assert_int_equal(events[1].severity, SEVERITY_CRITICAL);
	assert_int_equal(events[1].pid, EVENT_NO_NUMBER);
	assert_string_equal(events[1].pod, "given");
	assert_string_equal(events[1].pod_uid, "u2");
	take_after(1);
	assert_int_equal(events_n, 0);
	/* More came than the snapshot keeps. */
	snapshot.xid_events_n = 0;
	add_xid(9, 31, "");
	assert_int_equal(take_after(1), 6);
	assert_int_equal(events_n, 1);
}

static void xids_from_before_are_not_told_without_memory(_unused_ void **state)
{
	watch_anew(false);
	add_xid(7, 31, "");
	snapshot.real_ns += NSEC_PER_SEC;
	assert_int_equal(take_after(0), 0);
	assert_int_equal(events_n, 0);
	/* The log is read after the first snapshot. */
	add_xid(8, 31, "");
	xids[1].real_ns = 5 * NSEC_PER_SEC;
	add_xid(9, 31, "");
	take_after(1);
	assert_int_equal(events_n, 1);
}

static void only_a_whole_word_names_a_process(_unused_ void **state)
{
	add_xid(1, 31, "tpid=5, vfpid=6");
	add_xid(2, 31, "tpid=5, pid=77, name=python");
	take_after(1);
	assert_int_equal(events_n, 2);
	assert_int_equal(events[0].pid, EVENT_NO_NUMBER);
	assert_int_equal(events[1].pid, 77);
}

/* With the driver's words, once, whatever comes behind it. */
static void an_xid_waits_for_the_kernel_log(_unused_ void **state)
{
	snapshot.sources[SOURCE_KMSG].in_use = snapshot.sources[SOURCE_KMSG].fresh = true;
	add_xid(1, 31, "");
	xids[0].sources = 1u << SOURCE_NVML;
	add_xid(2, 79, "pid=77");
	take_after(0);
	assert_int_equal(events_n, 0);
	PUT_TEXT(xids[0].text, "pid=77, name=python");
	xids[0].sources |= 1u << SOURCE_KMSG;
	assert_int_equal(take_after(0), 0);
	assert_int_equal(events_n, 2);
	assert_int_equal(events[0].pid, 77);
	take_after(1);
	assert_int_equal(events_n, 0);
	/* The log does not have it. */
	add_xid(3, 31, "");
	xids[2].sources = 1u << SOURCE_NVML;
	take_after(0);
	assert_int_equal(events_n, 0);
	take_after(1);
	assert_int_equal(events_n, 1);
	/* No snapshot comes after this. */
	add_xid(4, 31, "");
	xids[3].sources = 1u << SOURCE_NVML;
	ends = true;
	take_after(0);
	assert_int_equal(events_n, 1);
}

static void no_xid_waits_for_a_kernel_log_that_is_not_read(_unused_ void **state)
{
	snapshot.sources[SOURCE_KMSG].in_use = true;
	add_xid(1, 31, "");
	xids[0].sources = 1u << SOURCE_NVML;
	take_after(0);
	assert_int_equal(events_n, 1);
}

static void gpus_go_and_come(_unused_ void **state)
{
	take_after(1);
	gpus[1].present = false;
	gpus[1].id.lost = true;
	/* A driver that says nothing has no news. */
	snapshot.fresh = false;
	take_after(1);
	assert_int_equal(events_n, 0);
	snapshot.fresh = true;
	take_after(1);
	assert_int_equal(events_n, 1);
	assert_string_equal(events[0].name, "gpusonde.gpu.lost");
	assert_int_equal(events[0].severity, SEVERITY_CRITICAL);
	assert_string_equal(events[0].uuid, "GPU-1");
	assert_string_equal(events[0].pod, "given");
	gpus[1].present = true;
	take_after(1);
	assert_int_equal(events_n, 1);
	assert_string_equal(events[0].name, "gpusonde.gpu.back");
	assert_int_equal(events[0].severity, SEVERITY_INFO);
}

static void a_gpu_that_may_be_an_unidentified_one_is_not_said_to_be_removed(_unused_ void **state)
{
	take_after(1);
	gpus[1].present = false;
	take_after(1);
	assert_non_null(strstr(events[0].body, "the driver no longer lists it"));
	gpus[1].present = true;
	take_after(1);
	gpus[1].present = false;
	snapshot.gpus_unidentified = 1;
	take_after(1);
	assert_int_equal(events_n, 1);
	assert_non_null(strstr(events[0].body, "or the driver counts it and does not say which it is"));
	snapshot.gpus_unidentified = 0;
}

static void needs_action(double action)
{
	gpus[0].id.v[SLOT_RECOVERY_ACTION] = action;
	gpus[0].id.p[SLOT_RECOVERY_ACTION] = PRESENCE_PRESENT;
}

static void warnings_begin_and_end(_unused_ void **state)
{
	take_after(1);
	needs_action(1);
	take_after(1);
	assert_int_equal(events_n, 1);
	assert_string_equal(events[0].name, "gpusonde.gpu.warning.begin");
	assert_string_equal(events[0].warning, "recovery");
	assert_int_equal(events[0].severity, SEVERITY_CRITICAL);
	/* One that comes and goes is one. */
	for (int i = 0; i < 5; i++) {
		needs_action(i % 2);
		take_after(30);
		assert_int_equal(events_n, 0);
	}
	take_after(60);
	assert_int_equal(events_n, 1);
	assert_string_equal(events[0].name, "gpusonde.gpu.warning.end");
	assert_int_equal(events[0].real_ns, snapshot.real_ns - 90 * NSEC_PER_SEC);
	assert_non_null(strstr(events[0].body, "no more: the driver asks for this: reset the GPU"));
}

static void what_was_so_at_the_beginning_is_no_event(_unused_ void **state)
{
	needs_action(1);
	gpus[1].present = false;
	take_after(1);
	take_after(1);
	assert_int_equal(events_n, 0);
	needs_action(0);
	take_after(100);
	assert_int_equal(events_n, 1);
}

/* Its warnings are not known before it is read. */
static void what_was_so_at_a_first_stale_reading_is_no_event(_unused_ void **state)
{
	needs_action(1);
	gpus[0].stale = true;
	take_after(1);
	gpus[0].stale = false;
	take_after(1);
	assert_int_equal(events_n, 0);
}

static void findings_begin_and_end(_unused_ void **state)
{
	finding = (struct finding){ .id = 1, .pid = 77, .active = true, .begin_ns = 5, .end_ns = 6 };
	finding.values[finding.values_n++] = (struct finding_value){ "waits", UNIT_SECONDS, 1.5 };
	PUT_TEXT(finding.device, "GPU-1");
	findings.n = 1;
	findings.real_offset_ns = 7;
	trace.findings = &findings;
	snapshot.trace = &trace;
	take_after(1);
	assert_int_equal(events_n, 1);
	assert_string_equal(events[0].name, "gpusonde.finding.begin");
	assert_string_equal(events[0].finding, "copy_bound");
	assert_string_equal(events[0].body, "it waits. do not");
	assert_string_equal(events[0].uuid, "GPU-1");
	assert_string_equal(events[0].pod, "p");
	assert_int_equal(events[0].real_ns, 12);
	assert_string_equal(events[0].values[0].name, "waits_seconds");
	finding.begin_ns = 4;
	take_after(1);
	assert_int_equal(events_n, 0);
	finding.active = false;
	take_after(1);
	assert_int_equal(events_n, 1);
	assert_string_equal(events[0].name, "gpusonde.finding.end");
	assert_int_equal(events[0].real_ns, 13);
	take_after(1);
	assert_int_equal(events_n, 0);
	/* One that began and ended since. */
	finding.id = 2;
	take_after(1);
	assert_int_equal(events_n, 2);
	/* A snapshot that had no memory for them. */
	trace.findings = NULL;
	take_after(1);
	trace.findings = &findings;
	take_after(1);
	assert_int_equal(events_n, 0);
	snapshot.trace = NULL;
	take_after(1);
	assert_int_equal(events_n, 0);
}

/* Each has the place of the one before in the list. */
static void findings_that_no_snapshot_had_are_counted(_unused_ void **state)
{
	finding = (struct finding){ .id = 1, .active = true };
	findings.n = 1;
	trace.findings = &findings;
	snapshot.trace = &trace;
	assert_int_equal(take_after(1), 0);
	/* That 1 ended, and that 2 and 3 began and ended. */
	finding = (struct finding){ .id = 4 };
	assert_int_equal(take_after(1), 5);
	assert_int_equal(events_n, 2);
	finding = (struct finding){ .id = 5, .active = true };
	assert_int_equal(take_after(1), 0);
	/* An analysis that begins anew. */
	finding = (struct finding){ .id = 1, .active = true };
	assert_int_equal(take_after(1), 1);
	assert_int_equal(take_after(1), 0);
}

#define TEST(name_) cmocka_unit_test_setup_teardown(name_, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(xids_once_with_whose_they_are),
		TEST(xids_from_before_are_not_told_without_memory),
		TEST(only_a_whole_word_names_a_process),
		TEST(an_xid_waits_for_the_kernel_log),
		TEST(no_xid_waits_for_a_kernel_log_that_is_not_read),
		TEST(gpus_go_and_come),
		TEST(a_gpu_that_may_be_an_unidentified_one_is_not_said_to_be_removed),
		TEST(warnings_begin_and_end),
		TEST(what_was_so_at_the_beginning_is_no_event),
		TEST(what_was_so_at_a_first_stale_reading_is_no_event),
		TEST(findings_begin_and_end),
		TEST(findings_that_no_snapshot_had_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
