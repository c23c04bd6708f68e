// SPDX-License-Identifier: Apache-2.0
#include "devcgroup/hierarchy.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/cursor.h"

enum {
	MOUNTINFO_BYTES = 4 << 20,
	DEPTH_MAX = 64,
	DIRECTORIES_MAX = 200000, /* looked at in one search */
};

/* ---- mounts ---- */

static bool is_octal(char c)
{
	return c >= '0' && c <= '7';
}

/* Octal escapes, see proc_pid_mountinfo(5). -EBADMSG: it does not fit. */
static int unescape(const struct cursor *field, char buf[static PATH_MAX])
{
	size_t n = 0;

	for (const char *p = field->p; p < field->end; p++) {
		unsigned value = (unsigned char)*p;

		if (value == '\\' && field->end - p > 3 && is_octal(p[1]) && is_octal(p[2]) &&
		    is_octal(p[3])) {
			value = (unsigned)(p[1] - '0') << 6 | (unsigned)(p[2] - '0') << 3 |
				(unsigned)(p[3] - '0');
			p += 3;
		}
		if (n + 1 >= PATH_MAX || value == 0 || value > 255)
			return -EBADMSG;
		buf[n++] = (char)value;
	}
	buf[n] = 0;
	return n > 0 && buf[0] == '/' ? 0 : -EBADMSG;
}

static bool has_word(struct cursor list, const char *word)
{
	while (!cursor_eof(&list)) {
		struct cursor one = list;

		if (cursor_until(&list, ',', &one) < 0)
			list.p = list.end;
		if (cursor_equals(&one, word))
			return true;
	}
	return false;
}

/* "36 35 98:0 /root /point rw,relatime shared:1 - cgroup cgroup rw,devices" */
int cgroup_mount_parse(const char *line, size_t n, struct cgroup_mount *ret_mount)
{
	struct cursor c = cursor_over(line, n), field, root, point, type;
	struct cgroup_mount mount;

	for (unsigned i = 0; i < 3; i++)
		if (cursor_until(&c, ' ', &field) < 0)
			return -EBADMSG;
	if (cursor_until(&c, ' ', &root) < 0 || cursor_until(&c, ' ', &point) < 0)
		return -EBADMSG;
	do {
		if (cursor_until(&c, ' ', &field) < 0)
			return -EBADMSG;
	} while (!cursor_equals(&field, "-"));
	if (cursor_until(&c, ' ', &type) < 0 || cursor_until(&c, ' ', &field) < 0)
		return -EBADMSG;
	if (cursor_equals(&type, "cgroup2"))
		mount.hierarchy = HIERARCHY_V2;
	else if (cursor_equals(&type, "cgroup"))
		mount.hierarchy = has_word(c, "devices") ? HIERARCHY_V1 : HIERARCHIES;
	else
		return -ENOENT;
	if (unescape(&root, mount.root) < 0 || unescape(&point, mount.point) < 0)
		return -EBADMSG;
	*ret_mount = mount;
	return 0;
}

int cgroup_mounts_read(const struct devcgroup_host *host, struct cgroup_mounts *ret_mounts)
{
	_cleanup_free_ char *text = malloc(MOUNTINFO_BYTES);
	char path[PATH_MAX];
	struct cursor c, line;
	size_t n;
	int r;

	if (!text)
		return -ENOMEM;
	snprintf(path, sizeof(path), "%s/self/mountinfo", host->proc);
	r = read_file(path, text, MOUNTINFO_BYTES, &n);
	if (r < 0)
		return r;
	ret_mounts->n = 0;
	c = cursor_over(text, n);
	while (!cursor_eof(&c) && ret_mounts->n < MOUNTS_MAX) {
		line = c;
		if (cursor_until(&c, '\n', &line) < 0)
			c.p = c.end;
		if (cgroup_mount_parse(line.p, cursor_left(&line), &ret_mounts->list[ret_mounts->n]) == 0)
			ret_mounts->n++;
	}
	return 0;
}

static bool lies_below(const char *path, const char *folder)
{
	size_t n = strlen(folder);

	while (n > 0 && folder[n - 1] == '/')
		n--;
	return strncmp(path, folder, n) == 0 && (path[n] == '/' || path[n] == 0);
}

static unsigned levels_above(const char *root)
{
	unsigned n = 0;

	for (; strncmp(root, "/..", 3) == 0 && (root[3] == '/' || root[3] == 0); root += 3)
		n++;
	return n;
}

/* Higher is better: above our namespace's root, at it, a part of it. */
static unsigned extent(const struct cgroup_mount *mount)
{
	return levels_above(mount->root) ? 2 + levels_above(mount->root) : STRV_EQ(mount->root, "/");
}

const struct cgroup_mount *cgroup_mount_of(const struct devcgroup_host *host,
					   const struct cgroup_mounts *mounts, enum hierarchy hierarchy)
{
	const struct cgroup_mount *best = NULL;

	for (unsigned i = 0; i < mounts->n; i++) {
		const struct cgroup_mount *mount = &mounts->list[i];

		if (mount->hierarchy == (int)hierarchy &&
		    (!*host->cgroups || lies_below(mount->point, host->cgroups)) &&
		    (!best || extent(mount) > extent(best)))
			best = mount;
	}
	return best;
}

/* ---- /proc/PID/cgroup ---- */

int cgroup_line_find(const char *text, size_t n, enum hierarchy hierarchy, char *buf, size_t size)
{
	struct cursor c = cursor_over(text, strnlen(text, n)), line, number, controllers;

	while (!cursor_eof(&c)) {
		line = c;
		if (cursor_until(&c, '\n', &line) < 0)
			c.p = c.end;
		if (cursor_until(&line, ':', &number) < 0 || cursor_until(&line, ':', &controllers) < 0)
			continue;
		if (hierarchy == HIERARCHY_V2 ? !cursor_equals(&number, "0") || !cursor_eof(&controllers) :
						!has_word(controllers, "devices"))
			continue;
		if (cursor_eof(&line) || *line.p != '/' || cursor_left(&line) >= size)
			return -EBADMSG;
		memcpy(buf, line.p, cursor_left(&line));
		buf[cursor_left(&line)] = 0;
		return 0;
	}
	return -ENOENT;
}

/* ---- directories ---- */

int cgroup_open_mount(const struct cgroup_mount *mount, int *ret_fd)
{
	int fd = open(mount->point, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

int cgroup_open(int root, const char *path, char ret_path[static PATH_MAX], int *ret_fd)
{
	_cleanup_close_ int fd = openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct cursor c = cursor_over(path, strlen(path)), part;
	char opened[PATH_MAX] = "", name[NAME_MAX + 1];
	size_t n = 0;

	if (fd < 0)
		return -errno;
	while (!cursor_eof(&c)) {
		int next;

		part = c;
		if (cursor_until(&c, '/', &part) < 0)
			c.p = c.end;
		if (cursor_eof(&part) || cursor_equals(&part, "."))
			continue;
		if (cursor_equals(&part, ".."))
			return -EXDEV;
		if (cursor_left(&part) > NAME_MAX || n + cursor_left(&part) + 2 > sizeof(opened))
			return -ENAMETOOLONG;
		snprintf(name, sizeof(name), "%.*s", (int)cursor_left(&part), part.p);
		next = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0)
			return -errno;
		close(fd);
		fd = next;
		n += (size_t)snprintf(opened + n, sizeof(opened) - n, "/%s", name);
	}
	strcpy(ret_path, n ? opened : "/");
	*ret_fd = TAKE_FD(fd);
	return 0;
}

struct walk {
	const struct cgroup_search *search;
	char (*paths)[PATH_MAX];
	unsigned max;
	int found;
	unsigned looked_at;
	char path[PATH_MAX];
};

/* Takes the descriptor. */
static int walk_folder(struct walk *walk, int fd, size_t length, unsigned depth)
{
	DIR *dir = fdopendir(fd);
	int r = 0;

	if (!dir) {
		close(fd);
		return -errno;
	}
	for (struct dirent *e; r == 0 && (e = readdir(dir));) {
		size_t n = strlen(e->d_name);
		int sub;

		if (e->d_name[0] == '.' || (e->d_type != DT_DIR && e->d_type != DT_UNKNOWN) ||
		    length + n + 2 > PATH_MAX)
			continue;
		if (depth == DEPTH_MAX || walk->looked_at++ == DIRECTORIES_MAX) {
			r = -E2BIG;
			break;
		}
		walk->path[length] = '/';
		memcpy(walk->path + length + 1, e->d_name, n + 1);
		if (walk->search->is(walk->search, fd, e->d_name)) {
			if ((unsigned)walk->found < walk->max)
				strcpy(walk->paths[walk->found], walk->path);
			walk->found++;
		}
		sub = openat(fd, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (sub >= 0)
			r = walk_folder(walk, sub, length + 1 + n, depth + 1);
	}
	closedir(dir);
	return r;
}

int cgroup_search(int root, const struct cgroup_search *search, char (*ret_paths)[PATH_MAX], unsigned max)
{
	struct walk walk = { .search = search, .paths = ret_paths, .max = max };
	int fd = openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r;

	if (fd < 0)
		return -errno;
	r = walk_folder(&walk, fd, 0, 0);
	return r < 0 ? r : walk.found;
}

bool cgroup_has_inode(const struct cgroup_search *search, int parent, const char *name)
{
	struct stat st;

	return fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode) &&
	       st.st_dev == search->dev && st.st_ino == search->ino;
}

bool cgroup_has_name(const struct cgroup_search *search, _unused_ int parent, const char *name)
{
	return STRV_EQ(name, search->name);
}

/* ---- namespaces ---- */

/* The path of our namespace's root below @mount, whose root is above it: of the same inode. */
static int find_own_root(const struct cgroup_mounts *mounts, const struct cgroup_mount *mount,
			 char ret_path[static PATH_MAX])
{
	struct cgroup_search search = { .is = cgroup_has_inode };
	_cleanup_close_ int root = -1;
	bool known = false;
	struct stat st;
	int r;

	for (unsigned i = 0; i < mounts->n && !known; i++) {
		if (mounts->list[i].hierarchy != mount->hierarchy || !STRV_EQ(mounts->list[i].root, "/") ||
		    stat(mounts->list[i].point, &st) < 0)
			continue;
		search.dev = st.st_dev;
		search.ino = st.st_ino;
		known = true;
	}
	if (!known)
		return -EXDEV;
	r = cgroup_open_mount(mount, &root);
	if (r == 0)
		r = cgroup_search(root, &search, (char(*)[PATH_MAX])ret_path, 1);
	return r < 0 ? r : r == 0 ? -EXDEV : 0;
}

/* @base with @path's components added, each ".." of which takes one away. */
static int join(const char *base, const char *path, char ret_path[static PATH_MAX])
{
	struct cursor c = cursor_over(path, strlen(path)), part;
	char joined[PATH_MAX];
	size_t n = strlen(base);

	memcpy(joined, base, n + 1);
	while (!cursor_eof(&c)) {
		part = c;
		if (cursor_until(&c, '/', &part) < 0)
			c.p = c.end;
		if (cursor_eof(&part))
			continue;
		if (cursor_equals(&part, "..")) {
			if (n == 0)
				return -EXDEV;
			while (n > 0 && joined[--n] != '/')
				;
			joined[n] = 0;
			continue;
		}
		if (n + cursor_left(&part) + 2 > sizeof(joined))
			return -ENAMETOOLONG;
		n += (size_t)snprintf(joined + n, sizeof(joined) - n, "/%.*s", (int)cursor_left(&part),
				      part.p);
	}
	strcpy(ret_path, n ? joined : "/");
	return 0;
}

int cgroup_path_below(const struct cgroup_mounts *mounts, const struct cgroup_mount *mount, const char *path,
		      char ret_path[static PATH_MAX])
{
	char base[PATH_MAX] = "";
	int r;

	if (levels_above(mount->root) > 0) {
		r = find_own_root(mounts, mount, base);
		return r < 0 ? r : join(base, path, ret_path);
	}
	if (STRV_EQ(mount->root, "/"))
		return join("", path, ret_path);
	if (!lies_below(path, mount->root))
		return -EXDEV;
	return join("", path + strlen(mount->root), ret_path);
}
