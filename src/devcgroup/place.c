// SPDX-License-Identifier: Apache-2.0
#include "devcgroup/devcgroup.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/cursor.h"
#include "base/text.h"
#include "devcgroup/hierarchy.h"

enum { CGROUP_BYTES = 64 << 10, SAME_NAMES = 4 };

struct finding_place {
	const struct devcgroup_host *host;
	const char *target;
	struct cgroup_mounts mounts;
	struct place *place;
	struct devcgroup_why *why;
};

void place_done(struct place *place)
{
	for (int i = 0; i < HIERARCHIES; i++) {
		closep(&place->at[i].fd);
		place->at[i].fd = -1;
	}
}

static int refuse(const struct finding_place *f, int error)
{
	switch (error) {
	case -EXDEV:
		devcgroup_because(
			f->why,
			"%s: this path leaves the root of the cgroup file system, which is not "
			"allowed; if it is that of a process in another cgroup namespace, mount the "
			"host's cgroups and name the folder with --cgroup-root",
			f->target);
		break;
	case -EINVAL:
		devcgroup_because(
			f->why,
			"%s: a path relative to the current folder names no cgroup: name a PID, a unit "
			"of systemd, or a path from the root of the cgroups on (/ is the root itself)",
			f->target);
		break;
	case -ELOOP:
	case -ENOTDIR:
		devcgroup_because(f->why, "%s: a part of this path is no directory: name a cgroup",
				  f->target);
		break;
	case -ENOENT:
		devcgroup_because(
			f->why,
			"%s: there is no such cgroup; name a PID, the path of a cgroup, or a unit of "
			"systemd that runs (systemd-cgls shows them)",
			f->target);
		break;
	case -ESRCH:
		devcgroup_because(f->why, "%s: no process has this PID", f->target);
		break;
	case -E2BIG:
		devcgroup_because(f->why,
				  "%s: there are too many cgroups to search all of them: name the path",
				  f->target);
		break;
	default:
		devcgroup_because(f->why, "%s: its cgroup cannot be opened: %s", f->target, strerror(-error));
	}
	return error;
}

/* ---- processes ---- */

struct pids {
	uint32_t *list;
	unsigned n, max;
};

static void read_pids(int cgroup, struct pids *pids)
{
	_cleanup_close_ int procs = openat(cgroup, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	uint64_t number = 0;
	char buf[4096];
	ssize_t n;

	if (procs < 0)
		return;
	while (pids->n < pids->max && (n = read(procs, buf, sizeof(buf))) > 0) {
		for (ssize_t i = 0; i < n; i++) {
			if (buf[i] != '\n')
				number = number * 10 + (uint64_t)(buf[i] - '0');
			else if (number > 0 && number <= INT32_MAX && pids->n < pids->max)
				pids->list[pids->n++] = (uint32_t)number; /* 0: not of our PID namespace */
			if (buf[i] == '\n')
				number = 0;
		}
	}
}

unsigned place_processes(const struct place *place, uint32_t *ret_pids, unsigned max)
{
	struct pids pids = { .list = ret_pids, .max = max };

	/* A process is in a cgroup of each: the same ones, if both have the name that was given. */
	for (int h = HIERARCHIES; h-- > 0 && pids.n == 0;)
		if (place->at[h].fd >= 0)
			read_pids(place->at[h].fd, &pids);
	return pids.n;
}

/* ---- of a process ---- */

/* Whether the cgroup has the process: it may have moved, or ended, meanwhile. */
static bool has_process(int fd, uint32_t pid)
{
	_cleanup_close_ int procs = openat(fd, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	char buf[4096];
	uint64_t number = 0;
	ssize_t n;

	if (procs < 0)
		return true; /* cannot be told, as in the next case */
	while ((n = read(procs, buf, sizeof(buf))) > 0) {
		for (ssize_t i = 0; i < n; i++) {
			if (buf[i] == '\n' && number == pid)
				return true;
			number = buf[i] == '\n' ? 0 : number * 10 + (uint64_t)(buf[i] - '0');
		}
	}
	return n < 0 && errno == EOPNOTSUPP; /* a threaded cgroup does not list processes */
}

static int open_of_process(const struct finding_place *f, const char *text, size_t n,
			   enum hierarchy hierarchy)
{
	const struct cgroup_mount *mount = cgroup_mount_of(f->host, &f->mounts, hierarchy);
	struct cgroup_at *at = &f->place->at[hierarchy];
	_cleanup_close_ int root = -1;
	char path[PATH_MAX], below[PATH_MAX];
	int r = cgroup_line_find(text, n, hierarchy, path, sizeof(path));

	if (!mount || r == -ENOENT)
		return 0;
	if (r == 0)
		r = cgroup_path_below(&f->mounts, mount, path, below);
	if (r == 0)
		r = cgroup_open_mount(mount, &root);
	if (r == 0)
		r = cgroup_open(root, below, at->path, &at->fd);
	if (r < 0)
		return refuse(f, r);
	if (has_process(at->fd, f->place->pid))
		return 0;
	devcgroup_because(f->why,
			  "PID %u is not in cgroup %s, where /proc has it: it ended or moved; try again",
			  f->place->pid, at->path);
	return -ESTALE;
}

static int find_process(struct finding_place *f, uint32_t pid)
{
	_cleanup_free_ char *text = malloc(CGROUP_BYTES);
	char path[64];
	size_t n;
	int r;

	if (!text)
		return -ENOMEM;
	f->place->pid = pid;
	snprintf(path, sizeof(path), "%.32s/%u/cgroup", f->host->proc, pid);
	r = read_file(path, text, CGROUP_BYTES, &n);
	if (r < 0)
		return refuse(f, r == -ENOENT ? -ESRCH : r);
	for (int h = 0; r == 0 && h < HIERARCHIES; h++)
		r = open_of_process(f, text, n, (enum hierarchy)h);
	return r;
}

/* ---- named ---- */

/* The part of a path below the mount point that it begins with; any controller's of version 1. */
static const char *strip_mount_point(const struct finding_place *f, const char *path)
{
	size_t best = 0;

	for (unsigned i = 0; i < f->mounts.n; i++) {
		size_t n = strlen(f->mounts.list[i].point);

		if (n > best && strncmp(path, f->mounts.list[i].point, n) == 0 &&
		    (path[n] == '/' || path[n] == 0))
			best = n;
	}
	return path + best;
}

static bool is_unit(const char *name)
{
	static const char *const types[] = { ".service", ".scope", ".slice" };
	size_t n = strlen(name);

	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (n > strlen(types[i]) && STRV_EQ(name + n - strlen(types[i]), types[i]))
			return true;
	return false;
}

/* Wherever systemd has put it: in a slice, in a user's manager. */
static int search_unit(const struct finding_place *f, int root, char ret_path[static PATH_MAX])
{
	const struct cgroup_search search = { .is = cgroup_has_name, .name = f->target };
	_cleanup_free_ char(*paths)[PATH_MAX] = calloc(SAME_NAMES, sizeof(*paths));
	int n = paths ? cgroup_search(root, &search, paths, SAME_NAMES) : -ENOMEM;

	if (n == 0)
		return -ENOENT;
	if (n > 1) {
		devcgroup_because(
			f->why, "%s: %d cgroups have this name, for example %.200s and %.200s: name the path",
			f->target, n, paths[0], paths[1]);
		return -ENOTUNIQ;
	}
	if (n == 1)
		strcpy(ret_path, paths[0]);
	return n < 0 ? n : 0;
}

static int open_named(const struct finding_place *f, enum hierarchy hierarchy)
{
	const struct cgroup_mount *mount = cgroup_mount_of(f->host, &f->mounts, hierarchy);
	struct cgroup_at *at = &f->place->at[hierarchy];
	_cleanup_close_ int root = -1;
	char path[PATH_MAX];
	int r;

	if (!mount)
		return -ENOENT;
	r = cgroup_open_mount(mount, &root);
	if (r < 0)
		return r;
	r = cgroup_open(root, strip_mount_point(f, f->target), at->path, &at->fd);
	if (r == -ENOENT && !strchr(f->target, '/') && is_unit(f->target)) {
		r = search_unit(f, root, path);
		if (r == 0)
			r = cgroup_open(root, path, at->path, &at->fd);
	}
	return r;
}

/* Said even where what comes before it does not exist. */
static bool has_parent(const char *path)
{
	const char *at = path;

	while ((at = strstr(at, ".."))) {
		if ((at == path || at[-1] == '/') && (at[2] == '/' || at[2] == 0))
			return true;
		at += 2;
	}
	return false;
}

/* Whether its ".." lead above where it begins; those of "/a/../b" do not. */
static bool leaves_root(const char *path)
{
	struct cursor c = cursor_over(path, strlen(path)), part;
	int depth = 0;

	while (!cursor_eof(&c) && depth >= 0) {
		part = c;
		if (cursor_until(&c, '/', &part) < 0)
			c.p = c.end;
		if (cursor_equals(&part, ".."))
			depth--;
		else
			depth += !cursor_eof(&part) && !cursor_equals(&part, ".");
	}
	return depth < 0;
}

static int refuse_parent(const struct finding_place *f)
{
	if (leaves_root(strip_mount_point(f, f->target)))
		return refuse(f, -EXDEV);
	devcgroup_because(f->why,
			  "%s: \"..\" in a path is not followed: name the cgroup by a path without it",
			  f->target);
	return -EINVAL;
}

static int find_named(struct finding_place *f)
{
	bool found = false;

	if (strlen(f->target) >= PATH_MAX)
		return refuse(f, -ENAMETOOLONG);
	if (STRV_EQ(f->target, ".") || strncmp(f->target, "./", 2) == 0)
		return refuse(f, -EINVAL);
	if (has_parent(f->target))
		return refuse_parent(f);
	for (int h = 0; h < HIERARCHIES; h++) {
		int r = open_named(f, (enum hierarchy)h);

		if (r == -ENOTUNIQ)
			return r;
		if (r < 0 && r != -ENOENT)
			return refuse(f, r);
		found |= r == 0;
	}
	return found ? 0 : refuse(f, -ENOENT);
}

/* ---- both ---- */

static void find_unit(struct place *place)
{
	for (int h = HIERARCHIES; h-- > 0 && !place->unit[0];) {
		char path[PATH_MAX];
		char *slash;

		if (place->at[h].fd < 0)
			continue;
		strcpy(path, place->at[h].path);
		while ((slash = strrchr(path, '/')) && !place->unit[0]) {
			if (is_unit(slash + 1) && strlen(slash + 1) < sizeof(place->unit))
				strcpy(place->unit, slash + 1);
			*slash = 0;
		}
	}
}

int place_find(const struct devcgroup_host *host, const char *target, struct place *ret_place,
	       struct devcgroup_why *why)
{
	struct place place = PLACE_NONE;
	_cleanup_free_ struct finding_place *f = calloc(1, sizeof(*f));
	uint64_t pid = 0;
	int r;

	if (!f) {
		devcgroup_because(why, "out of memory");
		return -ENOMEM;
	}
	*f = (struct finding_place){ .host = host, .target = target, .place = &place, .why = why };
	if (!*target) {
		devcgroup_because(why,
				  "the cgroup's name is empty: name a PID, a path (/ is the root of all), "
				  "or a unit of systemd");
		return -EINVAL;
	}
	r = cgroup_mounts_read(host, &f->mounts);
	if (r < 0)
		devcgroup_because(why, "%s/self/mountinfo: %s", host->proc, strerror(-r));
	else if (!cgroup_mount_of(host, &f->mounts, HIERARCHY_V1) &&
		 !cgroup_mount_of(host, &f->mounts, HIERARCHY_V2)) {
		devcgroup_because(why,
				  "neither the controller \"devices\" of cgroup version 1 nor version 2 is "
				  "mounted%s%s: mount the host's /sys/fs/cgroup here",
				  *host->cgroups ? " below " : "", host->cgroups);
		r = -ENOENT;
	} else if (STRV_EQ(target, "self"))
		r = find_process(f, (uint32_t)getpid());
	else if (parse_u64(target, &pid) == 0)
		r = pid > 0 && pid <= INT32_MAX ? find_process(f, (uint32_t)pid) : refuse(f, -ESRCH);
	else
		r = find_named(f);
	if (r < 0) {
		place_done(&place);
		return r;
	}
	find_unit(&place);
	*ret_place = place;
	return 0;
}
