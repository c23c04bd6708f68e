// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/outputs/statsd.h"
#include "base/fd.h"
#include "base/macro.h"
#include "model/publisher.h"

static struct options options;
static struct model *model;
static struct publisher *publisher;
static struct statsd *statsd;
static char folder[] = "/tmp/gpusonde-test-statsd-XXXXXX", path[64];

static int begin_all(_unused_ void **state)
{
	return mkdtemp(folder) && snprintf(path, sizeof(path), "%s/socket", folder) > 0 ? 0 : -1;
}

static int end_all(_unused_ void **state)
{
	unlink(path);
	return rmdir(folder);
}

static int begin(_unused_ void **state)
{
	if (options_init(&options) < 0 || publisher_new(&publisher) < 0)
		return -1;
	return model_new(&(struct model_limits){ 16, 16, 16, 16 }, &model);
}

static int end(_unused_ void **state)
{
	statsd_free(statsd);
	statsd = NULL;
	model_free(model);
	publisher_free(publisher);
	options_done(&options);
	return 0;
}

static int open_with(const char *address, const char *families)
{
	char errors[400] = "";
	struct strbuf text;
	int r;

	options_done(&options);
	assert_int_equal(options_init(&options), 0);
	strbuf_init(&text, 0);
	options_set(&options, &option_table[OPT_statsd_address], address, ORIGIN_FLAG, "test", &text);
	if (families)
		options_set(&options, &option_table[OPT_statsd_families], families, ORIGIN_FLAG, "test",
			    &text);
	snprintf(errors, sizeof(errors), "%s", text.len ? text.data : "");
	strbuf_done(&text);
	assert_string_equal(errors, "");
	statsd_free(statsd);
	statsd = NULL;
	r = statsd_new(&options, &statsd);
	return r;
}

static void addresses(_unused_ void **state)
{
	static const char *const good[] = { "127.0.0.1:8125", "[::1]:8125", "/run/dsd", "unix:///run/dsd" };
	static const char *const bad[] = { "localhost:8125", "127.0.0.1", "127.0.0.1:0", "127.0.0.1:65536",
					   "127.0.0.1:+5",   "[::1]",     "::1:8125",    "[::1:8125",
					   "127.0.0.1: 5",   ":8125",     "dsd.socket" };
	char longest[150];

	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		if (open_with(good[i], NULL) != 0 || !statsd)
			fail_msg("%s", good[i]);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (open_with(bad[i], NULL) != -EINVAL)
			fail_msg("%s", bad[i]);
	memset(longest, 'x', sizeof(longest));
	longest[0] = '/';
	longest[sizeof(longest) - 1] = '\0';
	assert_int_equal(open_with(longest, NULL), -EINVAL);
}

/* The agent's figure after a round of a new snapshot. */
static double figure_after_round(enum agent_metric metric)
{
	struct snapshot *snapshot;
	double value;

	assert_int_equal(model_publish(model, publisher), 0);
	snapshot = publisher_get(publisher);
	snapshot->fresh = true; /* there are no GPUs here */
	statsd_tick(statsd, snapshot, model);
	snapshot_unref(snapshot);
	assert_int_equal(model_publish(model, publisher), 0);
	snapshot = publisher_get(publisher);
	value = presence_is(snapshot->agent_p[metric]) ? snapshot->agent[metric] : -1;
	snapshot_unref(snapshot);
	return value;
}

static void nobody_is_there(_unused_ void **state)
{
	assert_int_equal(open_with(path, "gpusonde_up"), 0);
	assert_true(figure_after_round(AGENT_STATSD_UP) == 0);
	assert_non_null(strstr(statsd_error(statsd), "no such socket"));
}

static void datagrams_arrive(_unused_ void **state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	_cleanup_close_ int receiver = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	char text[8192];
	ssize_t n;

	strcpy(address.sun_path, path);
	assert_int_equal(bind(receiver, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(open_with(path, "gpusonde_up"), 0);
	assert_true(figure_after_round(AGENT_STATSD_UP) == 1);
	assert_string_equal(statsd_error(statsd), "");
	n = recv(receiver, text, sizeof(text) - 1, 0);
	assert_true(n > 0);
	text[n] = '\0';
	assert_non_null(strstr(text, "gpusonde.up:"));
	/* Another snapshot, before the interval is over. */
	figure_after_round(AGENT_STATSD_UP);
	assert_int_equal(recv(receiver, text, sizeof(text), 0), -1);
}

#define TEST(name_) cmocka_unit_test_setup_teardown(name_, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(addresses),
		TEST(nobody_is_there),
		TEST(datagrams_arrive),
	};

	return cmocka_run_group_tests(tests, begin_all, end_all);
}
