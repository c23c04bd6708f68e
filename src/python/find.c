// SPDX-License-Identifier: Apache-2.0
#include "python/find.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "elf/elf.h"
#include "proc/maps.h"
#include "proc/mapped.h"
#include "proc/mounts.h"
#include "python/loop.h"

enum {
	CANDIDATES = 8, /* files that are opened for one process */
	/* CPU time for a file's symbols: those of a program with Python in it may be millions. */
	SYMBOLS_MS = 500,
	PAGE = 4096,
	RUNTIME_MAX = 16 << 20, /* bytes that _PyRuntime may claim; it has 0.5 MiB in 3.12 */
};

struct symbols {
	uint64_t runtime, version; /* addresses as linked; 0: none */
	uint64_t runtime_n; /* bytes of _PyRuntime; 0: not known */
	uint64_t loop, loop_n; /* the function that runs Python code; 0: not known */
	uint64_t part, part_n; /* of what of it lies elsewhere; 0: nothing, as far as is known */
};

static int on_object(const struct elf_symbol *symbol, void *userdata)
{
	struct symbols *found = userdata;

	if (strcmp(symbol->name, "_PyRuntime") == 0) {
		found->runtime = symbol->address;
		found->runtime_n = MIN(symbol->size, (uint64_t)RUNTIME_MAX);
	} else if (strcmp(symbol->name, "Py_Version") == 0) {
		found->version = symbol->address;
	}
	return found->runtime && found->version;
}

static int on_function(const struct elf_symbol *symbol, void *userdata)
{
	struct symbols *found = userdata;

	if (strcmp(symbol->name, "_PyEval_EvalFrameDefault") != 0 || symbol->size == 0)
		return 0;
	found->loop = symbol->address;
	found->loop_n = symbol->size;
	return 1;
}

/*
 * "python3.9", "libpython3.9.so.1.0". 0: no version, or a debug build ("python3.9d"), whose objects differ.
 */
static uint32_t version_of_name(const char *name, size_t n)
{
	const char *at = memmem(name, n, "python3.", strlen("python3."));
	uint32_t minor = 0;

	if (!at)
		return 0;
	for (at += strlen("python3."); at < name + n && isdigit((unsigned char)*at) && minor < 100; at++)
		minor = minor * 10 + (uint32_t)(*at - '0');
	if (at < name + n && *at == 'd')
		return 0;
	return PYTHON_VERSION(3, minor);
}

static uint32_t version_of(struct elf_file *elf, const struct symbols *symbols, const char *name, size_t n)
{
	uint64_t version = 0;
	size_t got = 0;

	if (symbols->version && elf_data(elf, symbols->version, &version, sizeof(version), &got) == 0 &&
	    got == sizeof(version) && version >> 24 == 3)
		return (uint32_t)version;
	return version_of_name(name, n);
}

/* What is added to addresses as linked where the file is mapped so. -ENOENT: no segment is. */
static int bias_of(const struct elf_file *elf, const struct proc_map *map, uint64_t *ret_bias)
{
	struct elf_range range;

	for (uint32_t i = 0; elf_range(elf, i, &range); i++)
		if ((range.offset & ~(uint64_t)(PAGE - 1)) == map->offset) {
			*ret_bias = map->start - (range.address & ~(uint64_t)(PAGE - 1));
			return 0;
		}
	return -ENOENT;
}

static int find_in(int fd, const struct proc_map *map, const char *name, size_t name_n, uint32_t *ret_version,
		   struct trace_python *ret_python)
{
	_cleanup_(elf_closep) struct elf_file *elf = NULL;
	struct symbols symbols = { 0 };
	uint8_t offsets[PYTHON_DEBUG_OFFSETS];
	uint64_t bias;
	size_t n = 0;
	int r = elf_open(fd, &elf);

	if (r < 0)
		return r == -ENOEXEC ? -ENOENT : r;
	elf_limit_cpu(elf, clock_thread_cpu_ns() + SYMBOLS_MS * NSEC_PER_MSEC);
	r = elf_objects(elf, on_object, &symbols);
	if (r < 0)
		return r;
	if (!symbols.runtime)
		return -ENOENT;
	r = bias_of(elf, map, &bias);
	if (r < 0)
		return r;
	/* Without these native frames are not merged with Python's. */
	if (elf_functions(elf, on_function, &symbols) == 1)
		python_loop_part(elf, symbols.loop, symbols.loop_n, &symbols.part, &symbols.part_n);
	r = elf_data(elf, symbols.runtime, offsets, sizeof(offsets), &n);
	r = python_debug_offsets(offsets, r == 0 ? n : 0, ret_version, ret_python);
	if (r == -ENODATA) {
		*ret_version = version_of(elf, &symbols, name, name_n);
		r = python_layout(*ret_version, ret_python);
	}
	ret_python->runtime = bias + symbols.runtime;
	ret_python->runtime_end = ret_python->runtime + symbols.runtime_n;
	ret_python->loop = symbols.loop ? bias + symbols.loop : 0;
	ret_python->loop_n = (uint32_t)MIN(symbols.loop_n, (uint64_t)UINT32_MAX);
	ret_python->part = symbols.part ? bias + symbols.part : 0;
	ret_python->part_n = (uint32_t)MIN(symbols.part_n, (uint64_t)UINT32_MAX);
	return r;
}

static bool starts_with(const char *name, size_t n, const char *prefix)
{
	return n >= strlen(prefix) && memcmp(name, prefix, strlen(prefix)) == 0;
}

/* Whether the file may have an interpreter: by its name, or since it is the program. */
static bool is_candidate(const struct proc_map *map, const char *program)
{
	const char *slash = memrchr(map->path, '/', map->path_n), *name = slash ? slash + 1 : map->path;
	size_t n = map->path_n - (size_t)(name - map->path);

	if (map->ino == 0 || !slash)
		return false;
	/* Extension modules have it elsewhere: _struct.cpython-311-x86_64-linux-gnu.so. */
	return starts_with(name, n, "python") || starts_with(name, n, "libpython") ||
	       (strlen(program) == map->path_n && memcmp(program, map->path, map->path_n) == 0);
}

struct seen {
	uint64_t dev[CANDIDATES], ino[CANDIDATES];
	unsigned n;
};

static bool is_seen(const struct seen *seen, const struct proc_map *map)
{
	for (unsigned i = 0; i < seen->n; i++)
		if (seen->dev[i] == map->dev && seen->ino[i] == map->ino)
			return true;
	return false;
}

static int look_into(const char *root, struct mounts_user *user, const struct proc_map *map,
		     uint32_t *ret_version, struct trace_python *ret_python)
{
	const char *slash = memrchr(map->path, '/', map->path_n);
	size_t n = map->path_n - (size_t)(slash + 1 - map->path);
	_cleanup_close_ int fd = -1;
	struct stat st;
	int r = proc_map_open(root, map, user, &fd, &st);

	return r < 0 ? r : find_in(fd, map, slash + 1, n, ret_version, ret_python);
}

int python_find(const char *root, pid_t pid, uint32_t *ret_version, struct trace_python *ret_python)
{
	_cleanup_(proc_maps_done) struct proc_maps maps = { .fd = -1 };
	_cleanup_(mounts_freep) struct mounts *mounts = NULL;
	struct mounts_user user = { .pid = pid };
	char program[PATH_MAX], path[64];
	struct seen seen = { .n = 0 };
	struct trace_python python = { 0 };
	struct proc_map map;
	uint32_t version = 0;
	ssize_t n;
	int r = mounts_new(root, &mounts), found = -ENOENT;

	if (r < 0)
		return r;
	user.mounts = mounts;
	snprintf(path, sizeof(path), "%s/%d/exe", root, (int)pid);
	n = readlink(path, program, sizeof(program) - 1);
	program[MAX(n, (ssize_t)0)] = '\0';
	r = proc_maps_open(root, pid, &maps);
	while (r >= 0 && found != 0 && seen.n < CANDIDATES && (r = proc_maps_next(&maps, &map)) > 0) {
		int one;

		if (!is_candidate(&map, program) || is_seen(&seen, &map))
			continue;
		seen.dev[seen.n] = map.dev;
		seen.ino[seen.n++] = map.ino;
		one = look_into(root, &user, &map, &version, &python);
		if (one != -ENOENT)
			found = one;
	}
	*ret_version = version;
	if (found == 0)
		*ret_python = python;
	return r < 0 ? r : found;
}
