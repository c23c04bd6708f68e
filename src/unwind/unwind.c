// SPDX-License-Identifier: Apache-2.0
#include "unwind/unwind.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/hashmap.h"
#include "elf/elf.h"
#include "proc/maps.h"
#include "proc/mapped.h"
#include "proc/mounts.h"
#include "unwind/perf_map.h"
#include "unwind/private.h"

enum {
	WORK_NS = 5 * 1000 * 1000,
	REST = 4, /* times as long as a list took to read none is read again */
};
/* Events that are still in the ring have the list before. */
#define RETIRED_NS (2 * NSEC_PER_SEC)
/* How often a list is read again at most, and at least while it is found unchanged. */
#define AGAIN_NS (100 * NSEC_PER_MSEC)
#define AGAIN_MAX_NS (10 * NSEC_PER_SEC)

enum file_state {
	FILE_QUEUED,
	FILE_MADE, /* or there is nothing to be made, and @none says why */
};

struct file {
	uint64_t dev, ino;
	char *path;
	int fd; /* -1: it is not read */
	enum file_state state;
	uint32_t none; /* enum trace_native_stop */
	uint32_t first, rows;
	uint64_t base; /* of the rows' addresses, as linked */
	uint32_t users; /* lists of mappings that have it, one that is being read among them */
	bool told; /* an address in it is to be named at the end: it is not given up */
	struct elf_range ranges[FILE_RANGES];
	uint32_t ranges_n;
	pid_t made_by; /* a process's own code, and its perf map; 0: a file */
};

/* A process's list of mappings: one part of the array of areas. */
struct space {
	uint32_t number; /* 0: unused */
	uint32_t tgid;
	uint32_t first, n;
	struct mapping {
		uint32_t file; /* 0: none */
		uint32_t none; /* enum trace_native_stop, of no file */
		uint64_t bias; /* what is added to addresses as linked */
	} * mappings; /* as the areas */
	int64_t retired_ns; /* CLOCK_MONOTONIC; 0: it is in use */
	bool stale; /* to be read again, from @again_ns on */
	int64_t again_ns, wait_ns;
};

struct unwind {
	struct unwind_maps maps;
	struct unwind_area *areas;
	struct unwind_row *rows;
	struct rules rules;
	struct ranges areas_used, rows_used;
	struct file *files; /* from 1 on */
	uint32_t files_n, files_max;
	struct space *spaces;
	uint32_t spaces_n;
	uint32_t number;
	uint32_t stale_n; /* lists */
	int64_t rest_ns; /* CLOCK_MONOTONIC: no list is read again before */
	uint64_t crowded;
	uint32_t making_of; /* file; 0: none */
	struct making making;
};

/* ---- files ---- */

static const char *name_of_map(const struct proc_map *map)
{
	return map->path_n ? map->path : "";
}

static void read_ranges(struct file *file)
{
	_cleanup_(elf_closep) struct elf_file *elf = NULL;
	struct elf_range range;

	if (elf_open(file->fd, &elf) < 0)
		return;
	for (uint32_t i = 0; elf_range(elf, i, &range); i++)
		if (range.executable && file->ranges_n < FILE_RANGES)
			file->ranges[file->ranges_n++] = range;
}

static void file_open(struct file *file, const struct proc_map *map, struct mounts_user *user)
{
	struct stat st;

	*file = (struct file){ .dev = map->dev,
			       .ino = map->ino,
			       .path = strndup(name_of_map(map), map->path_n),
			       .fd = -1,
			       .state = FILE_MADE,
			       .none = TRACE_NATIVE_NO_FILE };
	if (!file->path)
		return;
	if (proc_map_open("/proc", map, user, &file->fd, &st) < 0) {
		file->fd = -1;
		return;
	}
	read_ranges(file);
	file->none = TRACE_NATIVE_NO_RULE;
	if (file->ranges_n > 0) {
		file->state = FILE_QUEUED;
		file->none = TRACE_NATIVE_PENDING;
	}
}

static void file_done(struct unwind *u, struct file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	free(file->path);
	if (file->rows > 0)
		ranges_give(&u->rows_used, file->first);
	*file = (struct file){ .fd = -1 };
}

/* A place in the table, of a file that nobody uses if there is no other. 0: there is none. */
static uint32_t file_room(struct unwind *u)
{
	if (u->files_n < u->files_max)
		return ++u->files_n;
	for (uint32_t i = 1; i <= u->files_n; i++) {
		if (u->files[i].users > 0 || u->files[i].told || i == u->making_of)
			continue;
		file_done(u, &u->files[i]);
		return i;
	}
	u->crowded++;
	return 0;
}

/* The file of a mapping; 0: there are too many. */
static uint32_t file_get(struct unwind *u, const struct proc_map *map, struct mounts_user *user)
{
	uint32_t at;

	for (uint32_t i = 1; i <= u->files_n; i++) {
		const struct file *file = &u->files[i];

		if (!file->made_by && file->path && file->dev == map->dev && file->ino == map->ino &&
		    strlen(file->path) == map->path_n && memcmp(file->path, map->path, map->path_n) == 0)
			return i;
	}
	at = file_room(u);
	if (at)
		file_open(&u->files[at], map, user);
	return at;
}

/* What names the code that a process has made for itself; 0: nothing does. */
static uint32_t made_get(struct unwind *u, struct mounts_user *user)
{
	uint32_t at;
	int fd;

	for (uint32_t i = 1; i <= u->files_n; i++)
		if (u->files[i].made_by == user->pid)
			return i;
	if (perf_map_open(user, &fd) < 0)
		return 0;
	at = file_room(u);
	if (at == 0)
		close(fd);
	else
		u->files[at] = (struct file){
			.fd = fd, .state = FILE_MADE, .none = TRACE_NATIVE_NO_FILE, .made_by = user->pid
		};
	return at;
}

/* The process is another one now, whose perf map is another file. */
static void made_over(struct unwind *u, uint32_t tgid)
{
	for (uint32_t i = 1; i <= u->files_n; i++)
		if (u->files[i].made_by == (pid_t)tgid)
			u->files[i].made_by = -1;
}

bool unwind_is_made(const struct unwind *u, uint32_t file)
{
	return u->files[file].made_by != 0;
}

/* -ENOENT: the file has no code there. */
static int bias_of(const struct file *file, const struct proc_map *map, uint64_t *ret_bias)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	for (uint32_t i = 0; i < file->ranges_n; i++) {
		const struct elf_range *range = &file->ranges[i];
		uint64_t from = range->offset & ~(page - 1);

		if (map->offset < from || map->offset >= range->offset + range->size)
			continue;
		*ret_bias = map->start - (range->address - (range->offset - from) + map->offset - from);
		return 0;
	}
	return -ENOENT;
}

/* ---- areas ---- */

static void area_set(struct unwind *u, struct unwind_area *area, const struct mapping *mapping)
{
	const struct file *file = mapping->file ? &u->files[mapping->file] : NULL;

	area->base = file ? file->base + mapping->bias : 0;
	area->first = file ? file->first : 0;
	area->none = file ? file->none : mapping->none;
	/* Last: the kernel side looks into the rows once there are some. */
	__atomic_store_n(&area->rows, file ? file->rows : 0, __ATOMIC_RELEASE);
}

/* The rows of @file have been made: every list that has it is told. */
static void file_publish(struct unwind *u, uint32_t file)
{
	for (uint32_t i = 0; i < u->spaces_n; i++) {
		struct space *space = &u->spaces[i];

		for (uint32_t k = 0; space->number && k < space->n; k++)
			if (space->mappings[k].file == file)
				area_set(u, &u->areas[space->first + k], &space->mappings[k]);
	}
}

struct listing {
	struct unwind *u;
	struct unwind_area *areas;
	struct mapping *mappings; /* a space has them once it is taken */
	uint32_t n;
	bool made_known;
	uint32_t made; /* what names the process's own code; 0: nothing does */
};

static void mappings_leave(struct unwind *u, const struct mapping *mappings, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (mappings[i].file)
			u->files[mappings[i].file].users--;
}

static void listing_done(struct listing *listing)
{
	if (listing->mappings)
		mappings_leave(listing->u, listing->mappings, listing->n);
	free(listing->areas);
	free(listing->mappings);
}

static struct mapping mapping_of(struct listing *listing, const struct proc_map *map,
				 struct mounts_user *user)
{
	struct mapping mapping = { .none = TRACE_NATIVE_NO_FILE };
	struct unwind *u = listing->u;

	if (map->ino != 0) {
		mapping.file = file_get(u, map, user);
		if (mapping.file == 0)
			mapping.none = TRACE_NATIVE_CROWDED;
		else if (bias_of(&u->files[mapping.file], map, &mapping.bias) < 0)
			mapping.file = 0;
	} else if (map->path_n == 0 || map->path[0] != '[' || map->path[1] == 'a') { /* or [anon:...] */
		if (!listing->made_known)
			listing->made = made_get(u, user);
		listing->made_known = true;
		mapping.file = listing->made;
	}
	return mapping;
}

static int list(struct unwind *u, pid_t pid, struct listing *listing)
{
	_cleanup_(proc_maps_done) struct proc_maps maps = { .fd = -1 };
	_cleanup_(mounts_freep) struct mounts *mounts = NULL;
	struct mounts_user user = { .pid = pid };
	struct proc_map map;
	int r = mounts_new("/proc", &mounts);

	listing->areas = calloc(UNWIND_AREAS_OF_PROCESS, sizeof(*listing->areas));
	listing->mappings = calloc(UNWIND_AREAS_OF_PROCESS, sizeof(*listing->mappings));
	if (!listing->areas || !listing->mappings)
		return -ENOMEM;
	if (r < 0)
		return r;
	user.mounts = mounts;
	r = proc_maps_open("/proc", pid, &maps);
	while (r >= 0 && listing->n < UNWIND_AREAS_OF_PROCESS && (r = proc_maps_next(&maps, &map)) > 0) {
		struct mapping *mapping = &listing->mappings[listing->n];

		if (!map.executable)
			continue;
		*mapping = mapping_of(listing, &map, &user);
		if (mapping->file)
			u->files[mapping->file].users++;
		listing->areas[listing->n++] = (struct unwind_area){ .start = map.start, .end = map.end };
	}
	return MIN(r, 0);
}

/* ---- lists of mappings ---- */

static void space_free(struct unwind *u, struct space *space)
{
	mappings_leave(u, space->mappings, space->n);
	/* The kernel side may have the number in hand. */
	for (uint32_t i = 0; i < space->n; i++)
		__atomic_store_n(&u->areas[space->first + i].space, 0, __ATOMIC_RELEASE);
	ranges_give(&u->areas_used, space->first);
	free(space->mappings);
	*space = (struct space){ 0 };
}

static void space_retire(struct unwind *u, struct space *space)
{
	u->stale_n -= space->stale;
	space->stale = false;
	space->retired_ns = clock_mono_ns();
}

static struct space *space_of(struct unwind *u, uint32_t tgid)
{
	for (uint32_t i = 0; i < u->spaces_n; i++)
		if (u->spaces[i].number && u->spaces[i].tgid == tgid && !u->spaces[i].retired_ns)
			return &u->spaces[i];
	return NULL;
}

static struct space *space_new(struct unwind *u)
{
	int64_t now = clock_mono_ns();

	for (uint32_t i = 0; i < u->spaces_n; i++) {
		struct space *space = &u->spaces[i];

		if (space->number && space->retired_ns && now - space->retired_ns > RETIRED_NS)
			space_free(u, space);
	}
	for (uint32_t i = 0; i < u->spaces_n; i++)
		if (!u->spaces[i].number)
			return &u->spaces[i];
	return u->spaces_n < UNWIND_PROCESSES ? &u->spaces[u->spaces_n++] : NULL;
}

static bool is_as_listed(const struct unwind *u, const struct space *space, const struct listing *listing)
{
	if (space->n != listing->n ||
	    memcmp(space->mappings, listing->mappings, listing->n * sizeof(*listing->mappings)) != 0)
		return false;
	for (uint32_t i = 0; i < space->n; i++)
		if (u->areas[space->first + i].start != listing->areas[i].start ||
		    u->areas[space->first + i].end != listing->areas[i].end)
			return false;
	return true;
}

static int space_fill(struct unwind *u, struct space *space, uint32_t tgid, struct listing *listing)
{
	struct unwind_space to;
	int r = ranges_take(&u->areas_used, listing->n, &space->first);

	if (r < 0)
		return r;
	space->number = ++u->number;
	space->tgid = tgid;
	space->n = listing->n;
	space->mappings = TAKE_PTR(listing->mappings);
	for (uint32_t i = 0; i < space->n; i++) {
		struct unwind_area *area = &u->areas[space->first + i];

		*area = listing->areas[i];
		area->space = space->number;
		area_set(u, area, &space->mappings[i]);
	}
	to = (struct unwind_space){ .first = space->first, .n = space->n, .space = space->number };
	if (bpf_map_update_elem(u->maps.spaces, &tgid, &to, BPF_ANY) < 0)
		r = -errno;
	if (r < 0)
		space_free(u, space);
	return r;
}

int unwind_mapped(struct unwind *u, pid_t pid)
{
	_cleanup_(listing_done) struct listing listing = { .u = u };
	struct space *before = space_of(u, (uint32_t)pid), *space;
	int r = list(u, pid, &listing);

	if (r < 0 || listing.n == 0 || (before && is_as_listed(u, before, &listing)))
		return r;
	space = space_new(u);
	if (!space)
		return -ENOBUFS;
	r = space_fill(u, space, (uint32_t)pid, &listing);
	if (r == 0 && before)
		space_retire(u, before);
	return r;
}

bool unwind_again(struct unwind *u, pid_t pid, bool changed)
{
	struct space *space = space_of(u, (uint32_t)pid);
	int64_t soon_ns = clock_mono_ns() + AGAIN_NS;

	/* That it was found unchanged before says nothing. */
	if (space && changed) {
		space->wait_ns = 0;
		space->again_ns = MIN(space->again_ns, soon_ns);
	}
	if (space && !space->stale) {
		space->stale = true;
		u->stale_n++;
	}
	return space != NULL;
}

static struct space *space_due(struct unwind *u, int64_t now_ns)
{
	if (u->stale_n == 0 || now_ns < u->rest_ns)
		return NULL;
	for (uint32_t i = 0; i < u->spaces_n; i++)
		if (u->spaces[i].stale && now_ns >= u->spaces[i].again_ns)
			return &u->spaces[i];
	return NULL;
}

int64_t unwind_next_ns(const struct unwind *u)
{
	int64_t next_ns = INT64_MAX;

	for (uint32_t i = 0; u->stale_n > 0 && i < u->spaces_n; i++)
		if (u->spaces[i].stale)
			next_ns = MIN(next_ns, MAX(u->spaces[i].again_ns, u->rest_ns));
	return next_ns;
}

/* Whether a list was read again. */
static bool read_again(struct unwind *u)
{
	int64_t begin_ns = clock_mono_ns(), end_ns;
	struct space *space = space_due(u, begin_ns);
	uint32_t number, tgid;

	if (!space)
		return false;
	number = space->number;
	tgid = space->tgid;
	space->stale = false;
	u->stale_n--;
	(void)unwind_mapped(u, (pid_t)tgid); /* if it cannot be read, the list before stays */
	end_ns = clock_mono_ns();
	u->rest_ns = end_ns + REST * (end_ns - begin_ns);
	space = space_of(u, tgid);
	if (!space)
		return true;
	space->wait_ns =
		space->number == number ? CLAMP(2 * space->wait_ns, AGAIN_NS, AGAIN_MAX_NS) : AGAIN_NS;
	space->again_ns = end_ns + space->wait_ns;
	return true;
}

void unwind_event(struct unwind *u, const struct trace_header *event)
{
	struct space *space;

	if (event->type != TRACE_EVENT_EXEC && event->type != TRACE_EVENT_EXIT)
		return;
	space = space_of(u, event->tgid);
	if (space)
		space_retire(u, space);
	made_over(u, event->tgid);
}

/* ---- work ---- */

static int rows_room(struct unwind *u, uint32_t n, uint32_t *ret_first)
{
	int r = ranges_take(&u->rows_used, n, ret_first);

	for (uint32_t i = 1; r == -ENOBUFS && i <= u->files_n; i++) {
		struct file *file = &u->files[i];

		if (file->users > 0 || file->rows == 0)
			continue;
		ranges_give(&u->rows_used, file->first);
		file->rows = 0;
		file->state = FILE_QUEUED; /* made again once it is used */
		file->none = TRACE_NATIVE_PENDING;
		r = ranges_take(&u->rows_used, n, ret_first);
	}
	return r;
}

/* The rows that were made, or @r: why none were. */
static void file_made(struct unwind *u, struct file *file, int r)
{
	const struct making *making = &u->making;

	file->state = FILE_MADE;
	if (r == 0 && making->rows_n > 0)
		r = rows_room(u, making->rows_n, &file->first);
	file->none = r == -ENOBUFS || r == -ENOMEM || r == -EFBIG || r == -ETIME ? TRACE_NATIVE_FULL :
										   TRACE_NATIVE_NO_RULE;
	if (r == 0 && making->rows_n > 0) {
		memcpy(&u->rows[file->first], making->rows, making->rows_n * sizeof(*making->rows));
		file->base = making->base;
		file->rows = making->rows_n;
	}
	making_done(&u->making);
}

static bool work_step(struct unwind *u)
{
	int r = 1;

	if (u->making_of == 0) {
		for (uint32_t i = 1; i <= u->files_n && u->making_of == 0; i++)
			if (u->files[i].state == FILE_QUEUED && u->files[i].users > 0)
				u->making_of = i;
		if (u->making_of == 0)
			return false;
		r = making_begin(&u->making, u->files[u->making_of].fd);
		r = r < 0 ? r : 1;
	} else {
		r = making_step(&u->making, &u->rules);
	}
	if (r > 0)
		return true;
	file_made(u, &u->files[u->making_of], r);
	file_publish(u, u->making_of);
	u->making_of = 0;
	return true;
}

bool unwind_work(struct unwind *u)
{
	int64_t end_ns = clock_mono_ns() + WORK_NS;

	while (read_again(u) || work_step(u))
		if (clock_mono_ns() >= end_ns)
			return true;
	return false;
}

/* ---- finding ---- */

int unwind_find(struct unwind *u, uint32_t number, uint64_t pc, struct unwind_place *ret_place)
{
	for (uint32_t i = 0; number && i < u->spaces_n; i++) {
		const struct space *space = &u->spaces[i];

		if (space->number != number)
			continue;
		for (uint32_t k = 0; k < space->n; k++) {
			const struct unwind_area *area = &u->areas[space->first + k];

			if (pc < area->start || pc >= area->end)
				continue;
			u->files[space->mappings[k].file].told = true; /* of none, 0, it is not looked at */
			*ret_place = (struct unwind_place){ space->mappings[k].file,
							    pc - space->mappings[k].bias };
			return 0;
		}
	}
	return -ENOENT;
}

const char *unwind_path(const struct unwind *u, uint32_t file, int *ret_fd)
{
	*ret_fd = u->files[file].fd;
	return u->files[file].path;
}

uint64_t unwind_crowded(const struct unwind *u)
{
	return u->crowded;
}

/* ---- start and end ---- */

static int map_array(int fd, size_t bytes, void **ret_array)
{
	void *array = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (array == MAP_FAILED)
		return -errno;
	*ret_array = array;
	return 0;
}

int unwind_new(const struct unwind_maps *maps, struct unwind **ret_unwind)
{
	_cleanup_(unwind_freep) struct unwind *u = calloc(1, sizeof(*u));
	static const struct unwind_rule none = { .kind = UNWIND_NONE };
	uint32_t zero;
	int r;

	if (!u)
		return -ENOMEM;
	u->maps = *maps;
	u->areas_used.size = UNWIND_AREAS;
	u->rows_used.size = UNWIND_ROWS;
	u->files_max = maps->files ? maps->files : UNWIND_FILES;
	u->files = calloc(u->files_max + 1, sizeof(*u->files));
	u->spaces = calloc(UNWIND_PROCESSES, sizeof(*u->spaces));
	if (!u->files || !u->spaces)
		return -ENOMEM;
	r = map_array(maps->areas, UNWIND_AREAS * sizeof(*u->areas), (void **)&u->areas);
	if (r == 0)
		r = map_array(maps->rows, UNWIND_ROWS * sizeof(*u->rows), (void **)&u->rows);
	if (r == 0)
		r = map_array(maps->rules, UNWIND_RULES * sizeof(*u->rules.rules), (void **)&u->rules.rules);
	if (r == 0)
		r = rules_add(&u->rules, &none, &zero); /* rule 0 */
	if (r < 0)
		return r;
	*ret_unwind = TAKE_PTR(u);
	return 0;
}

void unwind_free(struct unwind *u)
{
	if (!u)
		return;
	for (uint32_t i = 1; i <= u->files_n && u->files; i++)
		file_done(u, &u->files[i]);
	for (uint32_t i = 0; i < u->spaces_n; i++)
		free(u->spaces[i].mappings);
	free(u->files);
	free(u->spaces);
	if (u->areas)
		munmap(u->areas, UNWIND_AREAS * sizeof(*u->areas));
	if (u->rows)
		munmap(u->rows, UNWIND_ROWS * sizeof(*u->rows));
	if (u->rules.rules)
		munmap(u->rules.rules, UNWIND_RULES * sizeof(*u->rules.rules));
	hashmap_done(&u->rules.by);
	ranges_done(&u->areas_used);
	ranges_done(&u->rows_used);
	making_done(&u->making);
	free(u);
}
