// SPDX-License-Identifier: Apache-2.0
#include "helper/message.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/macro.h"
#include "config.h"

union control {
	char space[CMSG_SPACE(sizeof(int))];
	struct cmsghdr align;
};

int send_with_fd(int channel, const void *data, size_t n, int fd)
{
	union control control = { 0 };
	struct iovec iov = { (void *)data, n };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (fd >= 0) {
		message.msg_control = control.space;
		message.msg_controllen = sizeof(control.space);
		struct cmsghdr *c = CMSG_FIRSTHDR(&message);

		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(int));
	}
	return sendmsg(channel, &message, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* There is room for two where a descriptor is half a word, and the sender may be hostile. */
static void take_first(const struct cmsghdr *c, int *fd)
{
	size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

	for (size_t i = 0; i < n; i++) {
		int one;

		memcpy(&one, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
		if (*fd < 0)
			*fd = one;
		else
			close(one);
	}
}

ssize_t receive_with_fd(int channel, void *data, size_t n, int *ret_fd)
{
	union control control;
	struct iovec iov = { data, n };
	struct msghdr message = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.space,
		.msg_controllen = sizeof(control.space),
	};
	ssize_t got = recvmsg(channel, &message, MSG_CMSG_CLOEXEC);
	int fd = -1;

	if (got < 0)
		return -errno;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c))
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
			take_first(c, &fd);
	if (message.msg_flags & MSG_TRUNC) {
		closep(&fd);
		return -EMSGSIZE;
	}
	*ret_fd = fd;
	return got;
}

int receive_question(int channel, void *ret_question, size_t n, int *ret_fd)
{
	_cleanup_close_ int fd = -1;
	ssize_t got = receive_with_fd(channel, ret_question, n, &fd);

	if (got <= 0)
		return got < 0 ? (int)got : 1;
	if ((size_t)got != n || strncmp(ret_question, GPUSONDE_VERSION, QUESTION_VERSION_BYTES) != 0)
		return -EPROTONOSUPPORT;
	if (ret_fd)
		*ret_fd = TAKE_FD(fd);
	return 0;
}
