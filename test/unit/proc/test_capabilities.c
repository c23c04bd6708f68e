// SPDX-License-Identifier: Apache-2.0
#include "proc/capabilities.h"

#include "needs.h"

#include <sys/resource.h>
#include <sys/utsname.h>

/* What would be said of a filter or lockdown where the tests run. */
static bool is_free(void)
{
	char text[640];

	capability_refused(-EPERM, text, sizeof(text));
	return !strstr(text, "seccomp") && !strstr(text, "locked down");
}

/* The limit is finite nearly everywhere, and means something to old kernels only. */
static void a_limit_is_blamed_where_it_counts(void **state)
{
	const struct rlimit little = { .rlim_cur = 65536, .rlim_max = 65536 };
	struct utsname name;
	int major, minor;
	char text[640];
	bool old;

	(void)state;
	if (!is_free())
		need_unmet("a filter or lockdown is in force here");
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &little), 0);
	assert_int_equal(uname(&name), 0);
	assert_int_equal(sscanf(name.release, "%d.%d", &major, &minor), 2);
	old = major * 100 + minor < 511;
	capability_refused(-EPERM, text, sizeof(text));
	assert_int_equal(strstr(text, "RLIMIT_MEMLOCK") != NULL, old);
	assert_int_equal(strstr(text, "may forbid it; ") != NULL, !old);
	capability_refused_process(text, sizeof(text));
	assert_non_null(strstr(text, "may forbid it; "));
	assert_null(strstr(text, "RLIMIT_MEMLOCK"));
	capability_refused(-ENOSYS, text, sizeof(text));
	assert_null(strstr(text, "RLIMIT_MEMLOCK"));
	assert_non_null(strstr(text, "CONFIG_BPF_SYSCALL"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_limit_is_blamed_where_it_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
