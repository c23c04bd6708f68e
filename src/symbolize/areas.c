// SPDX-License-Identifier: Apache-2.0
/*
 * Reads the current mappings of a process: its executable files, and all their areas. Uses no stored state,
 * so any thread may call it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbolize/process.h"
#include "proc/maps.h"

uint64_t mapped_key(uint64_t dev, uint64_t ino)
{
	const uint64_t both[] = { dev, ino };

	return hash_bytes(both, sizeof(both));
}

uint32_t mapped_find(const struct process *process, uint64_t dev, uint64_t ino)
{
	for (uint32_t i = 0; i < process->mapped_n; i++)
		if (process->mapped[i].dev == dev && process->mapped[i].ino == ino)
			return i;
	return UINT32_MAX;
}

uint32_t mapped_at(const struct process *process, const struct hashmap *index, uint64_t dev, uint64_t ino)
{
	uint32_t i;

	if (!hashmap_get(index, mapped_key(dev, ino), &i))
		return UINT32_MAX;
	/* If two files have the same key, only one is stored. */
	return process->mapped[i].dev == dev && process->mapped[i].ino == ino ? i : UINT32_MAX;
}

static char *path_of(const struct proc_map *map)
{
	static const char deleted[] = " (deleted)";
	size_t n = map->path_n;

	if (n > sizeof(deleted) - 1 &&
	    memcmp(map->path + n - (sizeof(deleted) - 1), deleted, sizeof(deleted) - 1) == 0)
		n -= sizeof(deleted) - 1;
	return strndup(map->path, n);
}

struct caps {
	uint32_t mapped, areas;
	bool areas_full, full; /* limit reached: of areas; of files */
	struct hashmap index; /* of mapped */
	const char *pending; /* path of the file to be mapped, or "" */
};

static int add_mapped(struct process *process, const struct proc_map *map, struct caps *caps,
		      uint32_t *ret_index)
{
	struct mapped *mapped;
	int r;

	if (process->mapped_n == caps->mapped) {
		uint32_t more = caps->mapped ? caps->mapped * 2 : 32;

		mapped = reallocarray(process->mapped, more, sizeof(*mapped));
		if (!mapped)
			return -ENOMEM;
		process->mapped = mapped;
		caps->mapped = more;
	}
	mapped = &process->mapped[process->mapped_n];
	*mapped = (struct mapped){ .dev = map->dev, .ino = map->ino, .path = path_of(map) };
	if (!mapped->path)
		return -ENOMEM;
	*ret_index = process->mapped_n++;
	r = map->ino ? hashmap_put(&caps->index, mapped_key(map->dev, map->ino), *ret_index) : 0;
	return r;
}

/* Removes data files, which are not needed; that of area @last may still get executable areas. */
static int drop_data(struct process *process, struct caps *caps, uint32_t last)
{
	_cleanup_free_ uint32_t *now = malloc(MAX(process->mapped_n, 1U) * sizeof(*now));
	uint32_t n = 0;
	int r = 0;

	if (!now)
		return -ENOMEM;
	hashmap_clear(&caps->index);
	for (uint32_t i = 0; i < process->mapped_n; i++) {
		struct mapped *mapped = &process->mapped[i];

		if (!mapped->executable && i != last && !STRV_EQ(mapped->path, caps->pending)) {
			free(mapped->path);
			now[i] = UINT32_MAX;
			continue;
		}
		now[i] = n;
		process->mapped[n] = *mapped;
		if (r == 0 && mapped->ino)
			r = hashmap_put(&caps->index, mapped_key(mapped->dev, mapped->ino), n);
		n++;
	}
	process->mapped_n = n;
	n = 0;
	for (uint32_t i = 0; i < process->areas_n; i++)
		if (now[process->areas[i].mapped] != UINT32_MAX) {
			process->areas[n] = process->areas[i];
			process->areas[n++].mapped = now[process->areas[i].mapped];
		}
	process->areas_n = n;
	return r;
}

static int grow_areas(struct process *process, struct caps *caps)
{
	uint32_t more = caps->areas ? caps->areas * 2 : 64;
	struct area *areas;

	if (caps->areas == AREAS_MAX) {
		caps->areas_full = true;
		return -E2BIG;
	}
	areas = reallocarray(process->areas, more, sizeof(*areas));
	if (!areas)
		return -ENOMEM;
	process->areas = areas;
	caps->areas = more;
	return 0;
}

/* -E2BIG: too many areas, even without data files. */
static int make_room_for_area(struct process *process, struct caps *caps)
{
	bool areas = process->areas_n == caps->areas,
	     files = process->mapped_n >= MAPPED_MAX + MAPPED_MAX / 8;
	int r;

	if (caps->areas_full)
		return -E2BIG;
	if ((areas && process->areas_n >= MAPPED_MAX) || (files && !caps->full)) {
		r = drop_data(process, caps, process->areas[process->areas_n - 1].mapped);
		if (r < 0)
			return r;
		caps->full = process->mapped_n >= MAPPED_MAX;
	}
	return areas && process->areas_n >= caps->areas - caps->areas / 4 ? grow_areas(process, caps) : 0;
}

static int add_area(struct process *process, const struct proc_map *map, struct caps *caps)
{
	uint32_t index;
	int r = make_room_for_area(process, caps);

	if (r < 0 && r != -E2BIG)
		return r;
	index = mapped_at(process, &caps->index, map->dev, map->ino);
	if (r == -E2BIG || (index == UINT32_MAX && caps->full)) {
		process->areas_left_out += map->executable;
		return 0;
	}
	if (index == UINT32_MAX) {
		r = add_mapped(process, map, caps, &index);
		if (r < 0)
			return r;
	}
	if (map->executable && !process->mapped[index].executable) {
		process->mapped[index].executable = true;
		process->mapped[index].start = map->start;
		process->mapped[index].end = map->end;
	}
	process->areas[process->areas_n++] = (struct area){
		.start = map->start,
		.end = map->end,
		.offset = map->offset,
		.mapped = index,
		.executable = map->executable,
	};
	return 0;
}

/* ---- the file to be mapped ---- */

static uint32_t find_overlapped(const struct process *process, const struct symbolizer_mapping *mapping)
{
	for (uint32_t i = 0; i < process->areas_n; i++) {
		const struct area *area = &process->areas[i];

		if (area->start < mapping->address + mapping->length && area->end > mapping->address &&
		    STRV_EQ(process->mapped[area->mapped].path, mapping->path))
			return area->mapped;
	}
	return UINT32_MAX;
}

/* Replaces overlapping areas, as MAP_FIXED does. */
static int put_area(struct process *process, const struct area *put)
{
	struct area *areas = calloc((size_t)process->areas_n + 2, sizeof(*areas));
	uint32_t n = 0, i = 0;

	if (!areas)
		return -ENOMEM;
	for (; i < process->areas_n && process->areas[i].start < put->start; i++) {
		areas[n] = process->areas[i];
		areas[n].end = MIN(areas[n].end, put->start);
		n++;
	}
	areas[n++] = *put;
	/* The area before it may overlap, too. */
	for (i -= i > 0; i < process->areas_n; i++) {
		struct area rest = process->areas[i];

		if (rest.end <= put->end)
			continue;
		if (rest.start < put->end) {
			rest.offset += put->end - rest.start;
			rest.start = put->end;
		}
		areas[n++] = rest;
	}
	free(process->areas);
	process->areas = areas;
	process->areas_n = n;
	return 0;
}

/* The dynamic linker maps the whole file first, so the new area may overlap one of the same file. */
static int add_pending(struct process *process, const struct symbolizer_mapping *mapping, struct caps *caps)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), n = (mapping->length + page - 1) & ~(page - 1);
	uint32_t index = find_overlapped(process, mapping);
	struct area area = {
		.start = mapping->address,
		.end = mapping->address + n,
		.offset = mapping->offset,
		.executable = true,
	};
	const struct proc_map map = { .path = mapping->path, .path_n = strlen(mapping->path) };
	int r = 0;

	if (n < mapping->length || area.end <= area.start)
		return 0; /* the call will fail */
	if (index == UINT32_MAX)
		r = add_mapped(process, &map, caps, &index);
	if (r < 0)
		return r;
	process->mapped[index].executable = true;
	process->mapped[index].start = area.start;
	process->mapped[index].end = area.end;
	area.mapped = index;
	return put_area(process, &area);
}

void areas_done(struct process *process)
{
	for (uint32_t i = 0; i < process->areas_n; i++)
		free(process->areas[i].held);
	for (uint32_t i = 0; i < process->mapped_n; i++)
		free(process->mapped[i].path);
	free(TAKE_PTR(process->areas));
	free(TAKE_PTR(process->mapped));
	process->areas_n = process->mapped_n = 0;
}

/* Frees unused capacity, so that the accounted size is the allocated one. */
static void fit(struct process *process)
{
	struct area *areas = reallocarray(process->areas, MAX(process->areas_n, 1U), sizeof(*areas));
	struct mapped *mapped = reallocarray(process->mapped, MAX(process->mapped_n, 1U), sizeof(*mapped));

	if (areas)
		process->areas = areas;
	if (mapped)
		process->mapped = mapped;
}

int areas_read(const char *root, pid_t pid, const struct symbolizer_mapping *pending,
	       struct process *ret_process)
{
	struct process fresh = { .id.pid = (uint32_t)pid };
	_cleanup_(proc_maps_done) struct proc_maps maps;
	struct caps caps = { .pending = pending ? pending->path : "" };
	struct proc_map map;
	int r;

	maps.fd = -1;
	r = proc_maps_open(root, pid, &maps);
	while (r >= 0 && (r = proc_maps_next(&maps, &map)) > 0)
		if (map.ino != 0) {
			r = add_area(&fresh, &map, &caps);
			if (r < 0)
				break;
		}
	if (r == 0 && fresh.areas_n == 0)
		r = -ESRCH; /* a zombie */
	if (r == 0 && pending && pending->length > 0)
		r = add_pending(&fresh, pending, &caps);
	caps.pending = "";
	if (r == 0)
		r = drop_data(&fresh, &caps, UINT32_MAX);
	hashmap_done(&caps.index);
	if (r < 0) {
		areas_done(&fresh);
		return r;
	}
	fit(&fresh);
	*ret_process = fresh;
	return 0;
}
