// SPDX-License-Identifier: Apache-2.0
/* Arguments of timelines and reports, as any client that may open the page could write them. */
#include "test.h"

#include <string.h>

#include "base/clock.h"
#include "base/macro.h"
#include "web/file_arguments.h"
#include "web/routes.h"

#include "arguments.h"

/* Status of the reply: 200, or 400 with the name of the argument that is wrong. */
static unsigned ask(const struct http_manner *manner, const struct argument *arguments, const char *wrong,
		    struct http_request *ret_request)
{
	struct http_request request = { .argument = argument_of, .priv = (void *)arguments };
	struct http_reply reply = { .status = 200 };

	strbuf_init(&reply.body, 0);
	if (manner->numbers(&request, request.numbers, &reply))
		manner->text(&request, request.text, &reply);
	if (wrong)
		assert_non_null(strstr(reply.body.data, wrong));
	strbuf_done(&reply.body);
	*ret_request = request;
	return reply.status;
}

#define LIST(...) ((const struct argument[]){ __VA_ARGS__, { NULL, NULL } })
#define ARG(name_, value_)    \
	{                     \
		name_, value_ \
	}

static void test_a_timeline(_unused_ void **state)
{
	struct http_request r;

	assert_int_equal(ask(&timeline_manner, LIST(ARG("file", "timeline-1.pftrace")), NULL, &r), 200);
	assert_string_equal(r.text, "timeline-1.pftrace");
	assert_int_equal(r.numbers[TIMELINE_AT], -1);
	assert_int_equal(ask(&timeline_manner, LIST(ARG("file", "a"), ARG("at", "1048576")), NULL, &r), 200);
	assert_int_equal(r.numbers[TIMELINE_AT], 1048576);
	assert_int_equal(ask(&timeline_manner, LIST(ARG("at", "0")), "file=", &r), 400);
	assert_int_equal(ask(&timeline_manner, LIST(ARG("file", "../a")), "file=", &r), 400);
	assert_int_equal(ask(&timeline_manner, LIST(ARG("file", "a\nb")), "file=", &r), 400);
	assert_int_equal(ask(&timeline_manner, LIST(ARG("file", "a"), ARG("at", "-1")), "at=", &r), 400);
	assert_int_equal(ask(&timeline_manner, LIST(ARG("file", "a"), ARG("at", "9223372036854775808")),
			     "at=", &r),
			 400);
}

static void test_a_report(_unused_ void **state)
{
	struct http_request r;

	assert_int_equal(ask(&report_manner, LIST(ARG("nothing", "")), NULL, &r), 200);
	assert_int_equal(r.numbers[REPORT_WHO], REPORT_ALL);
	assert_int_equal(r.numbers[REPORT_FORMAT], REPORT_HTML);
	assert_int_equal(r.numbers[REPORT_SINCE], -24 * 3600 * NSEC_PER_SEC);
	assert_int_equal(r.numbers[REPORT_UNTIL], 0);
	assert_string_equal(r.text, "");
	assert_int_equal(ask(&report_manner,
			     LIST(ARG("job", "4711"), ARG("format", "json"), ARG("since", "1h"),
				  ARG("until", "2026-01-31T00:00:00Z")),
			     NULL, &r),
			 200);
	assert_int_equal(r.numbers[REPORT_WHO], REPORT_JOB);
	assert_int_equal(r.numbers[REPORT_FORMAT], REPORT_JSON);
	assert_int_equal(r.numbers[REPORT_SINCE], -3600 * NSEC_PER_SEC);
	assert_int_equal(r.numbers[REPORT_UNTIL], 1769817600 * NSEC_PER_SEC);
	assert_string_equal(r.text, "4711");
	assert_int_equal(ask(&report_manner, LIST(ARG("format", "pdf")), "format=", &r), 400);
	assert_int_equal(ask(&report_manner, LIST(ARG("since", "soon")), "since=", &r), 400);
	assert_int_equal(ask(&report_manner, LIST(ARG("pod", "")), "pod=", &r), 400);
	assert_int_equal(ask(&report_manner, LIST(ARG("user", "a\x1b[2J")), "user=", &r), 400);
}

/* Its end is kept: names of Kubernetes have at most 253 bytes. */
static void test_long_texts(_unused_ void **state)
{
	char name[HTTP_TEXT_MAX + 1];
	struct http_request r;

	memset(name, 'x', sizeof(name));
	name[HTTP_TEXT_MAX] = '\0';
	assert_int_equal(ask(&report_manner, LIST(ARG("container", name)), "container=", &r), 400);
	name[HTTP_TEXT_MAX - 1] = '\0';
	assert_int_equal(ask(&report_manner, LIST(ARG("container", name)), NULL, &r), 200);
	assert_string_equal(r.text, name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_timeline),
		cmocka_unit_test(test_a_report),
		cmocka_unit_test(test_long_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
