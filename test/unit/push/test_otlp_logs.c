// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/macro.h"
#include "base/row_list.h"
#include "model/event.h"
#include "push/otlp.pb-c.h"
#include "push/otlp_logs.h"
#include "push/unzipped.h"

static void *state_of_kind;
static struct batches batches;
static struct event events[PUSH_EVENTS_MAX];
static Otlp__ExportLogsServiceRequest *request;

static int begin(_unused_ void **state)
{
	static struct push_settings settings = { .samples_max = 500,
						 .labels = "service.name=gpusonde\nrack=7\n" };

	memset(events, 0, sizeof(events));
	for (size_t i = 0; i < ARRAY_SIZE(events); i++) {
#define EVENT_NUMBER(member_, attribute_) events[i].member_ = EVENT_NO_NUMBER;
#include "model/events.def"
	}
	return otlp_logs_kind.begin(&settings, &state_of_kind);
}

static int end(_unused_ void **state)
{
	batches_done(&batches);
	otlp_logs_kind.end(state_of_kind);
	if (request)
		otlp__export_logs_service_request__free_unpacked(request, NULL);
	request = NULL;
	return 0;
}

static int make(size_t bytes)
{
	batches_done(&batches);
	return otlp_logs_kind.make(state_of_kind, events, bytes, &batches);
}

/* Of the batch @at. */
static const Otlp__ScopeLogs *sent(size_t at)
{
	static uint8_t body[4 << 20];
	size_t n = unzipped(&batches.list[at], body, sizeof(body));

	if (request)
		otlp__export_logs_service_request__free_unpacked(request, NULL);
	request = otlp__export_logs_service_request__unpack(NULL, n, body);
	assert_non_null(request);
	return request->resource_logs[0]->scope_logs[0];
}

static void what_applies_is_there(_unused_ void **state)
{
	const Otlp__LogRecord *log;

	PUT_TEXT(events[0].name, "gpusonde.xid");
	PUT_TEXT(events[0].body, "words");
	PUT_TEXT(events[0].uuid, "GPU-1");
	events[0].severity = SEVERITY_CRITICAL;
	events[0].xid = 79;
	events[0].pid = 0;
	events[0].real_ns = 5;
	events[0].observed_real_ns = 6;
	events[0].values_n = 1;
	events[0].values[0].value = 1.5;
	PUT_TEXT(events[0].values[0].name, "waits_seconds");
	assert_int_equal(make(sizeof(events[0])), 0);
	assert_int_equal(batches.n, 1);
	assert_int_equal(batches.list[0].samples, 1);
	assert_int_equal(sent(0)->n_log_records, 1);
	assert_string_equal(request->resource_logs[0]->resource->attributes[1]->key, "rack");
	log = sent(0)->log_records[0];
	assert_string_equal(log->event_name, "gpusonde.xid");
	assert_string_equal(log->body->string_value, "words");
	assert_int_equal(log->severity_number, 18);
	assert_string_equal(log->severity_text, "CRITICAL");
	assert_int_equal(log->time_unix_nano, 5);
	assert_int_equal(log->observed_time_unix_nano, 6);
	assert_int_equal(log->n_attributes, 4);
	assert_string_equal(log->attributes[0]->key, "hw.id");
	assert_string_equal(log->attributes[0]->value->string_value, "GPU-1");
	assert_int_equal(log->attributes[1]->value->int_value, 79);
	assert_string_equal(log->attributes[2]->key, "process.pid");
	assert_int_equal(log->attributes[2]->value->int_value, 0);
	assert_float_equal(log->attributes[3]->value->double_value, 1.5, 0);
}

static void many_are_several_requests(_unused_ void **state)
{
	assert_int_equal(make(sizeof(events)), 0);
	assert_int_equal(batches.n, 3);
	assert_int_equal(sent(1)->n_log_records, 500);
	assert_int_equal(sent(2)->n_log_records, PUSH_EVENTS_MAX - 1000);
}

/* The process that hands them over may be taken over. */
static void hostile_events(_unused_ void **state)
{
	memset(&events[0], 0xff, sizeof(events[0]));
	assert_int_equal(make(sizeof(events[0])), 0);
	assert_int_equal(sent(0)->n_log_records, 1);
	assert_int_equal(make(0), -EBADMSG);
	assert_int_equal(make(sizeof(events[0]) - 1), -EBADMSG);
	assert_int_equal(otlp_logs_kind.make(state_of_kind, events, (PUSH_EVENTS_MAX + 1) * sizeof(events[0]),
					     &batches),
			 -EBADMSG);
}

#define TEST(name_) cmocka_unit_test_setup_teardown(name_, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_applies_is_there),
		TEST(many_are_several_requests),
		TEST(hostile_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
