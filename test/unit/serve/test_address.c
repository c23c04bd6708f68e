// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "serve/address.h"

static char folder[] = "/tmp/gpusonde-test-XXXXXX";
static char path[64];

static int setup(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/socket", folder);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	return rmdir(folder);
}

static void show(const struct address *a, char *buf, size_t n)
{
	char host[INET6_ADDRSTRLEN];

	if (a->sa.sa_family == AF_INET)
		snprintf(buf, n, "%s:%u", inet_ntop(AF_INET, &a->in.sin_addr, host, sizeof(host)),
			 ntohs(a->in.sin_port));
	else
		snprintf(buf, n, "[%s%%%u]:%u", inet_ntop(AF_INET6, &a->in6.sin6_addr, host, sizeof(host)),
			 a->in6.sin6_scope_id, ntohs(a->in6.sin6_port));
}

static void test_parse(void **state)
{
	static const struct {
		const char *text, *first, *second;
		bool loopback;
	} cases[] = {
		{ "127.0.0.1:9470", "127.0.0.1:9470", NULL, true },
		{ "127.8.8.8:1", "127.8.8.8:1", NULL, true },
		{ "[::1]:9470", "[::1%0]:9470", NULL, true },
		{ "localhost:0", "127.0.0.1:0", "[::1%0]:0", true },
		{ ":9470", "[::%0]:9470", NULL, false },
		{ "*:65535", "[::%0]:65535", NULL, false },
		{ "0.0.0.0:80", "0.0.0.0:80", NULL, false },
		{ "10.0.0.1:80", "10.0.0.1:80", NULL, false },
		{ "[2001:db8::7]:80", "[2001:db8::7%0]:80", NULL, false },
		{ "[fe80::1%lo]:80", "[fe80::1%1]:80", NULL, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct addresses a;
		char shown[96];

		if (address_parse(cases[i].text, &a) != 0)
			fail_msg("%s is refused", cases[i].text);
		show(&a.list[0], shown, sizeof(shown));
		assert_string_equal(shown, cases[i].first);
		assert_int_equal(a.n, cases[i].second ? 2 : 1);
		if (cases[i].second) {
			show(&a.list[1], shown, sizeof(shown));
			assert_string_equal(shown, cases[i].second);
		}
		assert_int_equal(address_is_loopback(cases[i].text), cases[i].loopback);
	}
}

static void test_refuse(void **state)
{
	static const char *const cases[] = {
		"",
		":",
		"9470",
		"127.0.0.1",
		"127.0.0.1:",
		"127.0.0.1:65536",
		"127.0.0.1:-1",
		"127.0.0.1:http",
		"127.1:80",
		"::1:80",
		"[::1]",
		"[::1:80",
		"::1]:80",
		"[]:80",
		"[127.0.0.1]:80",
		"[::1%nosuchlink]:80",
		"example.org:80",
		"127.0.0.1 :80",
		" 127.0.0.1:80",
		("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:80"),
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct addresses a = { .n = 77 };

		if (address_parse(cases[i], &a) != -EINVAL || a.n != 77)
			fail_msg("\"%s\" is taken for an address", cases[i]);
		assert_false(address_is_loopback(cases[i]));
	}
}

static void test_tcp_taken(void **state)
{
	_cleanup_close_ int first = -1, second = -1;
	struct addresses a;

	(void)state;
	assert_int_equal(address_parse("127.0.0.1:0", &a), 0);
	assert_int_equal(listen_tcp(&a.list[0], &first), 0);
	a.list[0].in.sin_port = htons((uint16_t)listen_port(first));
	assert_true(a.list[0].in.sin_port != 0);
	assert_int_equal(listen_tcp(&a.list[0], &second), -EADDRINUSE);
}

/* Both loopback addresses, where there is IPv6, under one port; what failed leaves nothing open. */
static void test_tcp_text(void **state)
{
	int fds[ADDRESS_MAX], more[ADDRESS_MAX];
	unsigned n = 0, port;
	char text[32];

	(void)state;
	assert_int_equal(listen_tcp_text("nonsense", fds, &n), -EINVAL);
	assert_int_equal(listen_tcp_text("localhost:0", fds, &n), 0);
	assert_true(n >= 1);
	port = listen_port(fds[0]);
	assert_true(port > 0);
	assert_int_equal(listen_port(fds[n - 1]), port);
	snprintf(text, sizeof(text), "localhost:%u", port);
	assert_int_equal(listen_tcp_text(text, more, &n), -EADDRINUSE);
	close(fds[0]);
	if (n > 1) {
		assert_int_equal(listen_tcp_text(text, more, &n), -EADDRINUSE);
		close(fds[1]);
	}
	assert_int_equal(listen_tcp_text(text, more, &n), 0);
	close_all(more, n);
	assert_int_equal(more[0], -1);
}

static void test_unix_mode_and_stale_file(void **state)
{
	int fd = -1;
	mode_t before = umask(077);
	struct stat st;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		/* The second time the file is there, and nobody behind it. */
		assert_int_equal(listen_unix(path, 0660, &fd), 0);
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(st.st_mode & 07777, 0660);
		assert_int_equal(listen_unix(path, 0660, &fd), -EADDRINUSE);
		close(fd);
	}
	umask(before);
	assert_int_equal(unlink(path), 0);
}

static void test_unix_refusals(void **state)
{
	char missing[96], beyond[200];
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "kept", 4), 4);
	close(fd);
	assert_int_equal(listen_unix(path, 0660, &fd), -EEXIST);
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(unlink(path), 0);
	snprintf(missing, sizeof(missing), "%s/no/socket", folder);
	assert_int_equal(listen_unix(missing, 0660, &fd), -ENOENT);
	memset(beyond, 'a', sizeof(beyond));
	beyond[sizeof(beyond) - 1] = '\0';
	assert_int_equal(listen_unix(beyond, 0660, &fd), -ENAMETOOLONG);
	assert_int_equal(listen_unix("", 0660, &fd), -EINVAL);
	assert_int_equal(listen_unix("@", 0660, &fd), -EINVAL);
}

static void test_abstract_name(void **state)
{
	struct sockaddr_un sun;
	char name[64];
	socklen_t len;
	int fd, second;

	(void)state;
	assert_int_equal(unix_address("@atopgpud_nvidia", &sun, &len), 0);
	/* As atop computes it: the family, a NUL, fifteen characters. */
	assert_int_equal(len, sizeof(sun.sun_family) + sizeof("atopgpud_nvidia"));
	assert_memory_equal(sun.sun_path, "\0atopgpud_nvidia", 16);
	snprintf(name, sizeof(name), "@gpusonde-test-%d", getpid());
	assert_int_equal(listen_unix(name, 0600, &fd), 0);
	assert_int_equal(listen_unix(name, 0600, &second), -EADDRINUSE);
	close(fd);
	assert_int_equal(listen_unix(name, 0600, &fd), 0);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_refuse),
		cmocka_unit_test(test_tcp_taken),
		cmocka_unit_test(test_tcp_text),
		cmocka_unit_test(test_unix_mode_and_stale_file),
		cmocka_unit_test(test_unix_refusals),
		cmocka_unit_test(test_abstract_name),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
