// SPDX-License-Identifier: Apache-2.0
/*
 * An ordinary user's program that maps a library whose file system it serves itself, below an overlay, in a
 * user namespace of its own, and then withholds: the pages of the library, or the answer to its opening.
 *
 *   withhold pages|open FUSE LIBRARY SECONDS
 *
 * FUSE: a device node of it that this user may open. Prints "ready PID" when the library is mapped
 * executable; ends after SECONDS, and then answers nothing more.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME "libcuda.so.1"

enum { PAGE = 4096, FILE_NODE = 2, TOUCHERS = 64 };

static struct {
	char *bytes;
	size_t n;
} library;
static volatile bool *withholding; /* shared with the server */
static bool pages; /* or the opening */

static _Noreturn void fail(const char *what)
{
	perror(what);
	exit(77); /* not to be had here */
}

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		fail(path);
	close(fd);
}

/* ---- the file system: one file in its root ---- */

static void reply(int fd, uint64_t unique, int error, const void *body, size_t n)
{
	static char out[sizeof(struct fuse_out_header) + (128 << 10)];
	struct fuse_out_header header = { .len = (uint32_t)(sizeof(header) + n),
					  .error = error,
					  .unique = unique };

	memcpy(out, &header, sizeof(header));
	if (n)
		memcpy(out + sizeof(header), body, n);
	if (write(fd, out, header.len) < 0 && errno != ENOENT)
		perror("reply");
}

static struct fuse_attr attributes(uint64_t node)
{
	return (struct fuse_attr){
		.ino = node,
		.size = node == FILE_NODE ? library.n : 0,
		.mode = node == FILE_NODE ? S_IFREG | 0755 : S_IFDIR | 0755,
		.nlink = 1,
		.blksize = PAGE,
	};
}

static void reply_read(int fd, uint64_t unique, const struct fuse_read_in *in)
{
	size_t n = in->offset < library.n ? library.n - in->offset : 0;

	reply(fd, unique, 0, library.bytes + in->offset, n < in->size ? n : in->size);
}

static void serve_one(int fd, const struct fuse_in_header *in, const char *arguments)
{
	struct fuse_init_out init = { .major = 7, .minor = 31, .max_write = PAGE, .max_background = 16 };
	struct fuse_entry_out entry = {
		.nodeid = FILE_NODE, .entry_valid = 3600, .attr_valid = 3600, .attr = attributes(FILE_NODE)
	};
	struct fuse_attr_out attr = { .attr_valid = 3600, .attr = attributes(in->nodeid) };
	struct fuse_open_out opened = { .open_flags = in->opcode == FUSE_OPEN ? FOPEN_KEEP_CACHE : 0 };
	struct fuse_statfs_out statfs = { .st = { .bsize = PAGE, .frsize = PAGE, .namelen = 255 } };

	if (*withholding && in->opcode == (pages ? FUSE_READ : FUSE_OPEN))
		return;
	switch (in->opcode) {
	case FUSE_INIT:
		reply(fd, in->unique, 0, &init, sizeof(init));
		break;
	case FUSE_LOOKUP:
		if (strcmp(arguments, NAME) == 0)
			reply(fd, in->unique, 0, &entry, sizeof(entry));
		else
			reply(fd, in->unique, -ENOENT, NULL, 0);
		break;
	case FUSE_GETATTR:
		reply(fd, in->unique, 0, &attr, sizeof(attr));
		break;
	case FUSE_OPEN:
	case FUSE_OPENDIR:
		reply(fd, in->unique, 0, &opened, sizeof(opened));
		break;
	case FUSE_READ:
		reply_read(fd, in->unique, (const struct fuse_read_in *)(const void *)arguments);
		break;
	case FUSE_STATFS:
		reply(fd, in->unique, 0, &statfs, sizeof(statfs));
		break;
	case FUSE_READDIR:
	case FUSE_FLUSH:
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
		reply(fd, in->unique, 0, NULL, 0);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	default:
		reply(fd, in->unique, -ENOSYS, NULL, 0);
	}
}

static _Noreturn void serve(int fd)
{
	static _Alignas(8) char request[256 << 10];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		ssize_t n = read(fd, request, sizeof(request) - 1);

		if (n < (ssize_t)sizeof(struct fuse_in_header)) {
			if (n < 0 && (errno == EINTR || errno == EAGAIN || errno == ENOENT))
				continue;
			exit(0);
		}
		request[n] = '\0';
		serve_one(fd, (const struct fuse_in_header *)(const void *)request,
			  request + sizeof(struct fuse_in_header));
	}
}

/* ---- the mounts ---- */

static void own_namespace(void)
{
	char map[64];
	unsigned user = getuid(), group = getgid();

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		fail("unshare");
	put("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "0 %u 1", user);
	put("/proc/self/uid_map", map);
	snprintf(map, sizeof(map), "0 %u 1", group);
	put("/proc/self/gid_map", map);
}

/* Returns the folder of the overlay. */
static const char *mount_all(const char *device, const char *folder)
{
	static const char *const parts[] = { "lower", "upper", "work", "merged" };
	static char path[256], options[1024];
	int fd;

	own_namespace();
	/* Opened in the namespace that it is mounted in. */
	fd = open(device, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		fail(device);
	if (mount("t", folder, "tmpfs", 0, "") < 0)
		fail("tmpfs");
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, parts[i]);
		mkdir(path, 0755);
	}
	snprintf(options, sizeof(options), "fd=%d,rootmode=40755,user_id=0,group_id=0", fd);
	snprintf(path, sizeof(path), "%s/lower", folder);
	if (mount("f", path, "fuse", MS_NOSUID | MS_NODEV, options) < 0)
		fail("fuse");
	if (fork() == 0)
		serve(fd);
	close(fd);
	snprintf(options, sizeof(options), "lowerdir=%s/lower,upperdir=%s/upper,workdir=%s/work,userxattr",
		 folder, folder, folder);
	snprintf(path, sizeof(path), "%s/merged", folder);
	if (mount("o", path, "overlay", 0, options) < 0)
		fail("overlay");
	return path;
}

static void read_library(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		fail(path);
	library.n = (size_t)st.st_size;
	library.bytes = calloc(1, library.n + (128 << 10));
	if (!library.bytes || read(fd, library.bytes, library.n) != (ssize_t)library.n)
		fail(path);
	close(fd);
}

static void *touch(void *page)
{
	*(volatile char *)page;
	return NULL;
}

/* Its own threads ask for pages first, so that these are locked when others want them. */
static void ask_for_pages(char *mapped)
{
	for (size_t i = 0; i < TOUCHERS && (i + 1) * PAGE < library.n; i++) {
		pthread_t thread;

		pthread_create(&thread, NULL, touch, mapped + i * PAGE);
	}
	usleep(200000);
}

int main(int argc, char **argv)
{
	char folder[] = "/tmp/withhold.XXXXXX", path[512];
	void *mapped;
	int fd;

	if (argc != 5)
		return 2;
	pages = strcmp(argv[1], "pages") == 0;
	read_library(argv[3]);
	withholding = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (withholding == MAP_FAILED || !mkdtemp(folder))
		fail("set up");
	/* There for what the environment names without a folder, too. */
	snprintf(path, sizeof(path), "%s", mount_all(argv[2], folder));
	if (chdir(path) < 0)
		fail("chdir");
	strcat(path, "/" NAME);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		fail(path);
	*withholding = true;
	mapped = mmap(NULL, library.n, PROT_READ, MAP_PRIVATE, fd, 0);
	if (mapped != MAP_FAILED && pages)
		ask_for_pages(mapped);
	if (mmap(NULL, library.n, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		fail("mmap");
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	sleep((unsigned)atoi(argv[4]));
	/* Threads that wait for a page cannot end before the server does. */
	kill(0, SIGKILL);
}
