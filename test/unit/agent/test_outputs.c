// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "agent/outputs/outputs.h"
#include "base/macro.h"

static struct agent *agent;
static struct options options;

static void begin_with(const char *yaml)
{
	struct strbuf errors;

	strbuf_init(&errors, 0);
	assert_int_equal(options_init(&options), 0);
	assert_int_equal(options_from_yaml(&options, "t.yaml", yaml, strlen(yaml), &errors), 0);
	assert_string_equal(errors.data, "");
	strbuf_done(&errors);
	agent = calloc(1, sizeof(*agent));
	assert_non_null(agent);
	assert_int_equal(outputs_begin(agent, &options), 0);
}

static int end(_unused_ void **state)
{
	outputs_end(agent);
	free(TAKE_PTR(agent));
	options_done(&options);
	return 0;
}

static void what_is_not_configured_is_off(_unused_ void **state)
{
	begin_with("");
	for (unsigned k = 0; k < PUSH_KINDS; k++) {
		assert_null(agent->push[k]);
		assert_string_equal(agent->push_state[k], "off");
	}
	assert_string_equal(agent->textfile_state, "off");
	assert_string_equal(agent->statsd_state, "off");
	/* There is nothing to ask. */
	outputs_tell(agent);
	assert_string_equal(agent->statsd_state, "off");
}

static void what_is_wrong_is_said_and_keeps_nothing_else_back(_unused_ void **state)
{
	begin_with("remote_write: {url: 'ftp://a'}\n"
		   "otlp: {endpoint: 'http://a', headers: 'Content-Type='}\n"
		   "textfile: {path: relative}\n"
		   "statsd: {address: nowhere}\n");
	assert_non_null(strstr(agent->push_state[PUSH_REMOTE_WRITE], "remote_write.url must begin with"));
	assert_non_null(strstr(agent->push_state[PUSH_OTLP], "otlp.headers must be NAME=VALUE"));
	assert_string_equal(agent->push_state[PUSH_OTLP_LOGS], "off");
	assert_non_null(strstr(agent->textfile_state, "textfile.path is neither"));
	assert_non_null(strstr(agent->statsd_state, "statsd.address is neither"));
	assert_null(agent->push[PUSH_OTLP]);
}

static void how_statsd_is_stays_true(_unused_ void **state)
{
	begin_with("statsd: {address: '127.0.0.1:8125'}\n");
	assert_non_null(agent->statsd);
	assert_string_equal(agent->statsd_state, "");
	strcpy(agent->statsd_state, "of before");
	outputs_tell(agent);
	assert_string_equal(agent->statsd_state, "");
}

#define TEST(name_) cmocka_unit_test_teardown(name_, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_not_configured_is_off),
		TEST(what_is_wrong_is_said_and_keeps_nothing_else_back),
		TEST(how_statsd_is_stays_true),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
