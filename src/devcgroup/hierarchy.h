// SPDX-License-Identifier: Apache-2.0
/*
 * The cgroup file systems of this machine as we see them, and directories below them. Paths of cgroups
 * are relative to the root of our cgroup namespace; a mount's root is, too, and lies above it ("/../..")
 * where the host's file system is mounted in a container that has a namespace of its own.
 */
#pragma once

#include "devcgroup/devcgroup.h"

enum { MOUNTS_MAX = 64 };

struct cgroup_mount {
	int hierarchy; /* enum hierarchy; HIERARCHIES: a controller of version 1 that we do not use */
	char root[PATH_MAX], point[PATH_MAX];
};

struct cgroup_mounts {
	struct cgroup_mount list[MOUNTS_MAX];
	unsigned n;
};

/* One line of mountinfo. -ENOENT: of another file system; -EBADMSG. */
int cgroup_mount_parse(const char *line, size_t n, struct cgroup_mount *ret_mount);
int cgroup_mounts_read(const struct devcgroup_host *host, struct cgroup_mounts *ret_mounts);
/* The one to use: below host->cgroups, and of these the one that shows most. NULL: none. */
const struct cgroup_mount *cgroup_mount_of(const struct devcgroup_host *host,
					   const struct cgroup_mounts *mounts, enum hierarchy hierarchy);

/*
 * The path of a process in a hierarchy, of /proc/PID/cgroup. -ENOENT: it is in none.
 */
int cgroup_line_find(const char *text, size_t n, enum hierarchy hierarchy, char *buf, size_t size);

/*
 * Opens @path below the directory @root, each component by itself. -EXDEV: ".." in it; -ELOOP, -ENOTDIR: a
 * symbolic link. The path as it was opened, "/" and no double slashes, in @ret_path.
 */
int cgroup_open(int root, const char *path, char ret_path[static PATH_MAX], int *ret_fd);
int cgroup_open_mount(const struct cgroup_mount *mount, int *ret_fd);

/*
 * @path, which begins at our namespace's root, as one below @mount. -EXDEV: it is not below it, or the
 * names between cannot be found.
 */
int cgroup_path_below(const struct cgroup_mounts *mounts, const struct cgroup_mount *mount, const char *path,
		      char ret_path[static PATH_MAX]);

/*
 * Paths below @root of the directories for which @is says so, at most @max; returns how many there are.
 * -E2BIG: more directories, or deeper ones, than are looked at.
 */
struct cgroup_search {
	bool (*is)(const struct cgroup_search *search, int parent, const char *name);
	const char *name;
	uint64_t dev, ino;
};
int cgroup_search(int root, const struct cgroup_search *search, char (*ret_paths)[PATH_MAX], unsigned max);
bool cgroup_has_inode(const struct cgroup_search *search, int parent, const char *name);
bool cgroup_has_name(const struct cgroup_search *search, int parent, const char *name);
