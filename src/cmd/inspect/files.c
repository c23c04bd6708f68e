// SPDX-License-Identifier: Apache-2.0
/* The files that gpusonde inspect reads: the operand, or the files mapped by a process. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/raised.h"
#include "base/text.h"
#include "cmd/cmd.h"
#include "cmd/inspect/inspect.h"
#include "proc/mapped.h"
#include "proc/maps.h"
#include "view/table/table.h"

enum {
	FILES_MAX = 4096, /* different files mapped by a process */
	OPEN_MAX = 256, /* of these, files with device code */
};

void inspect_print(const struct invocation *inv, const char *path, const char *why)
{
	struct strbuf clean;

	strbuf_init(&clean, 0);
	text_clean(&clean, path);
	fprintf(stderr, "gpusonde %s: %s: %s\n", inv->command->name, clean.data, why);
	strbuf_done(&clean);
}

int inspect_print_errno(const struct invocation *inv, const char *path, int error)
{
	static const struct {
		int error;
		const char *why;
	} known[] = {
		{ ENOENT, "no such file: check the path" },
		{ EACCES, "not readable by this user: run as root or as the owner of the file" },
		{ EPERM, "not readable by this user: run as root or as the owner of the file" },
		{ EISDIR, "a directory: name a file in it" },
		{ ENOTSUP, "a FIFO, a socket or a device: name a regular file" },
		{ ENXIO, "a FIFO, a socket or a device: name a regular file" },
		{ ENOEXEC,
		  "no file that could hold CUDA kernels: name a program, a library, an object, an archive, "
		  "a fatbin or a cubin" },
		{ ENODATA,
		  "no device code in it: it may launch kernels of a library it loads, or compile them at "
		  "run time; \"gpusonde inspect -p PID\" reads all files that a process has loaded" },
	};

	for (unsigned i = 0; i < ARRAY_SIZE(known); i++) {
		if (known[i].error == -error) {
			inspect_print(inv, path, known[i].why);
			return EXIT_FAILURE;
		}
	}
	inspect_print(inv, path, strerror(-error));
	return EXIT_FAILURE;
}

static int add_file(struct inspect_files *files, const char *path, size_t path_n, int fd)
{
	/* grows to at most OPEN_MAX entries */
	struct inspect_file *more = realloc(files->file, (files->n + 1) * sizeof(*more));
	char *copy = strndup(path, path_n);

	if (more)
		files->file = more;
	if (!more || !copy) {
		free(copy);
		return -ENOMEM;
	}
	utf8_sanitize(copy);
	files->file[files->n++] = (struct inspect_file){ .path = copy, .fd = fd };
	return 0;
}

static int count_image(const struct cubin_image *image, void *userdata)
{
	uint64_t *images = userdata;

	(void)image;
	++*images;
	return 1;
}

static void ignore_error(uint64_t offset, const char *text, void *userdata)
{
	(void)offset;
	(void)text;
	(void)userdata;
}

/* 0: the file holds device code, possibly malformed. */
static int check_device_code(int fd)
{
	static const struct cubin_ops ops = { .image = count_image, .trouble = ignore_error };
	struct cubin_source source;
	uint64_t images = 0;
	int r = cubin_source_file(fd, &source);

	if (r == 0)
		r = cubin_read(&source, NULL, &ops, &images);
	return images > 0 ? 0 : r;
}

struct seen {
	uint64_t dev, ino;
};

struct mapped_search {
	struct inspect_files *files;
	pid_t pid;
	struct seen seen[FILES_MAX];
	size_t seen_n;
	uint64_t left_out; /* beyond FILES_MAX and OPEN_MAX */
};

static bool seen_before(struct mapped_search *s, const struct proc_map *map)
{
	for (size_t i = 0; i < s->seen_n; i++)
		if (s->seen[i].dev == map->dev && s->seen[i].ino == map->ino)
			return true;
	if (s->seen_n == FILES_MAX) {
		s->left_out++;
		return true;
	}
	s->seen[s->seen_n++] = (struct seen){ map->dev, map->ino };
	return false;
}

static int add_mapped(struct mapped_search *s, const struct proc_map *map)
{
	const struct proc_mapped mapped = { .pid = s->pid,
					    .start = map->start,
					    .end = map->end,
					    .dev = map->dev,
					    .ino = map->ino,
					    .path = map->path,
					    .path_n = map->path_n };
	_cleanup_free_ char *path = NULL;
	_cleanup_close_ int fd = -1;
	struct stat st;
	int r;

	if (map->ino == 0 || map->path_n == 0 || map->path[0] != '/' || seen_before(s, map))
		return 0;
	r = proc_mapped_open("/proc", &mapped, &fd, &st);
	if (r == -ENOTSUP)
		return 0; /* a device file */
	if (r < 0) {
		path = strndup(map->path, map->path_n);
		if (!path)
			return -ENOMEM;
		s->files->error(&(struct inspect_error){ .file = path, .text = strerror(-r) },
				s->files->userdata);
		return 0;
	}
	if (check_device_code(fd) < 0)
		return 0;
	if (s->files->n == OPEN_MAX) {
		s->left_out++;
		return 0;
	}
	r = add_file(s->files, map->path, map->path_n, fd);
	if (r == 0)
		TAKE_FD(fd);
	return r;
}

/* The files that a process maps, each once. */
static int find_mapped(struct inspect_files *files, pid_t pid)
{
	_cleanup_free_ struct mapped_search *s = calloc(1, sizeof(*s));
	struct proc_maps maps = { .fd = -1 };
	struct proc_map map;
	char text[120];
	int r;

	if (!s)
		return -ENOMEM;
	s->files = files;
	s->pid = pid;
	r = proc_maps_open("/proc", pid, &maps);
	while (r >= 0 && (r = proc_maps_next(&maps, &map)) > 0)
		r = add_mapped(s, &map);
	proc_maps_done(&maps);
	if (s->left_out) {
		snprintf(text, sizeof(text),
			 "%llu more mapped files are left out: at most %u are examined and %u read",
			 (unsigned long long)s->left_out, FILES_MAX, OPEN_MAX);
		files->error(&(struct inspect_error){ .file = "/proc", .text = text }, files->userdata);
	}
	return r;
}

/* Even root may lack the permission, for example in a container. */
static const char *remedy(int error)
{
	if (error != -EACCES && error != -EPERM)
		return "";
	if (geteuid() != 0)
		return ": run as root or as the user of the process";
	return ": root needs the capability CAP_SYS_PTRACE in the user namespace of the process, and "
	       "security modules (AppArmor, SELinux) must allow it";
}

static int find_process(const struct invocation *inv, const char *text, struct inspect_files *files)
{
	uint64_t pid;
	int r;

	if (parse_u64(text, &pid) < 0 || pid == 0 || pid > INT32_MAX) {
		fprintf(stderr, "gpusonde %s: -p cannot be \"%.80s\": it must be a process ID\n",
			inv->command->name, text);
		return EXIT_USAGE;
	}
	{
		WITH_CAPABILITIES;

		r = find_mapped(files, (pid_t)pid);
	}
	if (r == 0 && files->n > 0)
		return EXIT_SUCCESS;
	if (r == -ENOENT || r == -ESRCH)
		fprintf(stderr, "gpusonde %s: there is no process %s: check the process ID\n",
			inv->command->name, text);
	else if (r < 0)
		fprintf(stderr, "gpusonde %s: the mappings of process %s cannot be read: %s%s\n",
			inv->command->name, text, strerror(-r), remedy(r));
	else
		fprintf(stderr,
			"gpusonde %s: process %s maps no file with device code that could be read: it has no "
			"CUDA kernels, or compiles them at run time\n",
			inv->command->name, text);
	return EXIT_FAILURE;
}

static int find_file(const struct invocation *inv, const char *path, struct inspect_files *files)
{
	int fd = -1, r = fd_open_regular(path, &fd);

	if (r < 0)
		return inspect_print_errno(inv, path, r);
	/* Checked now, before the writer begins its output. */
	r = check_device_code(fd);
	if (r == 0)
		r = add_file(files, path, strlen(path), fd);
	if (r == 0)
		return EXIT_SUCCESS;
	close(fd);
	return inspect_print_errno(inv, path, r);
}

int inspect_files_find(const struct invocation *inv, struct inspect_files *files)
{
	const char *pid = inv->flag[FLAG_INSPECT_PID];

	if ((pid != NULL) == (inv->operands_n > 0)) {
		fprintf(stderr, "gpusonde %s: name one file, or a process with -p: see gpusonde %s --help\n",
			inv->command->name, inv->command->name);
		return EXIT_USAGE;
	}
	return pid ? find_process(inv, pid, files) : find_file(inv, inv->operands[0], files);
}

void inspect_files_done(struct inspect_files *files)
{
	for (size_t i = 0; i < files->n; i++) {
		free(files->file[i].path);
		close(files->file[i].fd);
	}
	free(files->file);
	*files = (struct inspect_files){ 0 };
}
