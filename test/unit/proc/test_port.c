// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "proc/port.h"
#include "serve/address.h"

static void assert_us(const char *who)
{
	char pid[32];

	snprintf(pid, sizeof(pid), "(PID %d)", (int)getpid());
	if (!strstr(who, pid))
		fail_msg("%s is not %s", who, pid);
}

static void names_who_listens(_unused_ void **state)
{
	static const char *const texts[] = { "127.0.0.1:0", "[::1]:0" };
	char who[128];

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		_cleanup_close_ int fd = -1;
		struct addresses addresses;

		assert_int_equal(address_parse(texts[i], &addresses), 0);
		if (listen_tcp(&addresses.list[0], &fd) < 0)
			continue; /* a machine without IPv6 */
		port_owner((uint16_t)listen_port(fd), who, sizeof(who));
		assert_us(who);
	}
}

static void names_who_has_an_abstract_socket(_unused_ void **state)
{
	_cleanup_close_ int fd = -1;
	char name[64], path[80], who[128];

	snprintf(name, sizeof(name), "gpusonde-test-port-%d", (int)getpid());
	snprintf(path, sizeof(path), "@%s", name);
	assert_int_equal(listen_unix(path, 0, &fd), 0);
	abstract_owner(name, who, sizeof(who));
	assert_us(who);
	abstract_owner("gpusonde-test-nobody-has-this", who, sizeof(who));
	assert_string_equal(who, "another program");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_who_listens),
		cmocka_unit_test(names_who_has_an_abstract_socket),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
