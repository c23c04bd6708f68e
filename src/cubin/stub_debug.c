// SPDX-License-Identifier: Apache-2.0
/*
 * Separate debug files of a program, in gdb's search path. The folders may be a container's: paths never lead
 * out of its root, opening never blocks, and a file must match by more than its name.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/macro.h"
#include "cubin/stub.h"
#include "elf/elf.h"

enum { CRC_BLOCK = 64 << 10 };
#define CRC_FILE_MAX (INT64_C(1) << 30) /* a second or two */

static const char debug_root[] = "/usr/lib/debug";

struct wanted {
	struct stat st; /* of the program */
	uint8_t id[ELF_BUILD_ID_MAX];
	size_t id_n; /* 0: has none */
	char link[NAME_MAX + 1]; /* .gnu_debuglink's file; "" */
	uint32_t crc;
};

/*
 * Of a polynomial's remainders by byte; the CRC of .gnu_debuglink is that of zip files (gdb's manual,
 * "Separate Debug Files").
 */
static void crc_table(uint32_t table[static 256])
{
	for (uint32_t i = 0; i < 256; i++) {
		table[i] = i;
		for (int bit = 0; bit < 8; bit++)
			table[i] = table[i] >> 1 ^ (table[i] & 1 ? UINT32_C(0xedb88320) : 0);
	}
}

static int crc_of(int fd, uint32_t *ret_crc)
{
	uint32_t table[256], crc = UINT32_MAX;
	_cleanup_free_ uint8_t *block = malloc(CRC_BLOCK);
	off_t at = 0;

	if (!block)
		return -ENOMEM;
	crc_table(table);
	for (;;) {
		ssize_t n = pread(fd, block, CRC_BLOCK, at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		if (at > CRC_FILE_MAX) /* the file grows */
			return -EFBIG;
		for (ssize_t i = 0; i < n; i++)
			crc = crc >> 8 ^ table[(crc ^ block[i]) & 0xff];
		at += n;
	}
	*ret_crc = ~crc;
	return 0;
}

/* A name, ended by NUL, filled up to 4 bytes; the CRC. */
static void read_link(struct elf_file *file, int fd, struct wanted *wanted)
{
	uint8_t bytes[NAME_MAX + 1 + 3 + 4] = { 0 };
	uint64_t offset, size;
	size_t name_n;
	ssize_t n;

	if (elf_section(file, ".gnu_debuglink", &offset, &size) < 0)
		return;
	n = pread(fd, bytes, (size_t)MIN(size, (uint64_t)sizeof(bytes)), (off_t)offset);
	name_n = n > 0 ? strnlen((char *)bytes, MIN((size_t)n, (size_t)NAME_MAX + 1)) : 0;
	if (name_n == 0 || name_n > NAME_MAX || memchr(bytes, '/', name_n) ||
	    (name_n & ~(size_t)3) + 8 > (size_t)n)
		return;
	memcpy(wanted->link, bytes, name_n + 1);
	memcpy(&wanted->crc, bytes + (name_n & ~(size_t)3) + 4, sizeof(wanted->crc));
}

/* The name's folder, as the process has it: @path up to the last slash. */
static int folder_of(const char *path, char buf[static PATH_MAX])
{
	const char *slash = strrchr(path, '/');

	if (path[0] != '/' || slash - path >= PATH_MAX)
		return -ENOENT;
	memcpy(buf, path, (size_t)(slash - path));
	buf[slash - path] = '\0';
	return 0;
}

/* By build-id where both have one; else by the CRC, if there is one. */
static bool is_right(int fd, const struct wanted *wanted, bool linked)
{
	_cleanup_(elf_closep) struct elf_file *file = NULL;
	uint8_t id[ELF_BUILD_ID_MAX];
	struct stat st;
	uint32_t crc = 0;
	size_t n;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    (st.st_dev == wanted->st.st_dev && st.st_ino == wanted->st.st_ino) || elf_open(fd, &file) < 0)
		return false;
	if (wanted->id_n > 0 && elf_build_id(file, id, &n) == 0)
		return n == wanted->id_n && memcmp(id, wanted->id, n) == 0;
	return linked && st.st_size <= CRC_FILE_MAX && crc_of(fd, &crc) == 0 && crc == wanted->crc;
}

static int try(int root_fd, const struct wanted *wanted, bool linked, const char *path, int *ret_fd)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	_cleanup_close_ int handle = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
	_cleanup_close_ int fd = -1;
	struct stat st;

	if (handle < 0 || fstat(handle, &st) < 0 || fd_reopen(handle, &st, &fd) < 0 ||
	    !is_right(fd, wanted, linked))
		return -ENOENT;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

static int try_build_id(int root_fd, const struct wanted *wanted, int *ret_fd)
{
	char path[sizeof(debug_root) + 64 + 2 * ELF_BUILD_ID_MAX];
	int n;

	if (wanted->id_n < 2)
		return -ENOENT;
	n = snprintf(path, sizeof(path), "%s/.build-id/%02x/", debug_root, wanted->id[0]);
	for (size_t i = 1; i < wanted->id_n; i++)
		n += snprintf(path + n, sizeof(path) - (size_t)n, "%02x", wanted->id[i]);
	snprintf(path + n, sizeof(path) - (size_t)n, ".debug");
	return try(root_fd, wanted, false, path, ret_fd);
}

static int try_link(int root_fd, const struct wanted *wanted, const char *path, int *ret_fd)
{
	static const struct {
		const char *before, *behind; /* the program's folder */
	} places[] = { { "", "" }, { "", "/.debug" }, { debug_root, "" } };
	char folder[PATH_MAX], candidate[PATH_MAX + sizeof(debug_root) + NAME_MAX + 16];

	if (wanted->link[0] == '\0' || folder_of(path, folder) < 0)
		return -ENOENT;
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		snprintf(candidate, sizeof(candidate), "%s%s%s/%s", places[i].before, folder,
			 places[i].behind, wanted->link);
		if (try(root_fd, wanted, true, candidate, ret_fd) == 0)
			return 0;
	}
	return -ENOENT;
}

int stub_debug_file(int fd, const char *root, const char *path, int *ret_fd)
{
	_cleanup_(elf_closep) struct elf_file *file = NULL;
	_cleanup_close_ int root_fd = -1;
	struct wanted wanted = { .id_n = 0 };

	if (elf_open(fd, &file) < 0 || fstat(fd, &wanted.st) < 0)
		return -ENOENT;
	if (elf_build_id(file, wanted.id, &wanted.id_n) < 0)
		wanted.id_n = 0;
	read_link(file, fd, &wanted);
	root_fd = open(root[0] ? root : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0)
		return -ENOENT;
	if (try_build_id(root_fd, &wanted, ret_fd) == 0)
		return 0;
	return try_link(root_fd, &wanted, path, ret_fd);
}
