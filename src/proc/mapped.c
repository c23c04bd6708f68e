// SPDX-License-Identifier: Apache-2.0
#include "proc/mapped.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/macro.h"
#include "proc/maps.h"
#include "proc/mounts.h"
#include "proc/rights.h"

/*
 * Whether it may be the mapped file. On btrfs and overlay stat() returns another device than maps: there
 * same_as_mapped() says what the inode alone does not.
 */
static bool may_be(int fd, const struct proc_mapped *mapping, const struct stat *st)
{
	struct statfs fs;

	if (st->st_ino != mapping->ino)
		return false;
	if (st->st_dev == mapping->dev)
		return true;
	return fstatfs(fd, &fs) == 0 &&
	       (fs.f_type == BTRFS_SUPER_MAGIC || fs.f_type == OVERLAYFS_SUPER_MAGIC);
}

/* By a mapping of our own, where its device is not that of stat(). */
static bool same_as_mapped(int fd, const struct proc_mapped *mapping, const struct stat *st)
{
	uint64_t dev, ino;

	if (st->st_dev == mapping->dev && st->st_ino == mapping->ino)
		return true;
	return proc_maps_identify(fd, &dev, &ino) == 0 && dev == mapping->dev && ino == mapping->ino;
}

static int look_at(int handle, const struct proc_mapped *mapping, struct stat *ret_st)
{
	int r = mapping->admit ? mapping->admit(handle, mapping->userdata) : 1;

	if (r <= 0)
		return r < 0 ? r : -EREMOTEIO;
	return fstat(handle, ret_st) < 0 ? -errno : 0;
}

static int open_same(int handle, const struct proc_mapped *mapping, const struct stat *st, int *ret_fd,
		     struct stat *ret_st)
{
	_cleanup_close_ int fd = -1;
	int r = fd_reopen(handle, st, &fd);

	if (r < 0)
		return r;
	if (!same_as_mapped(fd, mapping, st))
		return -ESTALE;
	*ret_fd = TAKE_FD(fd);
	*ret_st = *st;
	return 0;
}

static int open_area(const char *root, const struct proc_mapped *mapping, int *ret_handle)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%d/map_files/%" PRIx64 "-%" PRIx64, root, (int)mapping->pid,
		 mapping->start, mapping->end);
	*ret_handle = open(path, O_PATH | O_CLOEXEC);
	return *ret_handle < 0 ? -errno : 0;
}

/*
 * Opens through /proc/PID/map_files: also works for deleted files and those in another mount namespace. The
 * area may have been split or merged since it was recorded, so maps is read once; it is also compared if
 * stat() returns another inode than maps (overlay).
 */
static int open_mapped(const char *root, const struct proc_mapped *mapping, int *ret_fd, struct stat *ret_st)
{
	_cleanup_close_ int handle = -1;
	struct proc_mapped now = *mapping;
	struct proc_map map;
	struct stat st;
	int r;

	if (open_area(root, &now, &handle) == 0) {
		r = look_at(handle, mapping, &st);
		if (r < 0)
			return r;
		if (may_be(handle, mapping, &st))
			return open_same(handle, mapping, &st, ret_fd, ret_st);
	}
	r = proc_maps_find(root, mapping->pid, mapping->dev, mapping->ino, &map);
	if (r < 0)
		return r == -ENOENT ? -ESTALE : r;
	if (handle < 0 || map.start != now.start || map.end != now.end) {
		closep(&handle);
		now.start = map.start;
		now.end = map.end;
		r = open_area(root, &now, &handle);
		if (r == 0)
			r = look_at(handle, mapping, &st);
		if (r < 0)
			return r;
	}
	return open_same(handle, mapping, &st, ret_fd, ret_st);
}

/* Opens by name, below @folder. @exactly: the device must match, too, on any file system. */
static int open_named(const char *folder, const struct proc_mapped *mapping, bool exactly, int *ret_fd,
		      struct stat *ret_st)
{
	const struct open_how how = { .flags = O_PATH | O_CLOEXEC,
				      .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	_cleanup_close_ int base = -1, handle = -1;
	char path[PATH_MAX];
	struct stat st;
	int r;

	base = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (base < 0)
		return -errno;
	if (mapping->path_n >= sizeof(path))
		return -ENAMETOOLONG;
	memcpy(path, mapping->path, mapping->path_n);
	path[mapping->path_n] = '\0';
	handle = (int)syscall(SYS_openat2, base, path, &how, sizeof(how));
	if (handle < 0)
		return -errno;
	r = look_at(handle, mapping, &st);
	if (r < 0)
		return r;
	if (!may_be(handle, mapping, &st) || (exactly && st.st_dev != mapping->dev))
		return -ESTALE;
	return open_same(handle, mapping, &st, ret_fd, ret_st);
}

int proc_mapped_open(const char *root, const struct proc_mapped *mapping, int *ret_fd, struct stat *ret_st)
{
	char folder[PATH_MAX];
	int r = open_mapped(root, mapping, ret_fd, ret_st);

	if (r == 0 || r == -ENOTSUP || r == -EREMOTEIO)
		return r;
	/* Used if map_files cannot be opened (no CAP_CHECKPOINT_RESTORE). */
	snprintf(folder, sizeof(folder), "%s/%d/root", root, (int)mapping->pid);
	if (r != -ESRCH)
		r = open_named(folder, mapping, false, ret_fd, ret_st);
	/* The process has ended or is not accessible: try the path in our own root, if it is that file. */
	if (r == -ESRCH || r == -ENOENT)
		r = open_named("/", mapping, true, ret_fd, ret_st);
	else if ((r == -EACCES || r == -EPERM) && open_named("/", mapping, true, ret_fd, ret_st) == 0)
		r = 0;
	return r;
}

static int open_below(const char *root, pid_t pid, const char *from, const char *path, uint64_t resolve,
		      int *ret_handle)
{
	const struct open_how how = { .flags = O_PATH | O_CLOEXEC,
				      .resolve = resolve | RESOLVE_NO_MAGICLINKS };
	_cleanup_close_ int base = -1;
	char folder[PATH_MAX];

	snprintf(folder, sizeof(folder), "%s/%d/%s", root, (int)pid, from);
	base = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (base < 0)
		return -errno;
	*ret_handle = (int)syscall(SYS_openat2, base, path, &how, sizeof(how));
	return *ret_handle < 0 ? -errno : 0;
}

static int read_link(const char *root, pid_t pid, const char *what, char buf[static PATH_MAX])
{
	char link[PATH_MAX];
	ssize_t n;

	snprintf(link, sizeof(link), "%s/%d/%s", root, (int)pid, what);
	n = readlink(link, buf, PATH_MAX - 1);
	if (n < 0)
		return -errno;
	buf[n] = '\0';
	return 0;
}

/* "../x": resolved from the working directory's path, below the process's root. */
static int open_above(const char *root, pid_t pid, const char *path, int *ret_handle)
{
	char top[PATH_MAX], cwd[PATH_MAX], all[2 * PATH_MAX];
	const char *from = cwd;
	size_t n;
	int r = read_link(root, pid, "root", top);

	if (r == 0)
		r = read_link(root, pid, "cwd", cwd);
	if (r < 0)
		return r;
	/* If the process has changed its root, both paths are relative to our root. */
	n = strcmp(top, "/") == 0 ? 0 : strlen(top);
	if (n > 0 && strncmp(cwd, top, n) == 0 && (cwd[n] == '/' || cwd[n] == '\0'))
		from += n;
	if (strlen(path) >= PATH_MAX)
		return -ENAMETOOLONG;
	snprintf(all, sizeof(all), "%s/%s", from, path);
	return open_below(root, pid, "root", all, RESOLVE_IN_ROOT, ret_handle);
}

/* What the kernel makes up: reading it may have effects, and no program keeps device code there. */
static bool is_virtual(int handle)
{
	static const unsigned long types[] = {
		PROC_SUPER_MAGIC,
		SYSFS_MAGIC,
		DEBUGFS_MAGIC,
		TRACEFS_MAGIC,
		SECURITYFS_MAGIC,
		CGROUP_SUPER_MAGIC,
		CGROUP2_SUPER_MAGIC,
		BPF_FS_MAGIC,
		PSTOREFS_MAGIC,
		EFIVARFS_MAGIC,
		SELINUX_MAGIC,
		SMACK_MAGIC,
		NSFS_MAGIC,
		DEVPTS_SUPER_MAGIC,
		BINFMTFS_MAGIC,
		AAFS_MAGIC,
		0x62656570 /* configfs */,
		0x19800202 /* mqueue */,
	};
	struct statfs fs;

	if (fstatfs(handle, &fs) < 0)
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if ((unsigned long)fs.f_type == types[i])
			return true;
	return false;
}

static int open_path(const char *root, pid_t pid, const char *path, bool open_to_all, int *ret_fd,
		     struct stat *ret_st)
{
	_cleanup_close_ int handle = -1;
	struct stat st;
	int r;

	if (path[0] == '/') {
		r = open_below(root, pid, "root", path, RESOLVE_IN_ROOT, &handle);
	} else {
		r = open_below(root, pid, "cwd", path, RESOLVE_BENEATH, &handle);
		if (r == -EXDEV)
			r = open_above(root, pid, path, &handle);
	}
	if (r < 0)
		return r;
	if (fstat(handle, &st) < 0)
		return -errno;
	if (is_virtual(handle))
		return -ENOTSUP;
	if (open_to_all && !(st.st_mode & S_IROTH))
		return -EACCES;
	r = fd_reopen(handle, &st, ret_fd);
	if (r == 0)
		*ret_st = st;
	return r;
}

int proc_file_open(const char *root, pid_t pid, const char *path, int *ret_fd, struct stat *ret_st)
{
	struct proc_rights rights;
	int r = proc_rights_take(root, pid, &rights);

	if (r < 0)
		return r;
	r = open_path(root, pid, path, rights.open_to_all, ret_fd, ret_st);
	proc_rights_give_back(&rights);
	return r;
}

int proc_map_open(const char *root, const struct proc_map *map, struct mounts_user *user, int *ret_fd,
		  struct stat *ret_st)
{
	const struct proc_mapped mapped = {
		.pid = user->pid,
		.start = map->start,
		.end = map->end,
		.dev = map->dev,
		.ino = map->ino,
		.path = map->path,
		.path_n = map->path_n,
		.admit = mounts_admit,
		.userdata = user,
	};

	return proc_mapped_open(root, &mapped, ret_fd, ret_st);
}
