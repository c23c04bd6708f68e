// SPDX-License-Identifier: Apache-2.0
#include "proc/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "proc/user.h"

enum {
	TABLE_MAX = 16 << 20, /* bytes of a table; machines with thousands of containers have some MiB */
	LAYERS_DEPTH = 2, /* overlay over overlay, as deep as the kernel allows */
};

/* A mount table, read again when the kernel says that it has changed. */
struct table {
	int fd; /* -1: cannot be read */
	char *text;
	struct mount_line *lines;
	size_t lines_n;
};

enum { TABLE_FIRST, TABLE_OWN, TABLES };

struct mounts {
	char proc_root[64];
	struct table tables[TABLES];
};

/*
 * Types of file systems by where their pages come from. What is not here is not known to be local.
 */
static const struct {
	const char *type;
	enum mount_kind kind;
} types[] = {
	{ "ext2", MOUNT_LOCAL },     { "ext3", MOUNT_LOCAL },       { "ext4", MOUNT_LOCAL },
	{ "xfs", MOUNT_LOCAL },      { "btrfs", MOUNT_LOCAL },      { "f2fs", MOUNT_LOCAL },
	{ "bcachefs", MOUNT_LOCAL }, { "zfs", MOUNT_LOCAL },        { "tmpfs", MOUNT_LOCAL },
	{ "ramfs", MOUNT_LOCAL },    { "rootfs", MOUNT_LOCAL },     { "squashfs", MOUNT_LOCAL },
	{ "erofs", MOUNT_LOCAL },    { "iso9660", MOUNT_LOCAL },    { "jfs", MOUNT_LOCAL },
	{ "nfs", MOUNT_NETWORK },    { "nfs4", MOUNT_NETWORK },     { "cifs", MOUNT_NETWORK },
	{ "smb3", MOUNT_NETWORK },   { "lustre", MOUNT_NETWORK },   { "ceph", MOUNT_NETWORK },
	{ "gpfs", MOUNT_NETWORK },   { "beegfs", MOUNT_NETWORK },   { "wekafs", MOUNT_NETWORK },
	{ "gfs2", MOUNT_NETWORK },   { "ocfs2", MOUNT_NETWORK },    { "afs", MOUNT_NETWORK },
	{ "9p", MOUNT_NETWORK },     { "virtiofs", MOUNT_NETWORK },
};

enum mount_kind mount_kind_of_type(const char *type)
{
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (strcmp(types[i].type, type) == 0)
			return types[i].kind;
	return MOUNT_USERS;
}

/* ---- lines ---- */

/* Spaces, tabs, newlines and backslashes are written as \ooo. */
static void unescape(char *text)
{
	char *to = text;

	for (const char *from = text; *from; to++) {
		if (from[0] == '\\' && from[1] >= '0' && from[1] <= '3' && from[2] >= '0' && from[2] <= '7' &&
		    from[3] >= '0' && from[3] <= '7') {
			*to = (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0'));
			from += 4;
		} else {
			*to = *from++;
		}
	}
	*to = '\0';
}

static char *next_word(char **at)
{
	char *word = strsep(at, " ");

	return word ? word : (char *)"";
}

int mount_line_parse(char *line, struct mount_line *ret_line)
{
	unsigned major, minor;
	char *at = line, *word;

	if (parse_u64(next_word(&at), &ret_line->id) < 0)
		return -EBADMSG;
	next_word(&at); /* the parent's number */
	if (sscanf(next_word(&at), "%u:%u", &major, &minor) != 2)
		return -EBADMSG;
	ret_line->dev = makedev(major, minor);
	next_word(&at); /* the folder of the file system that is mounted */
	ret_line->point = next_word(&at);
	do
		word = next_word(&at);
	while (at && strcmp(word, "-") != 0);
	ret_line->type = next_word(&at);
	next_word(&at); /* the source */
	ret_line->options = next_word(&at);
	if (!*ret_line->point || !*ret_line->type)
		return -EBADMSG;
	unescape(ret_line->point);
	return 0;
}

/* ---- tables ---- */

static void table_empty(struct table *table)
{
	free(TAKE_PTR(table->text));
	free(TAKE_PTR(table->lines));
	table->lines_n = 0;
}

static int read_text(int fd, char **ret_text)
{
	_cleanup_free_ char *text = NULL;
	size_t n = 0, cap = 16 << 10;

	if (lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	for (;;) {
		char *grown = realloc(text, cap);
		ssize_t got;

		if (!grown)
			return -ENOMEM;
		text = grown;
		got = read(fd, text + n, cap - n - 1);
		if (got < 0)
			return -errno;
		n += (size_t)got;
		if (got == 0)
			break;
		if (n + 1 >= cap) {
			if (cap >= TABLE_MAX)
				return -E2BIG;
			cap *= 2;
		}
	}
	text[n] = '\0';
	*ret_text = TAKE_PTR(text);
	return 0;
}

static int table_read(struct table *table)
{
	char *at, *line;
	size_t cap = 0;
	int r;

	table_empty(table);
	r = read_text(table->fd, &table->text);
	if (r < 0)
		return r;
	for (const char *c = table->text; *c; c++)
		cap += *c == '\n';
	table->lines = calloc(cap + 1, sizeof(*table->lines));
	if (!table->lines)
		return -ENOMEM;
	at = table->text;
	while ((line = strsep(&at, "\n")) && table->lines_n <= cap)
		if (mount_line_parse(line, &table->lines[table->lines_n]) == 0)
			table->lines_n++;
	return 0;
}

/* Without a table nothing is known to be local. */
static void table_refresh(struct table *table)
{
	struct pollfd changed = { .fd = table->fd, .events = POLLPRI };

	if (table->fd < 0 || (table->text && poll(&changed, 1, 0) == 0))
		return;
	if (table_read(table) < 0)
		table_empty(table);
}

static void table_open(struct table *table, const char *path)
{
	table->fd = open(path, O_RDONLY | O_CLOEXEC);
}

static void table_done(struct table *table)
{
	table_empty(table);
	closep(&table->fd);
}

static const struct mount_line *by_id(const struct table *table, uint64_t id)
{
	for (size_t i = 0; i < table->lines_n; i++)
		if (table->lines[i].id == id)
			return &table->lines[i];
	return NULL;
}

static const struct mount_line *by_dev(const struct table *table, uint64_t dev, const char *type)
{
	for (size_t i = 0; i < table->lines_n; i++)
		if (table->lines[i].dev == dev && strcmp(table->lines[i].type, type) == 0)
			return &table->lines[i];
	return NULL;
}

/* The mount other than @except that an absolute path lies on. Later lines lie over earlier ones. */
static const struct mount_line *by_path(const struct table *table, const char *path,
					const struct mount_line *except)
{
	const struct mount_line *found = NULL;
	size_t longest = 0;

	for (size_t i = 0; i < table->lines_n; i++) {
		const char *point = table->lines[i].point;
		size_t n = strcmp(point, "/") == 0 ? 0 : strlen(point);

		if (&table->lines[i] != except && n >= longest && strncmp(path, point, n) == 0 &&
		    (path[n] == '/' || path[n] == '\0')) {
			found = &table->lines[i];
			longest = n;
		}
	}
	return found;
}

/* ---- kinds ---- */

static enum mount_kind kind_of_line(const struct table *table, const struct mount_line *line, unsigned depth);

/*
 * A container runtime or an initramfs has made such an overlay, as root, of folders that the table does not
 * show.
 */
static bool is_root_of(const struct table *table, const struct mount_line *line)
{
	return line >= table->lines && line < table->lines + table->lines_n && strcmp(line->point, "/") == 0;
}

static enum mount_kind kind_of_path(const struct table *table, const struct mount_line *overlay,
				    const char *path, unsigned depth)
{
	const struct mount_line *line = by_path(table, path, overlay);

	if (depth == 0)
		return MOUNT_USERS;
	if (line)
		return kind_of_line(table, line, depth - 1);
	return is_root_of(table, overlay) ? MOUNT_LOCAL : MOUNT_USERS;
}

/*
 * A layer that is given relatively belongs to the folder that its mounter was in, which the table does not
 * say. Container runtimes are in one that the mount point lies below: in all of those it must be local.
 */
static enum mount_kind kind_of_relative(const struct table *table, const struct mount_line *overlay,
					const char *layer, unsigned depth)
{
	const char *from = overlay->point;
	char path[8192];
	size_t n = strlen(from);
	enum mount_kind kind = MOUNT_LOCAL;

	for (;;) {
		enum mount_kind one;

		if ((size_t)snprintf(path, sizeof(path), "%.*s/%s", (int)n, from, layer) >= sizeof(path))
			return MOUNT_USERS;
		one = kind_of_path(table, overlay, path, depth);
		kind = MAX(kind, one);
		while (n > 0 && from[n - 1] != '/')
			n--;
		if (n == 0)
			return kind;
		n--;
	}
}

static enum mount_kind kind_of_layer(const struct table *table, const struct mount_line *overlay,
				     const char *layer, unsigned depth)
{
	return layer[0] == '/' ? kind_of_path(table, overlay, layer, depth) :
				 kind_of_relative(table, overlay, layer, depth);
}

/* The next of a list of layers; a colon in the name of one is escaped with a backslash. */
static char *next_layer(char *at)
{
	for (; *at && *at != ':'; at++)
		if (*at == '\\' && at[1])
			at++;
	if (!*at)
		return NULL;
	*at = '\0';
	return at + 1;
}

/* Removes overlay's own escapes. */
static void unescape_layer(char *layer)
{
	char *to = layer;

	for (const char *from = layer; *from; from++) {
		if (*from == '\\' && from[1])
			from++;
		*to++ = *from;
	}
	*to = '\0';
}

static enum mount_kind kind_of_layers(const struct table *table, const struct mount_line *overlay, char *list,
				      unsigned depth)
{
	enum mount_kind kind = MOUNT_LOCAL;
	unsigned n = 0;

	for (char *layer = list, *next; layer; layer = next) {
		enum mount_kind one;

		next = next_layer(layer);
		/* "::" begins layers of data only. */
		if (!*layer)
			continue;
		unescape_layer(layer);
		one = kind_of_layer(table, overlay, layer, depth);
		kind = MAX(kind, one);
		n++;
	}
	return n ? kind : MOUNT_USERS;
}

/* An overlay is as good as its worst layer. */
static enum mount_kind kind_of_overlay(const struct table *table, const struct mount_line *line,
				       unsigned depth)
{
	static const char *const names[] = { "lowerdir=", "upperdir=", "lowerdir+=", "datadir+=" };
	_cleanup_free_ char *options = strdup(line->options);
	enum mount_kind kind = MOUNT_LOCAL;
	char *at = options, *option;
	unsigned layers = 0;

	while (at && (option = strsep(&at, ","))) {
		unescape(option);
		for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
			size_t n = strlen(names[i]);
			enum mount_kind one;

			if (strncmp(option, names[i], n) != 0)
				continue;
			one = kind_of_layers(table, line, option + n, depth);
			kind = MAX(kind, one);
			layers++;
		}
	}
	return layers ? kind : MOUNT_USERS;
}

static enum mount_kind kind_of_line(const struct table *table, const struct mount_line *line, unsigned depth)
{
	return strcmp(line->type, "overlay") == 0 ? kind_of_overlay(table, line, depth) :
						    mount_kind_of_type(line->type);
}

/*
 * Whether the process is in the machine's first user namespace. Its number is fixed; PID 1 is not asked,
 * since some machines let nobody look into it.
 */
static bool in_first_namespace(int process)
{
	char first[64], theirs[64];
	ssize_t n = snprintf(first, sizeof(first), "user:[%u]", USER_NAMESPACE_INIT);

	return readlinkat(process, "ns/user", theirs, sizeof(theirs)) == n &&
	       memcmp(first, theirs, (size_t)n) == 0;
}

/* With fusermount, users mount in root's namespace what programs of theirs serve. */
static bool is_served_by_user(const struct mount_line *line)
{
	static const char name[] = "user_id=";
	const char *at = line->options;

	if (strncmp(line->type, "fuse", strlen("fuse")) != 0)
		return false;
	while (strncmp(at, name, strlen(name)) != 0) {
		at = strchr(at, ',');
		if (!at)
			return true; /* it is not said who serves it */
		at++;
	}
	return strtoul(at + strlen(name), NULL, 10) != 0;
}

/* A mount that root's tables have, or that is in a namespace of root's. */
static void set_found(struct mount_found *found, const struct table *table, const struct mount_line *line,
		      bool path_by_root)
{
	found->kind = kind_of_line(table, line, LAYERS_DEPTH);
	found->by_root = !is_served_by_user(line);
	found->path_by_root = found->by_root && path_by_root;
	snprintf(found->type, sizeof(found->type), "%s", line->type);
}

/*
 * A mount that only the process's namespace has. It is root's if root's table has the same file system; or if
 * the process is in the first user namespace, since the mount namespaces of those are root's, too.
 */
static void find_in_process(struct mounts *mounts, int32_t pid, uint64_t mount_id, struct mount_found *found)
{
	_cleanup_(table_done) struct table table = { .fd = -1 };
	_cleanup_close_ int process = -1;
	const struct mount_line *theirs = NULL, *line;
	char path[96];
	bool roots;

	/* Both are read through the open folder, which does not become another process's. */
	snprintf(path, sizeof(path), "%s/%d", mounts->proc_root, (int)pid);
	process = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (process >= 0)
		table.fd = openat(process, "mountinfo", O_RDONLY | O_CLOEXEC);
	if (table.fd >= 0 && table_read(&table) == 0)
		theirs = by_id(&table, mount_id);
	if (!theirs)
		return;
	roots = in_first_namespace(process);
	for (unsigned i = 0; i < TABLES; i++) {
		line = by_dev(&mounts->tables[i], theirs->dev, theirs->type);
		if (line) {
			set_found(found, &mounts->tables[i], line, roots);
			return;
		}
	}
	if (roots)
		set_found(found, &mounts->tables[TABLE_FIRST], theirs, true);
	else
		snprintf(found->type, sizeof(found->type), "%s", theirs->type);
}

void mounts_find(struct mounts *mounts, int32_t pid, uint64_t mount_id, struct mount_found *ret_found)
{
	*ret_found = (struct mount_found){ .kind = MOUNT_USERS };
	/* The file is held open, so what the tables say now of its mount and device is still about them. */
	for (unsigned i = 0; i < TABLES; i++) {
		const struct mount_line *line;

		table_refresh(&mounts->tables[i]);
		line = by_id(&mounts->tables[i], mount_id);
		if (line) {
			set_found(ret_found, &mounts->tables[i], line, true);
			return;
		}
	}
	if (pid)
		find_in_process(mounts, pid, mount_id, ret_found);
}

int mounts_admit(int handle, void *userdata)
{
	const struct mounts_user *user = userdata;
	struct mount_found mount;
	struct statx st;

	if (statx(handle, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_MNT_ID, &st) < 0)
		return -errno;
	mounts_find(user->mounts, user->pid, st.stx_mnt_id, &mount);
	return mount.kind == MOUNT_LOCAL || mount.by_root;
}

int mounts_new(const char *proc_root, struct mounts **ret_mounts)
{
	struct mounts *mounts = calloc(1, sizeof(*mounts));
	char path[96];

	if (!mounts)
		return -ENOMEM;
	snprintf(mounts->proc_root, sizeof(mounts->proc_root), "%s", proc_root);
	snprintf(path, sizeof(path), "%s/1/mountinfo", mounts->proc_root);
	table_open(&mounts->tables[TABLE_FIRST], path);
	snprintf(path, sizeof(path), "%s/self/mountinfo", mounts->proc_root);
	table_open(&mounts->tables[TABLE_OWN], path);
	*ret_mounts = mounts;
	return 0;
}

void mounts_free(struct mounts *mounts)
{
	if (!mounts)
		return;
	for (unsigned i = 0; i < TABLES; i++)
		table_done(&mounts->tables[i]);
	free(mounts);
}
