// SPDX-License-Identifier: Apache-2.0
#include "unwind/unwind.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "proc/user.h"
#include "unwind/private.h"

enum {
	WORK_NS = 5 * 1000 * 1000,
	REST = 4, /* times as long as a list took to read none is read again */
	REST_REMOTE = 49, /* the same where a helper reads it */
};
/* Events that are still in the ring have the list before. */
#define RETIRED_NS (2 * NSEC_PER_SEC)
/* How often a list is read again at most, and at least while it is found unchanged. */
#define AGAIN_NS (100 * NSEC_PER_MSEC)
#define AGAIN_MAX_NS (10 * NSEC_PER_SEC)

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

void file_publish(struct unwind *u, uint32_t file)
{
	for (uint32_t i = 0; i < u->spaces_n; i++) {
		struct space *space = &u->spaces[i];

		for (uint32_t k = 0; space->number && k < space->n; k++)
			if (space->mappings[k].file == file)
				area_set(u, &u->areas[space->first + k], &space->mappings[k]);
	}
}

static void mappings_leave(struct unwind *u, const struct mapping *mappings, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (mappings[i].file)
			u->files[mappings[i].file].users--;
}

void listing_done(struct listing *listing)
{
	if (listing->mappings)
		mappings_leave(listing->u, listing->mappings, listing->n);
	free(listing->areas);
	free(listing->mappings);
	*listing = (struct listing){ .u = listing->u };
}

int listing_init(struct listing *listing, struct unwind *u, pid_t pid)
{
	uint64_t user;
	uint32_t uid;

	if (proc_answers_for("/proc", (uint32_t)pid, &user, &uid) < 0)
		user = UINT64_MAX;
	*listing = (struct listing){
		.u = u,
		.user = user_shares_user(&u->shares, user),
		.areas = calloc(UNWIND_AREAS_OF_PROCESS, sizeof(*listing->areas)),
		.mappings = calloc(UNWIND_AREAS_OF_PROCESS, sizeof(*listing->mappings)),
	};
	if (listing->areas && listing->mappings)
		return 0;
	listing_done(listing);
	return -ENOMEM;
}

void listing_add(struct listing *listing, uint64_t start, uint64_t end, const struct mapping *mapping)
{
	if (listing->n == UNWIND_AREAS_OF_PROCESS)
		return;
	if (mapping->file)
		listing->u->files[mapping->file].users++;
	listing->mappings[listing->n] = *mapping;
	listing->areas[listing->n++] = (struct unwind_area){ .start = start, .end = end };
}

static struct mapping mapping_of(struct listing *listing, const struct proc_map *map,
				 struct mounts_user *user)
{
	struct mapping mapping = { .none = TRACE_NATIVE_NO_FILE };
	struct unwind *u = listing->u;

	if (map->ino != 0) {
		mapping.file = file_get(u, map, user, listing->user);
		if (mapping.file == 0)
			mapping.none = TRACE_NATIVE_CROWDED;
		else if (file_code_bias(&u->files[mapping.file].code, map, &mapping.bias) < 0)
			mapping.file = 0;
	} else if (is_made_code(map)) {
		if (!listing->made_known)
			listing->made = made_get(u, user, listing->user);
		listing->made_known = true;
		mapping.file = listing->made;
	}
	return mapping;
}

static int list(pid_t pid, struct listing *listing)
{
	_cleanup_(proc_maps_done) struct proc_maps maps = { .fd = -1 };
	_cleanup_(mounts_freep) struct mounts *mounts = NULL;
	struct mounts_user user = { .pid = pid };
	struct proc_map map;
	int r = mounts_new("/proc", &mounts);

	if (r < 0)
		return r;
	user.mounts = mounts;
	r = proc_maps_open("/proc", pid, &maps);
	while (r >= 0 && listing->n < UNWIND_AREAS_OF_PROCESS && (r = proc_maps_next(&maps, &map)) > 0) {
		struct mapping mapping;

		if (!map.executable)
			continue;
		mapping = mapping_of(listing, &map, &user);
		listing_add(listing, map.start, map.end, &mapping);
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
	user_shares_give(&u->shares, space->user, UNWIND_SHARE_AREAS, space->n);
	user_shares_give(&u->shares, space->user, UNWIND_SHARE_SPACES, 1);
	free(space->mappings);
	*space = (struct space){ 0 };
}

static void space_retire(struct unwind *u, struct space *space)
{
	u->stale_n -= space->stale;
	space->stale = false;
	space->retired_ns = clock_mono_ns();
}

struct space *space_of(struct unwind *u, uint32_t tgid)
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
	user_shares_take(&u->shares, listing->user, UNWIND_SHARE_AREAS, listing->n);
	user_shares_take(&u->shares, listing->user, UNWIND_SHARE_SPACES, 1);
	space->user = listing->user;
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

int space_listed(struct unwind *u, pid_t pid, struct listing *listing)
{
	struct space *before = space_of(u, (uint32_t)pid), *space;
	int r;

	if (listing->n == 0 || (before && is_as_listed(u, before, listing)))
		return 0;
	if (!unwind_may(u, listing->user, UNWIND_SHARE_SPACES, 1) ||
	    !unwind_may(u, listing->user, UNWIND_SHARE_AREAS, listing->n))
		return -ENOBUFS;
	space = space_new(u);
	if (!space)
		return -ENOBUFS;
	r = space_fill(u, space, (uint32_t)pid, listing);
	if (r == 0 && before)
		space_retire(u, before);
	return r;
}

static int read_here(struct unwind *u, pid_t pid)
{
	_cleanup_(listing_done) struct listing listing = { .u = u };
	int r = listing_init(&listing, u, pid);

	if (r == 0)
		r = list(pid, &listing);
	return r < 0 ? r : space_listed(u, pid, &listing);
}

int unwind_mapped(struct unwind *u, pid_t pid)
{
	if (!u->remote)
		return read_here(u, pid);
	remote_want(u, pid);
	return 0;
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

pid_t space_take_due(struct unwind *u, int64_t now_ns)
{
	struct space *space = space_due(u, now_ns);

	if (!space)
		return 0;
	space->stale = false;
	u->stale_n--;
	return (pid_t)space->tgid;
}

void space_was_read(struct unwind *u, pid_t pid, uint32_t number, int64_t begin_ns)
{
	struct space *space = space_of(u, (uint32_t)pid);
	int64_t end_ns = clock_mono_ns();

	u->rest_ns = end_ns + (u->remote ? REST_REMOTE : REST) * (end_ns - begin_ns);
	if (!space)
		return;
	space->wait_ns =
		space->number == number ? CLAMP(2 * space->wait_ns, AGAIN_NS, AGAIN_MAX_NS) : AGAIN_NS;
	space->again_ns = end_ns + space->wait_ns;
}

/* Whether a list was read again. */
static bool read_again(struct unwind *u)
{
	int64_t begin_ns = clock_mono_ns();
	pid_t pid = space_take_due(u, begin_ns);
	uint32_t number;

	if (pid == 0)
		return false;
	number = space_of(u, (uint32_t)pid)->number;
	(void)read_here(u, pid); /* if it cannot be read, the list before stays */
	space_was_read(u, pid, number, begin_ns);
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
	if (u->remote)
		remote_event(u, event);
}

/* ---- work ---- */

static int take_made(struct unwind *u, struct file *file)
{
	const struct making *making = &u->making;
	uint32_t *numbers;
	int r;

	if (making->rows_n == 0)
		return 0;
	numbers = calloc(making->rules_n, sizeof(*numbers));
	r = numbers ? rows_room(u, file, making->rows_n) : -ENOMEM;
	if (r == 0)
		r = file_take_rules(u, file, making->rules, making->rules_n, numbers);
	for (uint32_t i = 0; r == 0 && i < making->rows_n; i++)
		u->rows[file->first + i] =
			(struct unwind_row){ making->rows[i].pc, numbers[making->rows[i].rule] };
	if (r < 0)
		rows_give(u, file);
	file->base = making->base;
	free(numbers);
	return r;
}

/* The rows that were made, or @r: why none were. */
static void file_made(struct unwind *u, struct file *file, int r)
{
	file_is_made(file, r == 0 ? take_made(u, file) : r);
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
		r = making_step(&u->making);
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

	if (u->remote) {
		remote_pump(u);
		return false;
	}
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

void unwind_forget_names(struct unwind *u)
{
	for (uint32_t i = 1; i <= u->files_n; i++)
		u->files[i].told = false;
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
	struct unwind_rule *rules = NULL;
	int r;

	if (!u)
		return -ENOMEM;
	u->maps = *maps;
	u->areas_used.size = UNWIND_AREAS;
	u->rows_used.size = UNWIND_ROWS;
	u->files_max = maps->files ? maps->files : UNWIND_FILES;
	u->shares.room[UNWIND_SHARE_SPACES] = UNWIND_PROCESSES;
	u->shares.room[UNWIND_SHARE_AREAS] = UNWIND_AREAS;
	u->shares.room[UNWIND_SHARE_FILES] = u->files_max;
	u->shares.room[UNWIND_SHARE_ROWS] = UNWIND_ROWS;
	u->shares.room[UNWIND_SHARE_RULES] = UNWIND_RULES;
	u->files = calloc(u->files_max + 1, sizeof(*u->files));
	u->spaces = calloc(UNWIND_PROCESSES, sizeof(*u->spaces));
	if (!u->files || !u->spaces)
		return -ENOMEM;
	r = map_array(maps->areas, UNWIND_AREAS * sizeof(*u->areas), (void **)&u->areas);
	if (r == 0)
		r = map_array(maps->rows, UNWIND_ROWS * sizeof(*u->rows), (void **)&u->rows);
	if (r == 0)
		r = map_array(maps->rules, UNWIND_RULES * sizeof(*rules), (void **)&rules);
	if (r == 0)
		r = rules_init(&u->rules, rules);
	if (r < 0)
		return r;
	*ret_unwind = TAKE_PTR(u);
	return 0;
}

void unwind_free(struct unwind *u)
{
	if (!u)
		return;
	remote_free(u->remote);
	making_done(&u->making);
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
	rules_done(&u->rules);
	ranges_done(&u->areas_used);
	ranges_done(&u->rows_used);
	free(u);
}
