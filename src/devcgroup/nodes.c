// SPDX-License-Identifier: Apache-2.0
/*
 * NVIDIA's character devices: majors from /proc/devices, since all but 195 are dynamic; nodes from /dev;
 * minors that should have a node from the driver's files, "Device Minor:" of /proc/driver/nvidia/gpus,
 * and 255 for nvidiactl, 0 for nvidia-uvm (NVIDIA's README, "Creating the device files").
 */
#include "devcgroup/devcgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include "base/cursor.h"
#include "helper/starter.h"

#define PREFIX "nvidia"
enum {
	MAJOR_NVIDIA = 195,
	MINOR_CONTROL = 255,
	DEVICES_BYTES = 16 << 10,
	READ_MS = 3000,
	ENTRIES_MAX = 65536, /* of a folder, looked at */
};

void devcgroup_because(struct devcgroup_why *why, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(why->text, sizeof(why->text), fmt, args);
	va_end(args);
}

/* ---- majors ---- */

static void add_driver(struct drivers *drivers, uint32_t major, const struct cursor *name)
{
	struct driver *driver = &drivers->list[drivers->n];

	if (drivers->n == DRIVERS_MAX) {
		drivers->dropped++;
		return;
	}
	driver->major = major;
	snprintf(driver->name, sizeof(driver->name), "%.*s", (int)cursor_left(name), name->p);
	drivers->n++;
}

void drivers_parse(const char *text, size_t n, struct drivers *ret_drivers)
{
	struct cursor c = cursor_over(text, n), line, name;
	bool characters = false;
	uint64_t major;

	memset(ret_drivers, 0, sizeof(*ret_drivers));
	while (!cursor_eof(&c)) {
		line = c;
		if (cursor_until(&c, '\n', &line) < 0)
			c.p = c.end;
		if (cursor_equals(&line, "Character devices:") || cursor_equals(&line, "Block devices:")) {
			characters = *line.p == 'C';
			continue;
		}
		cursor_skip_space(&line);
		if (!characters || cursor_u64(&line, &major) < 0 || major >= UINT32_MAX)
			continue;
		cursor_skip_space(&line);
		name = line;
		if (cursor_literal(&line, PREFIX))
			add_driver(ret_drivers, (uint32_t)major, &name);
	}
}

int drivers_read(const struct devcgroup_host *host, struct drivers *ret_drivers)
{
	char text[DEVICES_BYTES];
	struct drivers drivers;
	size_t n;
	int r = read_file(host->devices, text, sizeof(text), &n);

	if (r < 0)
		return r;
	drivers_parse(text, n, &drivers);
	if (drivers.n == 0)
		return -ENODEV;
	*ret_drivers = drivers;
	return 0;
}

const char *drivers_name(const struct drivers *drivers, uint32_t major)
{
	for (unsigned i = 0; i < drivers->n; i++)
		if (drivers->list[i].major == major)
			return drivers->list[i].name;
	return NULL;
}

unsigned drivers_majors(const struct drivers *drivers, uint32_t ret_majors[static DRIVERS_MAX])
{
	unsigned n = 0;

	for (unsigned i = 0; i < drivers->n; i++) {
		bool seen = false;

		for (unsigned j = 0; j < n; j++)
			seen |= ret_majors[j] == drivers->list[i].major;
		if (!seen)
			ret_majors[n++] = drivers->list[i].major;
	}
	return n;
}

/* ---- nodes ---- */

static struct node *node_of(struct nodes *nodes, uint32_t major, uint32_t minor)
{
	struct node *node;

	for (unsigned i = 0; i < nodes->n; i++)
		if (nodes->list[i].major == major && nodes->list[i].minor == minor)
			return &nodes->list[i];
	if (nodes->n == NODES_MAX) {
		nodes->dropped++;
		return NULL;
	}
	node = &nodes->list[nodes->n++];
	*node = (struct node){ .major = major, .minor = minor };
	return node;
}

static void take_node(struct nodes *nodes, const struct stat *st, const char *folder, const char *name,
		      bool there)
{
	struct node *node = node_of(nodes, major(st->st_rdev), minor(st->st_rdev));

	if (!node)
		return;
	if (!node->name[0])
		snprintf(node->name, sizeof(node->name), "%s%.*s", folder,
			 (int)(sizeof(node->name) - 1 - strlen(folder)), name);
	if (there) {
		nodes->there_n += !node->there;
		node->there = true;
		if (!node->given && node->here && node->dev == st->st_dev && node->ino == st->st_ino) {
			node->given = true;
			nodes->given_n++;
		}
	} else if (!node->here) {
		node->here = true;
		node->dev = st->st_dev;
		node->ino = st->st_ino;
	}
}

/* One folder, and those in it that are named as NVIDIA's (nvidia-caps). Symbolic links are not followed. */
static void read_folder(int fd, const char *folder, const struct drivers *drivers, bool there,
			struct nodes *nodes)
{
	DIR *dir = fdopendir(fd);
	unsigned seen = 0;

	if (!dir) {
		close(fd);
		return;
	}
	for (struct dirent *e; seen++ < ENTRIES_MAX && (e = readdir(dir));) {
		struct stat st;
		char inner[NODE_NAME];
		int sub;

		if ((!*folder && strncmp(e->d_name, PREFIX, strlen(PREFIX)) != 0) ||
		    fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (S_ISCHR(st.st_mode) && drivers_name(drivers, major(st.st_rdev)))
			take_node(nodes, &st, folder, e->d_name, there);
		if (*folder || !S_ISDIR(st.st_mode))
			continue;
		sub = openat(dirfd(dir), e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		snprintf(inner, sizeof(inner), "%.48s/", e->d_name);
		if (sub >= 0)
			read_folder(sub, inner, drivers, there, nodes);
	}
	closedir(dir);
}

bool node_matters(const struct nodes *nodes, const struct node *node)
{
	if (nodes->given_n > 0)
		return node->given;
	return nodes->there_n == 0 || node->there;
}

static void read_dev(const char *path, const struct drivers *drivers, struct nodes *nodes)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0)
		read_folder(fd, "", drivers, false, nodes);
}

/* A symbolic link that a process has put in the place of its /dev would lead to ours. */
static void read_dev_below(const char *root, const struct drivers *drivers, struct nodes *nodes)
{
	_cleanup_close_ int folder = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int fd = folder < 0 ? -1 : openat(folder, "dev", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return;
	nodes->there_known = true;
	read_folder(fd, "", drivers, true, nodes);
}

struct reading {
	const char *root;
	const struct drivers *drivers;
	struct nodes *shared;
	pid_t child;
};

/* In the starter's thread. The end of the pipe, fds[0], is closed when the child has ended. */
static int start_reading(_unused_ const int fds[], void *userdata)
{
	struct reading *reading = userdata;

	reading->child = fork();
	if (reading->child == 0) {
		read_dev_below(reading->root, reading->drivers, reading->shared);
		_exit(0);
	}
	return reading->child < 0 ? -errno : 0;
}

/*
 * Of the process's /dev, which may be a file system of a user's that does not answer: a child reads it into
 * memory that we share.
 */
static void read_dev_of(const char *root, const struct drivers *drivers, struct nodes *nodes)
{
	struct nodes *shared =
		mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct reading reading = { .root = root, .drivers = drivers, .shared = shared };
	struct pollfd end = { .events = POLLIN };
	int pipes[2], r;

	if (shared == MAP_FAILED)
		return;
	if (pipe2(pipes, O_CLOEXEC) < 0)
		goto out;
	*shared = *nodes;
	r = starter_run(start_reading, &reading, &pipes[1], 1);
	close(pipes[1]);
	end.fd = pipes[0];
	if (r == 0) {
		bool ended = poll(&end, 1, READ_MS) == 1;

		kill(reading.child, SIGKILL);
		if (waitpid(reading.child, NULL, ended ? 0 : WNOHANG) == reading.child && ended)
			*nodes = *shared;
	}
	close(pipes[0]);
out:
	munmap(shared, sizeof(*shared));
}

void nodes_add_process(const struct devcgroup_host *host, const struct drivers *drivers, uint32_t pid,
		       struct nodes *nodes)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%u/root", host->proc, pid);
	read_dev_of(path, drivers, nodes);
}

/* "Device Minor: 	 0" of each GPU. */
static void want_gpus(const struct devcgroup_host *host, struct nodes *nodes)
{
	char path[PATH_MAX], text[4096];
	struct dirent *e;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/driver/nvidia/gpus", host->proc);
	dir = opendir(path);
	for (unsigned i = 0; dir && i < NODES_MAX && (e = readdir(dir)); i++) {
		struct cursor c;
		uint64_t minor;
		const char *at;
		struct node *node;

		snprintf(path, sizeof(path), "%s/driver/nvidia/gpus/%s/information", host->proc, e->d_name);
		if (e->d_name[0] == '.' || read_file(path, text, sizeof(text), NULL) < 0)
			continue;
		at = strstr(text, "Device Minor:");
		if (!at)
			continue;
		c = cursor_over(at + strlen("Device Minor:"), strlen(at + strlen("Device Minor:")));
		cursor_skip_space(&c);
		if (cursor_u64(&c, &minor) < 0 || minor >= MINOR_CONTROL)
			continue;
		node = node_of(nodes, MAJOR_NVIDIA, (uint32_t)minor);
		if (node) {
			node->wanted = true;
			snprintf(node->name, sizeof(node->name), PREFIX "%u", (unsigned)minor);
		}
	}
	if (dir)
		closedir(dir);
}

static void want(struct nodes *nodes, uint32_t major, uint32_t minor, const char *name)
{
	struct node *node = node_of(nodes, major, minor);

	if (!node)
		return;
	node->wanted = true;
	snprintf(node->name, sizeof(node->name), "%s", name);
}

static bool has_node(const struct nodes *nodes, uint32_t major)
{
	for (unsigned i = 0; i < nodes->n; i++)
		if (nodes->list[i].major == major)
			return true;
	return false;
}

void nodes_read(const struct devcgroup_host *host, const struct drivers *drivers, uint32_t pid,
		struct nodes *ret_nodes)
{
	uint32_t majors[DRIVERS_MAX];
	unsigned n = drivers_majors(drivers, majors);

	memset(ret_nodes, 0, sizeof(*ret_nodes));
	if (drivers_name(drivers, MAJOR_NVIDIA)) {
		want(ret_nodes, MAJOR_NVIDIA, MINOR_CONTROL, PREFIX "ctl");
		want_gpus(host, ret_nodes);
	}
	for (unsigned i = 0; i < drivers->n; i++)
		if (STRV_EQ(drivers->list[i].name, PREFIX "-uvm"))
			want(ret_nodes, drivers->list[i].major, 0, PREFIX "-uvm");
	read_dev(host->dev, drivers, ret_nodes);
	if (pid)
		nodes_add_process(host, drivers, pid, ret_nodes);
	for (unsigned i = 0; i < n; i++)
		if (!has_node(ret_nodes, majors[i]))
			node_of(ret_nodes, majors[i], UINT32_MAX);
}
