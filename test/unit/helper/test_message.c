// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "config.h"
#include "helper/message.h"

static int pair[2];

static int set_up(_unused_ void **state)
{
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair);
}

static int tear_down(_unused_ void **state)
{
	return close(pair[0]) | close(pair[1]);
}

/* The lowest descriptor that is free. */
static int next_descriptor(void)
{
	int fd = dup(pair[0]);

	close(fd);
	return fd;
}

static void a_descriptor_comes_along(_unused_ void **state)
{
	char text[8] = "";
	int fd = -1;

	assert_int_equal(send_with_fd(pair[0], "ab", 3, STDERR_FILENO), 0);
	assert_int_equal(receive_with_fd(pair[1], text, sizeof(text), &fd), 3);
	assert_string_equal(text, "ab");
	assert_true(fd > STDERR_FILENO);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
	assert_int_equal(send_with_fd(pair[0], "ab", 3, -1), 0);
	assert_int_equal(receive_with_fd(pair[1], text, sizeof(text), &fd), 3);
	assert_int_equal(fd, -1);
}

static void send_many(size_t n)
{
	union {
		char space[CMSG_SPACE(8 * sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec iov = { (char[]){ "x" }, 1 };
	struct msghdr message = { .msg_iov = &iov,
				  .msg_iovlen = 1,
				  .msg_control = control.space,
				  .msg_controllen = CMSG_SPACE(n * sizeof(int)) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&message);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(n * sizeof(int));
	for (size_t i = 0; i < n; i++)
		memcpy(CMSG_DATA(c) + i * sizeof(int), &pair[0], sizeof(int));
	assert_int_equal(sendmsg(pair[0], &message, MSG_NOSIGNAL), 1);
}

static void more_descriptors_than_one_are_closed(_unused_ void **state)
{
	int before = next_descriptor();

	for (size_t n = 1; n <= 8; n++) {
		char text;
		int fd = -1;

		send_many(n);
		assert_int_equal(receive_with_fd(pair[1], &text, 1, &fd), 1);
		assert_int_equal(fd, before);
		close(fd);
		assert_int_equal(next_descriptor(), before);
	}
}

static void what_is_too_long_brings_nothing(_unused_ void **state)
{
	int before = next_descriptor(), fd = -1;
	char text[2];

	assert_int_equal(send_with_fd(pair[0], "abc", 3, STDERR_FILENO), 0);
	assert_int_equal(receive_with_fd(pair[1], text, sizeof(text), &fd), -EMSGSIZE);
	assert_int_equal(next_descriptor(), before);
}

struct question {
	char version[QUESTION_VERSION_BYTES];
	int asked;
};

static int question_of(const char *version, size_t n)
{
	struct question question = { .asked = 7 }, got = { 0 };
	int fd = -1, r;

	memcpy(question.version, version, strlen(version));
	assert_int_equal(send_with_fd(pair[0], &question, n, STDERR_FILENO), 0);
	r = receive_question(pair[1], &got, sizeof(got), &fd);
	if (r == 0)
		assert_int_equal(got.asked, 7);
	assert_true((fd >= 0) == (r == 0));
	return fd >= 0 ? close(fd) : r;
}

static void questions_are_of_our_version_and_whole(_unused_ void **state)
{
	int before = next_descriptor();

	assert_int_equal(question_of(GPUSONDE_VERSION, sizeof(struct question)), 0);
	assert_int_equal(question_of(GPUSONDE_VERSION "x", sizeof(struct question)), -EPROTONOSUPPORT);
	assert_int_equal(question_of(GPUSONDE_VERSION, sizeof(struct question) - 1), -EPROTONOSUPPORT);
	assert_int_equal(next_descriptor(), before);
}

static void no_question_comes_when_the_other_end_is_closed(_unused_ void **state)
{
	struct question got;

	close(pair[0]);
	assert_int_equal(receive_question(pair[1], &got, sizeof(got), NULL), 1);
	pair[0] = dup(pair[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_descriptor_comes_along, set_up, tear_down),
		cmocka_unit_test_setup_teardown(more_descriptors_than_one_are_closed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_too_long_brings_nothing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(questions_are_of_our_version_and_whole, set_up, tear_down),
		cmocka_unit_test_setup_teardown(no_question_comes_when_the_other_end_is_closed, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
