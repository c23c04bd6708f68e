// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "serve/host.h"

/* A socket that is bound to this IPv4 address of the machine; which of 127/8 it is does not matter. */
static int bound_to(in_addr_t address)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(address) };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	return fd;
}

static void what_rebinding_cannot_forge_is_allowed(_unused_ void **state)
{
	static const char *const hosts[] = { "127.0.0.1", "127.0.0.1:9470", "10.1.2.3:80",    "[::1]:9470",
					     "[fe80::1]", "localhost",      "LocalHost:9470", "localhost." };
	_cleanup_close_ int fd = bound_to(INADDR_LOOPBACK);
	char own[256];

	for (size_t i = 0; i < ARRAY_SIZE(hosts); i++)
		assert_true(host_is_allowed(hosts[i], "", fd));
	assert_int_equal(gethostname(own, sizeof(own)), 0);
	assert_true(host_is_allowed(own, "", fd));
}

static void other_names_are_refused_on_loopback(_unused_ void **state)
{
	static const char *const hosts[] = { "evil.example",
					     "evil.example:9470",
					     "localhost.evil.example",
					     "127.0.0.1.evil.example",
					     "",
					     ":9470",
					     "[",
					     "[]",
					     "1270.0.0.1" };
	_cleanup_close_ int fd = bound_to(INADDR_LOOPBACK);
	_cleanup_close_ int second = bound_to(INADDR_LOOPBACK + 1);
	char longest[600];

	for (size_t i = 0; i < ARRAY_SIZE(hosts); i++) {
		assert_false(host_is_allowed(hosts[i], "", fd));
		assert_false(host_is_allowed(hosts[i], "", second));
	}
	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	assert_false(host_is_allowed(longest, longest, fd));
}

static void listed_names_are_allowed(_unused_ void **state)
{
	_cleanup_close_ int fd = bound_to(INADDR_LOOPBACK);

	assert_true(host_is_allowed("node1.example:9470", "node1.example", fd));
	assert_true(host_is_allowed("NODE2.example", "node1.example, node2.example", fd));
	assert_false(host_is_allowed("node1.example.evil", "node1.example", fd));
	assert_false(host_is_allowed("node1", "node1.example", fd));
}

/* Beyond loopback every name is allowed, since a scraper may use any; with a list, only those in it. */
static void beyond_loopback_a_list_decides(_unused_ void **state)
{
	_cleanup_close_ int fd = bound_to(INADDR_ANY);

	assert_true(host_is_allowed("gpusonde.monitoring.svc", "", fd));
	assert_false(host_is_allowed("gpusonde.monitoring.svc", "node1.example", fd));
	assert_true(host_is_allowed("192.0.2.1", "node1.example", fd));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_rebinding_cannot_forge_is_allowed),
		cmocka_unit_test(other_names_are_refused_on_loopback),
		cmocka_unit_test(listed_names_are_allowed),
		cmocka_unit_test(beyond_loopback_a_list_decides),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
