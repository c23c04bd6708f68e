// SPDX-License-Identifier: Apache-2.0
#include "owners/scan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/macro.h"
#include "owners/given.h"
#include "owners/names.h"
#include "owners/running.h"
#include "owners/scan_private.h"

enum {
	FILE_MAX = 1 << 20, /* of one container; an OCI bundle's config.json has 10 to 30 KiB */
	LIST_MAX = 16 << 20, /* containers.json: about 1 KiB for each */
	ENTRIES_MAX = 16384, /* that are looked at in one folder */
};

/* A folder's time says nothing about a change within the same tick of the kernel's clock. */
#define SETTLED_NS (100 * NSEC_PER_MSEC)
/* Changes of files within folders that do not show in the folders. */
#define READ_AGAIN_NS (60 * NSEC_PER_SEC)

#define CONTAINERD(state_, namespace_)                                                              \
	{                                                                                           \
		.path = state_ "/io.containerd.runtime.v2.task/" namespace_, .kind = PLACE_FOLDERS, \
		.file = "config.json", .init = "init.pid", .gone_when_over = true                   \
	}

const struct place places[PLACES] = {
	{ .path = "var/log/containers", .kind = PLACE_NAMES, .of_name = owner_of_log_link },
	CONTAINERD("run/containerd", "k8s.io"),
	CONTAINERD("run/containerd", "moby"), /* Docker's */
	CONTAINERD("run/containerd", "default"), /* nerdctl's */
	CONTAINERD("run/k3s/containerd", "k8s.io"),
	{ .path = "run/containers/storage/overlay-containers",
	  .kind = PLACE_FOLDERS,
	  .file = "userdata/config.json",
	  .init = "userdata/pidfile" },
	{ .path = "var/lib/docker/containers",
	  .kind = PLACE_FOLDERS,
	  .file = "config.v2.json",
	  .docker = true },
	{ .path = "var/lib/containers/storage/overlay-containers/containers.json", .kind = PLACE_LIST },
	{ .path = "var/log/pods", .kind = PLACE_NAMES, .of_name = owner_of_log_folder },
};

int scan_new(struct scan **ret_scan)
{
	struct scan *scan = calloc(1, sizeof(*scan));
	int r = scan ? cdi_new(&scan->cdi) : -ENOMEM;

	if (r < 0) {
		free(scan);
		return r;
	}
	scan->by = (struct given_by){ .cdi = scan->cdi, .toolkit = toolkit_unknown };
	*ret_scan = scan;
	return 0;
}

static void known_done(struct state *state)
{
	for (uint32_t i = 0; i < state->n; i++)
		free(state->list[i].given);
	free(state->list);
}

void scan_free(struct scan *scan)
{
	if (!scan)
		return;
	for (unsigned i = 0; i < PLACES; i++)
		known_done(&scan->states[i]);
	cdi_free(scan->cdi);
	free(scan->rows);
	free(scan->list);
	free(scan->given_rows);
	free(scan->given);
	free(scan->text);
	free(scan->host);
	free(scan);
}

/* ---- files below the root ---- */

static int64_t changed_ns(const struct stat *st)
{
	return (int64_t)st->st_mtim.tv_sec * NSEC_PER_SEC + st->st_mtim.tv_nsec;
}

/* Reads a whole file of at most @max bytes into *text, which grows. */
static int read_text(char **text, size_t *text_room, int fd, const struct stat *st, size_t max, size_t *ret_n)
{
	size_t n = 0, room = (size_t)st->st_size + 1;

	if (!S_ISREG(st->st_mode))
		return -ENOTSUP;
	if ((uint64_t)st->st_size > max)
		return -EFBIG;
	if (room > *text_room) {
		char *larger = realloc(*text, room);

		if (!larger)
			return -ENOMEM;
		*text = larger;
		*text_room = room;
	}
	for (ssize_t got; n < room; n += (size_t)got) {
		got = read(fd, *text + n, room - n);
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
	}
	*ret_n = n;
	return n < room ? 0 : -EAGAIN; /* it grows: read it with the next scan */
}

/* ---- the entries of a place ---- */

static struct known *entry_add(struct state *state)
{
	if (state->n == OWNERS_MAX) {
		state->dropped++;
		return NULL;
	}
	if (state->n == state->room) {
		uint32_t room = MAX(16u, state->room * 2);
		struct known *list = reallocarray(state->list, room, sizeof(*list));

		if (!list) {
			state->dropped++;
			return NULL;
		}
		state->list = list;
		state->room = room;
	}
	state->list[state->n] = (struct known){ 0 };
	return &state->list[state->n++];
}

static void on_listed(const struct owner *owner, void *userdata)
{
	struct known *known = entry_add(userdata);

	if (known)
		*known = (struct known){ .owner = *owner, .named = true };
}

static void take_name(struct state *state, const struct place *place, const char *name)
{
	struct owner owner;

	if (place->of_name(name, &owner))
		on_listed(&owner, state);
}

static int compare_known(const void *a, const void *b)
{
	return strcmp(((const struct known *)a)->owner.id, ((const struct known *)b)->owner.id);
}

static struct known *find_known(const struct state *old, const char *id)
{
	struct known key = { 0 };

	memcpy(key.owner.id, id, CONTAINER_ID_DIGITS);
	return old->n ? bsearch(&key, old->list, old->n, sizeof(key), compare_known) : NULL;
}

/* ---- the file of a container ---- */

/* A descriptor or -errno. */
static int open_file(int dir, const char *path, struct stat *ret_st)
{
	int fd = openat(dir, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC), r;

	if (fd < 0)
		return -errno;
	if (fstat(fd, ret_st) == 0)
		return fd;
	r = -errno;
	close(fd);
	return r;
}

static struct given_list *given_copy(const struct given *given)
{
	struct given_list *list = malloc(sizeof(*list) + given->n * sizeof(list->list[0]));

	if (!list)
		return NULL;
	memcpy(list->resource, given->resource, sizeof(list->resource));
	memcpy(list->pod_uid, given->pod_uid, sizeof(list->pod_uid));
	list->estimated = given->estimated;
	list->n = given->n;
	memcpy(list->list, given->list, given->n * sizeof(list->list[0]));
	return list;
}

/* hostconfig.json beside config.v2.json, which is in scan->text. */
static int read_docker(struct scan *scan, int dir, const char *id, size_t n, struct given *given)
{
	char path[CONTAINER_ID_DIGITS + 32];
	struct stat st;
	size_t host_n;
	int r;

	snprintf(path, sizeof(path), "%.*s/hostconfig.json", (int)CONTAINER_ID_DIGITS, id);
	_cleanup_close_ int fd = open_file(dir, path, &st);

	r = fd < 0 ? fd : read_text(&scan->host, &scan->host_room, fd, &st, FILE_MAX, &host_n);
	return r < 0 ? r : given_by_docker(scan->host, host_n, scan->text, n, &scan->by, given);
}

/* What is in scan->text. */
static void take_given(struct scan *scan, struct state *state, const struct place *place, int dir,
		       const char *id, size_t n, struct known *known)
{
	struct given given;
	int r = place->docker ? read_docker(scan, dir, id, n, &given) :
				given_by_bundle(scan->text, n, &scan->by, &given);

	known->init = place->docker ? docker_init(scan->text, n) : 0;
	if (r < 0)
		return;
	state->given_dropped += given.dropped;
	known->given = given.n ? given_copy(&given) : NULL;
	if (given.n && !known->given)
		state->given_dropped += given.n;
	known->told = true;
}

static int read_container(struct scan *scan, struct state *state, const struct place *place, int dir,
			  const char *path, const char *id, struct known *known)
{
	struct stat st;
	size_t n;
	_cleanup_close_ int fd = open_file(dir, path, &st);
	int r = fd < 0 ? fd : read_text(&scan->text, &scan->text_room, fd, &st, FILE_MAX, &n);

	if (r < 0)
		return r;
	known->named = place->docker ? owner_of_docker(scan->text, n, &known->owner) :
				       owner_of_bundle(id, scan->text, n, &known->owner);
	take_given(scan, state, place, dir, id, n, known);
	known->changed_ns = changed_ns(&st);
	return 0;
}

/* The file of a container, unless @old knows it as it is. */
static void take_folder(struct scan *scan, struct state *state, const struct state *old,
			const struct place *place, int dir, const char *id)
{
	struct known *before = find_known(old, id), *known;
	char path[CONTAINER_ID_DIGITS + 32];
	struct stat st;
	int r;

	snprintf(path, sizeof(path), "%.*s/%s", (int)CONTAINER_ID_DIGITS, id, place->file);
	if (fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		state->again = true; /* the runtime makes it after the folder */
		return;
	}
	known = entry_add(state);
	if (!known)
		return;
	if (before && before->changed_ns == changed_ns(&st) && !scan->devices_changed) {
		*known = *before;
		before->given = NULL;
		return;
	}
	r = read_container(scan, state, place, dir, path, id, known);
	if (r < 0) {
		state->again = true;
		state->error = r == -ENOENT || r == -EAGAIN ? state->error : r;
	}
	memcpy(known->owner.id, id, CONTAINER_ID_DIGITS + 1);
}

static int read_folder(struct scan *scan, struct state *state, const struct state *old,
		       const struct place *place, int fd)
{
	DIR *dir = fdopendir(fd);
	struct dirent *entry;
	unsigned seen = 0;

	if (!dir) {
		int r = -errno;

		close(fd);
		return r;
	}
	for (;; seen++) {
		errno = 0;
		entry = readdir(dir);
		if (!entry)
			break;
		if (seen == ENTRIES_MAX) {
			state->dropped++; /* at least */
			break;
		}
		if (place->kind == PLACE_NAMES)
			take_name(state, place, entry->d_name);
		else if (is_container_id(entry->d_name))
			take_folder(scan, state, old, place, dirfd(dir), entry->d_name);
	}
	if (!entry && errno)
		state->error = -errno;
	closedir(dir);
	if (state->n)
		qsort(state->list, state->n, sizeof(state->list[0]), compare_known);
	return state->error;
}

static int read_list(struct scan *scan, struct state *state, int fd, const struct stat *st)
{
	size_t n;
	int r = read_text(&scan->text, &scan->text_room, fd, st, LIST_MAX, &n);

	return r < 0 ? r : owners_of_storage(scan->text, n, on_listed, state);
}

/* Whether what is known of a place is still so. */
static bool is_current(const struct state *state, const struct stat *st, int64_t now_ns)
{
	return state->read_ns && !state->again && !state->error && state->changed_ns == changed_ns(st) &&
	       state->read_ns - state->changed_ns > SETTLED_NS && now_ns >= state->read_ns &&
	       now_ns - state->read_ns < READ_AGAIN_NS;
}

static void scan_place(struct scan *scan, unsigned i, int root)
{
	const struct place *place = &places[i];
	struct state *state = &scan->states[i], old = *state;
	int64_t now_ns = clock_real_ns();
	int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | (place->kind == PLACE_LIST ? 0 : O_DIRECTORY);
	_cleanup_close_ int fd = fd_open_below(root, place->path, flags);
	struct stat st;

	if (fd == -ENOENT) { /* no such runtime here */
		scan->changed |= old.n > 0 || old.error;
		known_done(&old);
		*state = (struct state){ 0 };
		return;
	}
	if (fd < 0 || fstat(fd, &st) < 0) {
		state->error = fd < 0 ? fd : -errno; /* what was known stays */
		scan->changed = true;
		return;
	}
	if (is_current(state, &st, now_ns) && !(scan->devices_changed && place->kind == PLACE_FOLDERS))
		return;
	scan->changed = true;
	*state = (struct state){ .changed_ns = changed_ns(&st), .read_ns = now_ns };
	state->error = place->kind == PLACE_LIST ? read_list(scan, state, fd, &st) :
						   read_folder(scan, state, &old, place, TAKE_FD(fd));
	if (state->error && state->n == 0) { /* what was known stays */
		old.error = state->error;
		*state = old;
	} else {
		known_done(&old);
	}
}

int scan_run(struct scan *scan, const char *root, const char *job_dir, struct scan_table *ret_table)
{
	_cleanup_close_ int fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct scan_table table = { 0 };
	int r;

	if (fd < 0)
		return -errno;
	r = cdi_read(scan->cdi, fd);
	if (r < 0)
		return r;
	scan->devices_changed = toolkit_read(&scan->by.toolkit, fd) || r > 0;
	scan->changed |= scan->devices_changed || !scan->table.digest;
	scan->can_tell = running_can_tell();
	for (unsigned i = 0; i < PLACES; i++) {
		scan_place(scan, i, fd);
		if (scan->states[i].error && !table.error[0])
			snprintf(table.error, sizeof(table.error), "/%s: %s", places[i].path,
				 strerror(-scan->states[i].error));
		table.dropped += scan->states[i].dropped;
		table.given_dropped += scan->states[i].given_dropped;
	}
	if (!table.error[0])
		snprintf(table.error, sizeof(table.error), "%s", cdi_error(scan->cdi));
	table.given_dropped += cdi_dropped(scan->cdi);
	/* The folder of jobs is read each time. */
	if (!scan->changed && !job_dir[0] && scan_table_is_current(scan, fd)) {
		*ret_table = scan->table;
		return 0;
	}
	r = scan_table_make(scan, fd, job_dir, &table);
	if (r < 0)
		return r;
	scan->changed = false;
	*ret_table = scan->table = table;
	return 0;
}
