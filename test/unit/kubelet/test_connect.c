// SPDX-License-Identifier: Apache-2.0
#include "needs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "kubelet/connect.h"

static void finds_the_pods_api_beside_the_socket(void **state)
{
	char path[PATH_MAX];

	(void)state;
	assert_int_equal(pods_api_path("/var/lib/kubelet/pod-resources/kubelet.sock", 0, path, sizeof(path)),
			 0);
	assert_string_equal(path, "/var/lib/kubelet/pods-api/pods-api.sock");
	assert_int_equal(pods_api_path("/var/lib/kubelet/pod-resources/kubelet.sock", 1, path, sizeof(path)),
			 0);
	assert_string_equal(path, "/var/lib/kubelet/pods/kubelet.sock");
	assert_int_equal(pods_api_path("/var/lib/kubelet/pod-resources/kubelet.sock", 2, path, sizeof(path)),
			 -ENOENT);
	assert_int_equal(pods_api_path("kubelet.sock", 0, path, sizeof(path)), -ENOENT);
	assert_int_equal(pods_api_path("/kubelet.sock", 0, path, sizeof(path)), 0);
	assert_int_equal(pods_api_path("/var/lib/kubelet/pod-resources/kubelet.sock", 0, path, 8),
			 -ENAMETOOLONG);
}

static void says_why_it_cannot_connect(void **state)
{
	int root = open("/", O_PATH | O_DIRECTORY), fd = -7;

	(void)state;
	NEED_CALL(openat2);
	assert_int_equal(connect_below(root, "nowhere/kubelet.sock", &fd), -ENOENT);
	assert_int_equal(connect_below(root, "dev/null", &fd), -ECONNREFUSED);
	assert_int_equal(fd, -7);
	close(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_the_pods_api_beside_the_socket),
		cmocka_unit_test(says_why_it_cannot_connect),
	};

	return cmocka_run_group_tests_name("connect", tests, NULL, NULL);
}
