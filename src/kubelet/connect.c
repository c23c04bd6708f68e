// SPDX-License-Identifier: Apache-2.0
#include "kubelet/connect.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/macro.h"

/* The path may be longer than an address may be, and must stay below the root: so it is opened first. */
static int connect_to(int root, const char *path)
{
	_cleanup_close_ int file = fd_open_below(root, path, O_PATH), fd = -1;
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	if (file < 0)
		return file;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d", file);
	/* Of a UNIX socket this does not wait: where the queue is full it fails with EAGAIN. */
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	return TAKE_FD(fd);
}

int connect_below(int root, const char *path, int *ret_fd)
{
	int fd = connect_to(root, path);

	/* Files alone are looked at as root; what this thread may do otherwise stays. */
	if (fd == -EACCES && geteuid() != 0) {
		setfsuid(0);
		fd = connect_to(root, path);
		setfsuid(geteuid());
	}
	if (fd < 0)
		return fd;
	*ret_fd = fd;
	return 0;
}

/* ROOT/pod-resources/kubelet.sock, beside which are the others. */
int pods_api_path(const char *socket, unsigned which, char *ret_path, size_t size)
{
	static const char *const places[] = { "pods-api/pods-api.sock", "pods/kubelet.sock" };
	const char *end = strrchr(socket, '/');
	int n;

	if (which >= ARRAY_SIZE(places) || !end)
		return -ENOENT;
	while (end > socket && end[-1] != '/')
		end--;
	n = snprintf(ret_path, size, "%.*s%s", (int)(end - socket), socket, places[which]);
	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}
