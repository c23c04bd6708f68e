// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <string.h>

#include "base/macro.h"
#include "config/exporter.h"

static void urls_of_exporters(void **state)
{
	static const struct {
		const char *host, *url;
	} rows[] = {
		{ "localhost", "http://localhost:9400/metrics" },
		{ "10.0.0.7", "http://10.0.0.7:9400/metrics" },
		{ "dcgm-exporter.gpu.svc", "http://dcgm-exporter.gpu.svc:9400/metrics" },
		{ "fd00::7", "http://[fd00::7]:9400/metrics" },
		{ "[fd00::7]", "http://[fd00::7]:9400/metrics" },
		{ "fe80::1%eth0", "http://[fe80::1%eth0]:9400/metrics" },
		{ "http://h", "http://h:9400/metrics" },
		{ "https://h:443", "https://h:443/metrics" },
		{ "HTTP://h/", "http://h:9400/" },
		{ "http://[::1]:80/x/y?z=1", "http://[::1]:80/x/y?z=1" },
	};
	char url[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(exporter_url(rows[i].host, 9400, "/metrics", url, sizeof(url)), 0);
		assert_string_equal(url, rows[i].url);
	}
	assert_int_equal(exporter_url("localhost", 9400, "/metrics", url, 10), -ENAMETOOLONG);
}

static void what_is_no_exporter(void **state)
{
	static const char *const hosts[] = { "",
					     " ",
					     "a b",
					     "user@host",
					     "http://user:pass@host/",
					     "ftp://host",
					     "host:9400",
					     "host/path",
					     "http://",
					     "http://host:0",
					     "http://host:65536",
					     "http://host:",
					     "http://host/#x",
					     "http://host/\xc3\xa4",
					     "[fd00::7",
					     "[host]",
					     "fd00::7::8",
					     "fe80::1%",
					     "fe80::1%a/b",
					     "http://host\r\nX: y" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(hosts); i++)
		if (exporter_is_valid(hosts[i]))
			fail_msg("\"%s\" is taken", hosts[i]);
}

static void paths(void **state)
{
	char longer[1000] = "/";

	(void)state;
	assert_true(exporter_path_is_valid("/"));
	assert_true(exporter_path_is_valid("/metrics?names=4.9&x=%20"));
	assert_false(exporter_path_is_valid(""));
	assert_false(exporter_path_is_valid("metrics"));
	assert_false(exporter_path_is_valid("/a b"));
	assert_false(exporter_path_is_valid("/a#b"));
	memset(longer + 1, 'a', sizeof(longer) - 2);
	assert_false(exporter_path_is_valid(longer));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(urls_of_exporters),
		cmocka_unit_test(what_is_no_exporter),
		cmocka_unit_test(paths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
