// SPDX-License-Identifier: Apache-2.0
#include "helper/message.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"

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
			memcpy(&fd, CMSG_DATA(c), sizeof(int));
	if (message.msg_flags & MSG_TRUNC) {
		closep(&fd);
		return -EMSGSIZE;
	}
	*ret_fd = fd;
	return got;
}
