// SPDX-License-Identifier: Apache-2.0
#include "proc/environment.h"

#include <errno.h>
#include <linux/auxvec.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cursor.h"
#include "base/fd.h"
#include "base/macro.h"
#include "proc/maps.h"

enum {
	READ_BYTES = 1 << 18,
	VALUE_BYTES = 8 << 10,
	AUXV_MAX = 64, /* entries */
	PAGE = 4096, /* at least: what is readable ends at a multiple of it */
};

/* ---- another process's memory ---- */

static bool environ_read(uint32_t pid, void *to, size_t n, uint64_t from)
{
	return process_vm_readv((pid_t)pid, &(struct iovec){ to, n }, 1,
				&(struct iovec){ (void *)(uintptr_t)from, n }, 1, 0) == (ssize_t)n;
}

/* Up to a NUL, at most @n bytes. Page by page, since the text may be the last of its area. */
static bool environ_read_text(uint32_t pid, char *to, size_t n, uint64_t from)
{
	for (size_t have = 0; have < n;) {
		size_t some = MIN(n - have, (size_t)(PAGE - (from + have) % PAGE));

		if (!environ_read(pid, to + have, some, from + have))
			return false;
		if (memchr(to + have, 0, some))
			return true;
		have += some;
	}
	return true;
}

#define ENVIRON_FUNCTION static
#include "bpf/environment.h"

/* ---- what it was started with ---- */

static int read_initial(const char *root, uint32_t pid, char *buf, size_t size, size_t *ret_n)
{
	char path[80];
	int r;

	snprintf(path, sizeof(path), "%s/%u/environ", root, pid);
	r = read_file(path, buf, size, ret_n);
	if (r < 0)
		return r == -ENOENT ? -ESRCH : r;
	/* A process that has ended but has not been waited for has neither environment nor executable. */
	snprintf(path, sizeof(path), "%s/%u/exe", root, pid);
	return *ret_n == 0 && readlink(path, (char[1]){ 0 }, 1) < 0 ? -ESRCH : 0;
}

/* The first one counts, as for getenv(). */
static bool find_initial(const char *text, size_t n, const char *name, struct cursor *ret_value)
{
	struct cursor all = cursor_over(text, n);

	while (cursor_until(&all, 0, ret_value) == 0)
		if (cursor_literal(ret_value, name) && cursor_literal(ret_value, "="))
			return true;
	return false;
}

/* ---- what it has now ---- */

/* `environ` of a program that has a dynamic linker; 0: not found. */
static uint64_t find_by_linker(const char *root, uint32_t pid)
{
	uint64_t auxv[AUXV_MAX][2], headers = 0, headers_n = 0, size = 0;
	char path[80];
	size_t n;

	snprintf(path, sizeof(path), "%s/%u/auxv", root, pid);
	if (read_file(path, (char *)auxv, sizeof(auxv), &n) < 0)
		return 0;
	for (size_t i = 0; i < n / sizeof(auxv[0]) && auxv[i][0] != AT_NULL; i++) {
		if (auxv[i][0] == AT_PHDR)
			headers = auxv[i][1];
		else if (auxv[i][0] == AT_PHNUM)
			headers_n = auxv[i][1];
		else if (auxv[i][0] == AT_PHENT)
			size = auxv[i][1];
	}
	/* Another size: a program of 32 bits. */
	return size == sizeof(Elf64_Phdr) ? environ_find(pid, headers, headers_n) : 0;
}

static bool is_libc(const struct proc_map *map)
{
	static const char *const names[] = { "libc.so.", "libc-2.", "ld-musl-" };
	const char *slash = memrchr(map->path, '/', map->path_n);
	struct cursor name = cursor_over(map->path, map->path_n);

	if (map->offset != 0 || !slash)
		return false;
	name.p = slash + 1;
	for (unsigned i = 0; i < ARRAY_SIZE(names); i++)
		if (cursor_literal(&name, names[i]))
			return true;
	return false;
}

/* That of the C library which a static program has loaded with the driver's: it is the driver's, too. */
static uint64_t find_by_maps(const char *root, uint32_t pid)
{
	_cleanup_(proc_maps_done) struct proc_maps maps;
	struct proc_map map;
	uint64_t dynamic;
	Elf64_Ehdr elf;
	int r = proc_maps_open(root, (pid_t)pid, &maps);

	while (r >= 0 && (r = proc_maps_next(&maps, &map)) > 0) {
		if (!is_libc(&map) || !environ_read(pid, &elf, sizeof(elf), map.start) ||
		    elf.e_phentsize != sizeof(Elf64_Phdr))
			continue;
		dynamic = environ_section(pid, map.start + elf.e_phoff, elf.e_phnum, map.start);
		return dynamic ? environ_in(pid, map.start, dynamic) : 0;
	}
	return 0;
}

static uint64_t find_environ(const char *root, uint32_t pid)
{
	uint64_t found = find_by_linker(root, pid);

	return found ? found : find_by_maps(root, pid);
}

struct now {
	uint32_t pid;
	uint64_t variable; /* `environ` */
	char value[VALUE_BYTES];
};

/* 1: .value is it; 0: it is not set; -ENODATA: not known. */
static int find_now(struct now *now, enum trace_variable which)
{
	uint64_t at = environ_get(now->pid, now->variable, which);

	if (at == ENVIRON_UNSET)
		return 0;
	if (at == ENVIRON_UNREAD || !environ_read_text(now->pid, now->value, sizeof(now->value), at) ||
	    !memchr(now->value, 0, sizeof(now->value)))
		return -ENODATA;
	return 1;
}

/* ---- both ---- */

struct variables {
	char *buf;
	size_t size, n;
};

static int variable_put(struct variables *out, const char *name, struct cursor value)
{
	size_t name_n = strlen(name), n = cursor_left(&value);

	if (name_n + 1 + n >= out->size - out->n)
		return -E2BIG;
	memcpy(out->buf + out->n, name, name_n);
	out->buf[out->n + name_n] = '=';
	memcpy(out->buf + out->n + name_n + 1, value.p, n);
	out->n += name_n + 1 + n;
	out->buf[out->n++] = 0;
	return 0;
}

/* Puts the value as it is now, else as it was. enum proc_environment; -E2BIG. */
static int put_selecting(struct variables *out, const char *text, size_t n, struct now *now,
			 enum trace_variable which)
{
	static const char *const names[TRACE_VARIABLES] = { "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER" };
	struct cursor initial, current;
	bool was = find_initial(text, n, names[which], &initial);
	int is = find_now(now, which), r = 0;

	if (is < 0) {
		r = was ? variable_put(out, names[which], initial) : 0;
		return r < 0 ? r : PROC_ENVIRONMENT_UNKNOWN;
	}
	current = cursor_over(now->value, is ? strlen(now->value) : 0);
	if (is)
		r = variable_put(out, names[which], current);
	if (r < 0)
		return r;
	return was == is && (!is || (cursor_left(&initial) == cursor_left(&current) &&
				     memcmp(initial.p, current.p, cursor_left(&current)) == 0)) ?
		       PROC_ENVIRONMENT_KEPT :
		       PROC_ENVIRONMENT_CHANGED;
}

int proc_environment(const char *root, uint32_t pid, char *buf, size_t size, size_t *ret_n)
{
	static const char devices[] = "NVIDIA_VISIBLE_DEVICES";
	_cleanup_free_ char *text = malloc(READ_BYTES);
	_cleanup_free_ struct now *now = malloc(sizeof(*now));
	struct variables out = { .buf = buf, .size = size };
	struct cursor value;
	size_t n = 0;
	int r = text && now ? read_initial(root, pid, text, READ_BYTES, &n) : -ENOMEM, state = 0;

	if (r == 0 && find_initial(text, n, devices, &value))
		r = variable_put(&out, devices, value);
	if (r < 0)
		return r;
	now->pid = pid;
	now->variable = find_environ(root, pid);
	for (unsigned which = 0; which < TRACE_VARIABLES; which++) {
		r = put_selecting(&out, text, n, now, which);
		if (r < 0)
			return r;
		state = MAX(state, r);
	}
	*ret_n = out.n;
	return state;
}
