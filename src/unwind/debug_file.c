// SPDX-License-Identifier: Apache-2.0
#include "unwind/debug_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zlib.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/macro.h"

const char *debug_file_root = "/usr/lib/debug";

enum { PIECE = 1 << 20 };

static int open_debug_file(const char *path, int *ret_fd)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENOENT;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

static int open_by_build_id(struct elf_file *code, int *ret_fd)
{
	uint8_t id[ELF_BUILD_ID_MAX];
	char path[PATH_MAX];
	size_t n = 0, at;
	int r = elf_build_id(code, id, &n);

	if (r < 0 || n < 2)
		return -ENOENT;
	at = (size_t)snprintf(path, sizeof(path) / 2, "%s/.build-id/", debug_file_root);
	for (size_t i = 0; i < n; i++)
		at += (size_t)snprintf(path + at, sizeof(path) - at, i == 0 ? "%02x/" : "%02x", id[i]);
	snprintf(path + at, sizeof(path) - at, ".debug");
	return open_debug_file(path, ret_fd);
}

/* The section: a name, zeros up to a multiple of 4, and the checksum of the file with that name. */
static int read_link(struct elf_file *code, int fd, char name[static NAME_MAX + 1], uint32_t *ret_checksum)
{
	char section[NAME_MAX + 8];
	uint64_t offset, size;
	size_t n;
	int r = elf_section(code, ".gnu_debuglink", &offset, &size);

	if (r < 0 || size > sizeof(section) || size < 8)
		return -ENOENT;
	if (pread(fd, section, size, (off_t)offset) != (ssize_t)size)
		return -ENOENT;
	n = strnlen(section, size);
	if (n == 0 || n > NAME_MAX || (n & ~(size_t)3) + 8 > size || memchr(section, '/', n) ||
	    section[0] == '.')
		return -ENOENT;
	memcpy(ret_checksum, section + (n & ~(size_t)3) + 4, sizeof(*ret_checksum));
	memcpy(name, section, n + 1);
	return 0;
}

/* Of the whole file. */
static int checksum_of(int fd, int64_t end_ns, uint32_t *ret_checksum)
{
	_cleanup_free_ unsigned char *piece = malloc(PIECE);
	uLong sum = crc32(0, NULL, 0);
	off_t at = 0;
	ssize_t n;

	if (!piece)
		return -ENOMEM;
	while ((n = pread(fd, piece, PIECE, at)) > 0) {
		sum = crc32(sum, piece, (uInt)n);
		at += n;
		if (clock_thread_cpu_ns() >= end_ns)
			return -ETIME;
	}
	*ret_checksum = (uint32_t)sum;
	return n < 0 ? -errno : 0;
}

static int open_by_link(struct elf_file *code, int fd, int64_t end_ns, int *ret_fd)
{
	char name[NAME_MAX + 1], own[64], folder[PATH_MAX], path[2 * PATH_MAX];
	_cleanup_close_ int found = -1;
	uint32_t wanted, checksum = 0;
	ssize_t n;
	int r = read_link(code, fd, name, &wanted);

	if (r < 0)
		return r;
	snprintf(own, sizeof(own), "/proc/self/fd/%d", fd);
	n = readlink(own, folder, sizeof(folder) - 1);
	if (n < 0)
		return -errno;
	folder[n] = '\0';
	if (folder[0] != '/')
		return -ENOENT;
	*strrchr(folder, '/') = '\0';
	if ((size_t)snprintf(path, sizeof(path), "%s%s/%s", debug_file_root, folder, name) >= sizeof(path))
		return -ENAMETOOLONG;
	r = open_debug_file(path, &found);
	if (r == 0)
		r = checksum_of(found, end_ns, &checksum);
	if (r < 0)
		return r;
	if (checksum != wanted)
		return -ENOENT;
	*ret_fd = TAKE_FD(found);
	return 0;
}

int debug_file_open(struct elf_file *code, int fd, int64_t end_ns, int *ret_fd)
{
	int r = open_by_build_id(code, ret_fd);

	return r == 0 ? 0 : open_by_link(code, fd, end_ns, ret_fd);
}
