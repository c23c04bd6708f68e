// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include "base/address.h"
#include "base/macro.h"

static void takes_addresses_of_pods(void **state)
{
	static const char *const taken[] = { "10.0.0.1",        "127.0.0.1",     "192.168.49.2",
					     "100.100.100.201", "fd00:ec2::253", "2002:a00:1::1",
					     "fd00::1",         "::1",           "::ffff:10.0.0.1" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(taken); i++)
		if (!address_is_pods(taken[i]))
			fail_msg("%s", taken[i]);
}

static void takes_no_others(void **state)
{
	static const char *const refused[] = {
		"",
		"169.254.169.254",
		"::ffff:169.254.169.254",
		"fe80::1",
		"fe80::1%eth0",
		"::169.254.169.254",
		"64:ff9b::169.254.169.254",
		"2002:a9fe:a9fe::1",
		"fd00:ec2::254",
		"fd20:ce::254",
		"fd00:c1::a9fe:a9fe",
		"100.100.100.200",
		"::ffff:168.63.129.16",
		"192.0.0.192",
		"0.0.0.0",
		"::",
		"224.0.0.1",
		"255.255.255.255",
		"ff02::1",
		"localhost",
		"http://10.0.0.1:80/x",
		"file:///etc/passwd",
		"[fd00::1]",
		"10.0.0.1:9400",
		"10.1",
		"0x0a000001",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
		if (address_is_pods(refused[i]))
			fail_msg("%s", refused[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_addresses_of_pods),
		cmocka_unit_test(takes_no_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
