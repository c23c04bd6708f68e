// SPDX-License-Identifier: Apache-2.0
#include "agent/outputs/prom_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/macro.h"

#define SUFFIX ".prom"
#define OWN_NAME "gpusonde" SUFFIX
enum { FILE_MODE = 0644 };

static bool is_prom_name(const char *name)
{
	size_t n = strlen(name), suffix = strlen(SUFFIX);

	return n > suffix && STRV_EQ(name + n - suffix, SUFFIX);
}

int prom_file_init(const char *path, struct prom_file *ret_file)
{
	const char *slash = strrchr(path, '/'), *name = OWN_NAME;
	size_t folder = strlen(path);

	if (path[0] != '/' || folder >= sizeof(ret_file->folder))
		return -EINVAL;
	if (is_prom_name(slash + 1)) {
		name = slash + 1;
		folder = (size_t)(slash - path);
	}
	/* A slash behind a link's name would follow it. */
	while (folder > 1 && path[folder - 1] == '/')
		folder--;
	if (folder == 0)
		folder = 1;
	if (strlen(name) + strlen(".") + strlen(".new") >= sizeof(ret_file->beside))
		return -EINVAL;
	*ret_file = (struct prom_file){ 0 };
	memcpy(ret_file->folder, path, folder);
	strcpy(ret_file->name, name);
	snprintf(ret_file->beside, sizeof(ret_file->beside), ".%.240s.new", name);
	return 0;
}

/* ---- the folder ---- */

/*
 * A user who may write there may take the file away and put another one in its place, which a sticky bit
 * prevents. The folder's owner and group are whom it was made for.
 */
static int open_prom_folder(const struct prom_file *file, char ret_why[static PROM_FILE_ERROR])
{
	_cleanup_close_ int folder = open(file->folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (folder < 0 || fstat(folder, &st) < 0)
		return -errno;
	if ((st.st_mode & S_IWOTH) && !(st.st_mode & S_ISVTX)) {
		snprintf(ret_why, PROM_FILE_ERROR,
			 "everybody may write to the folder %.400s, and so replace what is in it: chmod o-w",
			 file->folder);
		return -EPERM;
	}
	return TAKE_FD(folder);
}

static void explain_prom_file(const struct prom_file *file, int error, char ret_why[static PROM_FILE_ERROR])
{
	const char *folder = file->folder;

	switch (-error) {
	case ENOENT:
		snprintf(ret_why, PROM_FILE_ERROR,
			 "there is no folder %.400s: make it, or name node_exporter's", folder);
		break;
	case ELOOP:
	case ENOTDIR:
		snprintf(ret_why, PROM_FILE_ERROR,
			 "%.400s is no folder, or a symbolic link: name the folder itself", folder);
		break;
	case EROFS:
		snprintf(ret_why, PROM_FILE_ERROR,
			 "the folder %.400s is read-only for the agent: "
			 "a unit of systemd needs ReadWritePaths= of it",
			 folder);
		break;
	case EACCES:
	case EPERM:
		snprintf(ret_why, PROM_FILE_ERROR,
			 "the agent's user may not write to the folder %.400s, or not replace %.64s in it",
			 folder, file->name);
		break;
	case ENOSPC:
	case EDQUOT:
		snprintf(ret_why, PROM_FILE_ERROR, "the disk of the folder %.400s is full", folder);
		break;
	default:
		snprintf(ret_why, PROM_FILE_ERROR, "%.100s: in the folder %.400s", strerror(-error), folder);
	}
}

/* ---- the file ---- */

static int create_beside(const struct prom_file *file, int folder)
{
	int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(folder, file->beside, flags, FILE_MODE);

	/* What an agent that was killed has left. */
	if (fd < 0 && errno == EEXIST && unlinkat(folder, file->beside, 0) == 0)
		fd = openat(folder, file->beside, flags, FILE_MODE);
	return fd < 0 ? -errno : fd;
}

static int write_beside(struct prom_file *file, int folder, const void *data, size_t n)
{
	_cleanup_close_ int fd = create_beside(file, folder);
	struct stat st;
	ssize_t written;

	if (fd < 0)
		return fd;
	/* Whatever the umask is. */
	if (fchmod(fd, FILE_MODE) < 0 || fstat(fd, &st) < 0)
		return -errno;
	written = write_all(fd, data, n);
	if (written < 0)
		return (int)written;
	if (renameat(folder, file->beside, folder, file->name) < 0)
		return -errno;
	file->device = st.st_dev;
	file->inode = st.st_ino;
	return 0;
}

static void remove_ours(struct prom_file *file, int folder)
{
	struct stat st;

	if (file->inode != 0 && fstatat(folder, file->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    st.st_dev == file->device && st.st_ino == file->inode)
		unlinkat(folder, file->name, 0);
	file->inode = 0;
}

int prom_file_write(struct prom_file *file, const void *data, size_t n, char ret_why[static PROM_FILE_ERROR])
{
	_cleanup_close_ int folder = -1;
	int r;

	ret_why[0] = '\0';
	folder = open_prom_folder(file, ret_why);
	r = folder < 0 ? folder : write_beside(file, folder, data, n);
	if (r < 0 && !*ret_why)
		explain_prom_file(file, r, ret_why);
	if (r < 0 && folder >= 0) {
		unlinkat(folder, file->beside, 0);
		remove_ours(file, folder);
	}
	return r;
}

void prom_file_remove(struct prom_file *file)
{
	_cleanup_close_ int folder = open(file->folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (folder >= 0)
		remove_ours(file, folder);
}
