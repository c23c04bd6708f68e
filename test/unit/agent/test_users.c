// SPDX-License-Identifier: Apache-2.0
/* Names of users, as a program that stands for getent(1) says them; and what it says wrongly. */
#include "test.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/users.h"
#include "base/clock.h"

static const uint32_t numbers[] = { 0, 1000, 1001, 1002, 1003 };

static unsigned list(uint32_t *ret_uids, unsigned max, _unused_ void *userdata)
{
	assert_true(max >= ARRAY_SIZE(numbers));
	memcpy(ret_uids, numbers, sizeof(numbers));
	return ARRAY_SIZE(numbers);
}

/* A script in @path, which the caller removes. */
static void write_script(char *path, const char *text)
{
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, 0700), 0);
	close(fd);
}

static void ask(struct users *users, char *ret_body, size_t size)
{
	const int64_t end_ns = clock_mono_ns() + 60 * NSEC_PER_SEC;
	const struct http_request request = { .method = HTTP_GET };
	unsigned status;

	do {
		struct http_reply reply = { .status = 200 };

		strbuf_init(&reply.body, 0);
		assert_int_equal(users_page(users, &request, &reply), 0);
		snprintf(ret_body, size, "%s", reply.body.data);
		status = reply.status;
		strbuf_done(&reply.body);
	} while (status == 202 && clock_mono_ns() < end_ns);
	assert_int_equal(status, 200);
}

static void names_of(const char *script, char *ret_body, size_t size)
{
	char path[] = "/tmp/gpusonde-getent-XXXXXX";
	const struct users_config config = { .list = list, .program = path };
	struct users *users;

	write_script(path, script);
	assert_int_equal(users_new(&config, &users), 0);
	ask(users, ret_body, size);
	users_free(users);
	unlink(path);
}

#define NOBODY_HAS_A_NAME "{\"schema\":\"gpusonde/users/v1\",\"users\":{}}\n"

static void test_names(_unused_ void **state)
{
	char body[512];

	names_of("#!/bin/sh\n[ \"$*\" = 'passwd 0 1000 1001 1002 1003' ] || exit 1\n"
		 "echo root:x:0:0:root:/root:/bin/sh; echo alice:x:1000:1000::/:; exit 2\n",
		 body, sizeof(body));
	assert_string_equal(body, "{\"schema\":\"gpusonde/users/v1\","
				  "\"users\":{\"0\":\"root\",\"1000\":\"alice\"}}\n");
}

/* Numbers that nobody asked for, no numbers, names that JSON or a terminal would obey, no end. */
static void test_what_is_wrong_is_left_out(_unused_ void **state)
{
	char body[512];

	names_of("#!/bin/sh\necho eve:x:7:; echo a; echo b:x; echo c:x:1000; echo d:x:one:; echo :x:1001:\n"
		 "echo 'q\"uote:x:1002:'; printf 'e\\033[2J:x:1003:\\n'; echo ok:x:0:\n",
		 body, sizeof(body));
	assert_string_equal(body, "{\"schema\":\"gpusonde/users/v1\",\"users\":{\"0\":\"ok\"}}\n");
}

static void test_one_that_prints_without_end(_unused_ void **state)
{
	char body[512];

	names_of("#!/bin/sh\nwhile :; do echo xxxxxxxxxxxxxxxxxxxxxxxx; done\n", body, sizeof(body));
	assert_string_equal(body, NOBODY_HAS_A_NAME);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_what_is_wrong_is_left_out),
		cmocka_unit_test(test_one_that_prints_without_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
