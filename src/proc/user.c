// SPDX-License-Identifier: Apache-2.0
#include "proc/user.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/hashmap.h"
#include "proc/proc.h"

enum { DEPTH_MAX = 33 }; /* of user namespaces, which the kernel limits to 32 */

/* The first lines are enough: that of the groups, further on, has any length. */
static int user_of_status(const char *root, uint32_t pid, uint32_t *ret_user)
{
	_cleanup_close_ int fd = -1;
	char path[128], text[1024];
	const char *at;
	ssize_t n;

	snprintf(path, sizeof(path), "%s/%u/status", root, pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return -ESRCH;
	text[n] = '\0';
	at = strstr(text, "\nUid:");
	return at && sscanf(at, "\nUid: %u", ret_user) == 1 ? 0 : -EBADMSG;
}

static bool is_own_namespace(int fd)
{
	struct stat theirs, own;

	return fstat(fd, &theirs) == 0 && stat("/proc/self/ns/user", &own) == 0 &&
	       theirs.st_ino == own.st_ino;
}

int proc_user(const char *root, uint32_t pid, uint32_t *ret_user)
{
	_cleanup_close_ int namespace = -1;
	char path[128];
	uid_t owner;
	int r = user_of_status(root, pid, ret_user);

	if (r < 0)
		return r;
	snprintf(path, sizeof(path), "%s/%u/ns/user", root, pid);
	namespace = open(path, O_RDONLY | O_CLOEXEC);
	/* Not allowed to look: then its own user is what is known. */
	if (namespace < 0 || is_own_namespace(namespace))
		return 0;
	for (unsigned depth = 0; depth < DEPTH_MAX; depth++) {
		int parent;

		if (ioctl(namespace, NS_GET_OWNER_UID, &owner) < 0)
			return 0;
		*ret_user = owner;
		parent = ioctl(namespace, NS_GET_PARENT);
		if (parent < 0)
			return 0;
		close(namespace);
		namespace = parent;
		if (is_own_namespace(namespace))
			return 0;
	}
	return 0;
}

int proc_answers_for(const char *root, uint32_t pid, uint64_t *ret_user, uint32_t *ret_uid)
{
	struct proc_cgroup cgroup;
	char path[128], text[4096];
	size_t n;
	int r = proc_user(root, pid, ret_uid);

	if (r < 0)
		return r;
	*ret_user = *ret_uid;
	if (*ret_uid != 0)
		return 0;
	snprintf(path, sizeof(path), "%s/%u/cgroup", root, pid);
	if (read_file(path, text, sizeof(text), &n) < 0)
		return 0;
	proc_cgroup_parse(text, n, &cgroup);
	if (cgroup.kind != PROC_CGROUP_NONE && cgroup.kind != PROC_CGROUP_UNIT)
		*ret_user = UINT64_C(1) << 32 | (uint32_t)hash_bytes(cgroup.id, strlen(cgroup.id));
	return 0;
}
