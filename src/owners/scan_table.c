// SPDX-License-Identifier: Apache-2.0
/* The tables of what all places know: names of containers and pods, and what containers were given. */
#include "owners/scan_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/hashmap.h"
#include "base/macro.h"
#include "owners/job_map.h"
#include "owners/running.h"

enum { LOOKS_PER_SCAN = 32 }; /* whether a container still runs */

/* ---- names ---- */

static int compare_row(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->owner.workload != y->owner.workload)
		return x->owner.workload < y->owner.workload ? -1 : 1;
	if (strcmp(x->owner.id, y->owner.id) != 0)
		return strcmp(x->owner.id, y->owner.id);
	return x->place < y->place ? -1 : x->place > y->place;
}

static uint32_t gather_rows(struct scan *scan)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < PLACES; i++)
		for (uint32_t k = 0; k < scan->states[i].n; k++)
			if (scan->states[i].list[k].named)
				scan->rows[n++] = (struct row){ scan->states[i].list[k].owner, i };
	if (n)
		qsort(scan->rows, n, sizeof(scan->rows[0]), compare_row);
	return n;
}

static bool same_workload(const struct owner *a, const struct owner *b)
{
	return a->workload == b->workload && STRV_EQ(a->id, b->id);
}

static void make_names(struct scan *scan, struct scan_table *table)
{
	uint32_t n = gather_rows(scan);

	for (uint32_t i = 0; i < n; i++) {
		const struct owner *owner = &scan->rows[i].owner;

		if (i > 0 && same_workload(owner, &scan->rows[i - 1].owner))
			continue;
		if (table->n == OWNERS_MAX) {
			table->dropped++;
			continue;
		}
		scan->list[table->n++] = *owner;
		table->digest = table->digest * 31 + hash_bytes(owner, sizeof(*owner));
	}
	table->list = scan->list;
}

/* ---- what containers were given ---- */

/* The file with the PID, read with each scan: processes end without a change of any file. */
static uint32_t read_init(int root, const struct place *place, const char *id)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%.64s/%s", place->path, id, place->init);
	_cleanup_close_ int fd = fd_open_below(root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);

	return fd < 0 ? 0 : running_pid(fd);
}

static bool is_running(const struct scan *scan, int root, const struct given_row *row)
{
	const struct place *place = &places[row->place];
	const char *id = row->known->owner.id;
	uint32_t init = place->docker ? row->known->init : read_init(root, place, id);

	if (!init)
		return place->gone_when_over;
	return !scan->can_tell || running_is(init, id);
}

static int compare_given(const void *a, const void *b)
{
	const struct given_row *x = a, *y = b;
	int order = strcmp(x->known->owner.id, y->known->owner.id);

	return order ? order : x->place < y->place ? -1 : x->place > y->place;
}

static void add_given(struct scan *scan, struct scan_table *table, const struct known *known)
{
	const struct given_list *given = known->given;

	for (uint32_t i = 0; i < given->n; i++) {
		struct allocation *to = &scan->given[table->given_n];

		if (table->given_n == ALLOCATIONS_MAX) {
			table->given_dropped++;
			continue;
		}
		memset(to, 0, sizeof(*to));
		to->workload = WORKLOAD_CONTAINER;
		memcpy(to->id, known->owner.id, sizeof(to->id));
		memcpy(to->pod_uid, given->pod_uid, sizeof(to->pod_uid));
		if (known->named) {
			memcpy(to->namespace, known->owner.namespace, sizeof(to->namespace));
			memcpy(to->pod, known->owner.pod, sizeof(to->pod));
			memcpy(to->container, known->owner.container, sizeof(to->container));
		}
		memcpy(to->resource, given->resource, sizeof(to->resource));
		to->estimated = given->estimated;
		to->device = given->list[i];
		table->digest = table->digest * 31 + hash_bytes(to, sizeof(*to));
		table->given_n++;
	}
}

/* Of two places that know what a container was given the first decides, nothing included. */
static void gather_given(struct scan *scan)
{
	struct given_row *rows = scan->given_rows;
	const char *last = "";
	uint32_t n = 0, kept = 0;

	for (uint32_t i = 0; i < PLACES; i++)
		for (uint32_t k = 0; k < scan->states[i].n; k++)
			if (scan->states[i].list[k].told)
				rows[n++] =
					(struct given_row){ .known = &scan->states[i].list[k], .place = i };
	if (n)
		qsort(rows, n, sizeof(rows[0]), compare_given);
	for (uint32_t i = 0; i < n; i++) {
		const struct known *known = rows[i].known;

		if (known->given && !STRV_EQ(known->owner.id, last))
			rows[kept++] = rows[i];
		last = known->owner.id;
	}
	scan->given_rows_n = kept;
}

static void make_given(struct scan *scan, int root, struct scan_table *table)
{
	gather_given(scan);
	for (uint32_t i = 0; i < scan->given_rows_n; i++) {
		struct given_row *row = &scan->given_rows[i];

		row->running = is_running(scan, root, row);
		if (row->running)
			add_given(scan, table, row->known);
	}
	table->given = scan->given;
}

/*
 * So many at a time, since each takes 20 us. Of containerd and Docker the folder of a container goes when it
 * ends, and is seen with the next scan all the same.
 */
bool scan_table_is_current(struct scan *scan, int root)
{
	uint32_t looks = MIN(scan->given_rows_n, (uint32_t)LOOKS_PER_SCAN);

	for (uint32_t i = 0; i < looks; i++) {
		const struct given_row *row = &scan->given_rows[(scan->next_look + i) % scan->given_rows_n];

		if (is_running(scan, root, row) != row->running)
			return false;
	}
	scan->next_look = looks ? (scan->next_look + looks) % scan->given_rows_n : 0;
	return true;
}

/* ---- what jobs were given ---- */

static void add_jobs(struct scan *scan, int root, const char *job_dir, struct scan_table *table)
{
	struct job_map map = { scan->given, table->given_n, ALLOCATIONS_MAX, 0 };
	int fd = fd_open_below(root, job_dir + strspn(job_dir, "/"), O_RDONLY | O_DIRECTORY | O_NONBLOCK);
	int r = fd < 0 ? fd : job_map_read(&map, fd);

	for (uint32_t i = table->given_n; i < map.n; i++)
		table->digest = table->digest * 31 + hash_bytes(&map.rows[i], sizeof(map.rows[i]));
	table->given_n = map.n;
	table->given_dropped += map.dropped;
	if (r < 0 && !table->error[0])
		snprintf(table->error, sizeof(table->error), "workload.job_dir %.80s: %s", job_dir,
			 strerror(-r));
}

/* ---- both ---- */

static int table_room(struct scan *scan, uint32_t n)
{
	void *list;

	if (!scan->given)
		scan->given = calloc(ALLOCATIONS_MAX, sizeof(*scan->given));
	if (!scan->given)
		return -ENOMEM;
	if (n <= scan->room)
		return 0;
	list = reallocarray(scan->rows, n, sizeof(*scan->rows));
	if (!list)
		return -ENOMEM;
	scan->rows = list;
	list = reallocarray(scan->given_rows, n, sizeof(*scan->given_rows));
	if (!list)
		return -ENOMEM;
	scan->given_rows = list;
	list = reallocarray(scan->list, MIN(n, (uint32_t)OWNERS_MAX), sizeof(*scan->list));
	if (!list)
		return -ENOMEM;
	scan->list = list;
	scan->room = n;
	return 0;
}

int scan_table_make(struct scan *scan, int root, const char *job_dir, struct scan_table *table)
{
	uint32_t n = 0;
	int r;

	for (unsigned i = 0; i < PLACES; i++)
		n += scan->states[i].n;
	r = table_room(scan, n);
	if (r < 0)
		return r;
	table->digest = 1;
	make_names(scan, table);
	make_given(scan, root, table);
	if (*job_dir)
		add_jobs(scan, root, job_dir, table);
	table->digest |= 1;
	return 0;
}
