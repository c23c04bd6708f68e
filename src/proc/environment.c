// SPDX-License-Identifier: Apache-2.0
#include "proc/environment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cursor.h"
#include "base/fd.h"

enum { READ_BYTES = 1 << 18 };

static int read_all(const char *root, uint32_t pid, char *buf, size_t size, size_t *ret_n)
{
	_cleanup_close_ int fd = -1;
	char path[80];
	size_t n = 0;

	snprintf(path, sizeof(path), "%s/%u/environ", root, pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (n < size) {
		ssize_t got = read(fd, buf + n, size - n);

		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		n += (size_t)got;
	}
	/* A process that has ended but has not been waited for has neither environment nor executable. */
	snprintf(path, sizeof(path), "%s/%u/exe", root, pid);
	if (n == 0 && readlink(path, (char[1]){ 0 }, 1) < 0)
		return -ESRCH;
	*ret_n = n;
	return 0;
}

int proc_environment(const char *root, uint32_t pid, char *buf, size_t size, size_t *ret_n)
{
	_cleanup_free_ char *text = malloc(READ_BYTES);
	struct cursor all, variable;
	size_t n = 0, used = 0;
	int r = text ? read_all(root, pid, text, READ_BYTES, &n) : -ENOMEM;

	if (r < 0)
		return r;
	all = cursor_over(text, n);
	while (cursor_until(&all, 0, &variable) == 0) {
		struct cursor rest = variable;
		size_t bytes = cursor_left(&variable);

		if (!cursor_literal(&rest, "CUDA_") && !cursor_literal(&rest, "NVIDIA_VISIBLE_DEVICES="))
			continue;
		if (bytes >= size - used)
			return -E2BIG;
		memcpy(buf + used, variable.p, bytes);
		used += bytes;
		buf[used++] = 0;
	}
	*ret_n = used;
	return n == READ_BYTES ? -E2BIG : 0;
}
