// SPDX-License-Identifier: Apache-2.0
#include "proc/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cursor.h"

static int hex_then(struct cursor *c, const char *literal, uint64_t *ret_value)
{
	int r = cursor_hex(c, ret_value);

	if (r < 0)
		return r;
	return cursor_literal(c, literal) ? 0 : -EBADMSG;
}

int proc_map_parse(const char *line, size_t n, struct proc_map *ret_map)
{
	struct cursor c = cursor_over(line, n), permissions;
	uint64_t major_n, minor_n;
	struct proc_map map = { 0 };

	if (hex_then(&c, "-", &map.start) < 0 || hex_then(&c, " ", &map.end) < 0 ||
	    cursor_until(&c, ' ', &permissions) < 0 || hex_then(&c, " ", &map.offset) < 0 ||
	    hex_then(&c, ":", &major_n) < 0 || hex_then(&c, " ", &minor_n) < 0 ||
	    cursor_u64(&c, &map.ino) < 0)
		return -EBADMSG;
	if (map.end <= map.start || cursor_left(&permissions) < 3 || major_n > UINT_MAX || minor_n > UINT_MAX)
		return -EBADMSG;
	cursor_skip_space(&c);
	map.executable = permissions.p[2] == 'x';
	map.dev = makedev((unsigned)major_n, (unsigned)minor_n);
	map.path = c.p;
	map.path_n = cursor_left(&c);
	*ret_map = map;
	return 0;
}

int proc_maps_open(const char *root, pid_t pid, struct proc_maps *ret_maps)
{
	char path[PATH_MAX];
	int fd;

	if (snprintf(path, sizeof(path), "%s/%d/maps", root, (int)pid) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ret_maps->fd = fd;
	ret_maps->eof = ret_maps->cut = false;
	ret_maps->at = ret_maps->n = 0;
	return 0;
}

void proc_maps_done(struct proc_maps *maps)
{
	if (maps->fd >= 0)
		close(TAKE_FD(maps->fd));
}

/* Reads more text after the unprocessed rest. A line that fills the whole buffer is dropped. */
static int fill(struct proc_maps *maps)
{
	ssize_t got;

	memmove(maps->buf, maps->buf + maps->at, maps->n - maps->at);
	maps->n -= maps->at;
	maps->at = 0;
	if (maps->n == sizeof(maps->buf)) {
		maps->n = 0;
		maps->cut = true;
	}
	do
		got = read(maps->fd, maps->buf + maps->n, sizeof(maps->buf) - maps->n);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	maps->eof = got == 0;
	maps->n += (size_t)got;
	return 0;
}

int proc_maps_next(struct proc_maps *maps, struct proc_map *ret_map)
{
	for (;;) {
		const char *line = maps->buf + maps->at;
		const char *end = memchr(line, '\n', maps->n - maps->at);
		bool cut = maps->cut;
		int r;

		if (!end) {
			if (maps->eof)
				return 0;
			r = fill(maps);
			if (r < 0)
				return r;
			continue;
		}
		maps->at += (size_t)(end - line) + 1;
		maps->cut = false;
		if (!cut && proc_map_parse(line, (size_t)(end - line), ret_map) == 0)
			return 1;
	}
}

int proc_maps_find(const char *root, pid_t pid, uint64_t dev, uint64_t ino, struct proc_map *ret_map)
{
	_cleanup_(proc_maps_done) struct proc_maps maps;
	struct proc_map map;
	int r;

	maps.fd = -1;
	r = proc_maps_open(root, pid, &maps);
	if (r < 0)
		return r;
	while ((r = proc_maps_next(&maps, &map)) > 0)
		if (map.executable && map.dev == dev && map.ino == ino) {
			map.path = NULL; /* points into the buffer that is freed here */
			map.path_n = 0;
			*ret_map = map;
			return 0;
		}
	return r < 0 ? r : -ENOENT;
}

int proc_maps_identify(int fd, uint64_t *ret_dev, uint64_t *ret_ino)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	_cleanup_(proc_maps_done) struct proc_maps maps;
	struct proc_map map;
	void *p = mmap(NULL, page, PROT_READ, MAP_PRIVATE, fd, 0);
	int r;

	maps.fd = -1;
	if (p == MAP_FAILED)
		return -errno;
	r = proc_maps_open("/proc", getpid(), &maps);
	while (r >= 0 && (r = proc_maps_next(&maps, &map)) > 0 &&
	       !(map.start <= (uintptr_t)p && (uintptr_t)p < map.end))
		;
	munmap(p, page);
	if (r <= 0)
		return r < 0 ? r : -ENOENT;
	*ret_dev = map.dev;
	*ret_ino = map.ino;
	return 0;
}
