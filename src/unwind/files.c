// SPDX-License-Identifier: Apache-2.0
/* The table of files, and their rows. */
#include "unwind/private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/macro.h"
#include "proc/mapped.h"
#include "unwind/perf_map.h"

static void file_open(struct file *file, const struct proc_map *map, struct mounts_user *mounts)
{
	struct stat st;

	*file = (struct file){ .dev = map->dev,
			       .ino = map->ino,
			       .path = strndup(map->path_n ? map->path : "", map->path_n),
			       .fd = -1,
			       .state = FILE_MADE,
			       .none = TRACE_NATIVE_NO_FILE };
	if (!file->path)
		return;
	if (proc_map_open("/proc", map, mounts, &file->fd, &st) < 0) {
		file->fd = -1;
		return;
	}
	file_code_read(&file->code, file->fd);
	file->none = TRACE_NATIVE_NO_RULE;
	if (file->code.n > 0) {
		file->state = FILE_QUEUED;
		file->none = TRACE_NATIVE_PENDING;
	}
}

void rows_give(struct unwind *u, struct file *file)
{
	if (file->rows > 0) {
		ranges_give(&u->rows_used, file->first);
		user_shares_give(&u->shares, file->user, UNWIND_SHARE_ROWS, file->rows);
	}
	for (uint32_t i = 0; i < file->rules_n; i++)
		rules_give(&u->rules, &u->shares, file->rules[i]);
	free(file->rules);
	file->rules = NULL;
	file->rules_n = file->rows = 0;
}

void file_done(struct unwind *u, struct file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	free(file->path);
	rows_give(u, file);
	user_shares_give(&u->shares, file->user, UNWIND_SHARE_FILES, 1);
	*file = (struct file){ .fd = -1 };
}

/*
 * A place in the table, of a file that nobody uses if there is no other; a user who has his share gets one of
 * his own. 0: there is none.
 */
static uint32_t file_room(struct unwind *u, uint32_t user)
{
	bool may = unwind_may(u, user, UNWIND_SHARE_FILES, 1);

	if (may && u->files_n < u->files_max)
		return ++u->files_n;
	for (uint32_t i = 1; i <= u->files_n; i++) {
		const struct file *file = &u->files[i];

		if (file->users > 0 || file->told || i == u->making_of || (!may && file->user != user))
			continue;
		file_done(u, &u->files[i]);
		return i;
	}
	u->crowded++;
	return 0;
}

static void file_charge(struct unwind *u, uint32_t at, uint32_t user)
{
	u->files[at].user = user;
	user_shares_take(&u->shares, user, UNWIND_SHARE_FILES, 1);
}

uint32_t file_get(struct unwind *u, const struct proc_map *map, struct mounts_user *mounts, uint32_t user)
{
	uint32_t at;

	for (uint32_t i = 1; i <= u->files_n; i++) {
		const struct file *file = &u->files[i];

		if (!file->made_by && file->path && file->dev == map->dev && file->ino == map->ino &&
		    strlen(file->path) == map->path_n && memcmp(file->path, map->path, map->path_n) == 0)
			return i;
	}
	at = file_room(u, user);
	if (at) {
		file_open(&u->files[at], map, mounts);
		file_charge(u, at, user);
	}
	return at;
}

uint32_t file_get_listed(struct unwind *u, const struct file *listed)
{
	uint32_t at;

	for (uint32_t i = 1; i <= u->files_n; i++) {
		struct file *file = &u->files[i];

		if (file->made_by != listed->made_by || file->dev != listed->dev ||
		    file->ino != listed->ino || file->stamp != listed->stamp)
			continue;
		if (file->users > 0 &&
		    !(file->unreachable && file->failed_by != listed->mapped_by))
			return i;
		/* Who had it before may have ended. */
		file->mapped_by = listed->mapped_by;
		file->tries = file->users > 0 ? file->tries : 0;
		file->unreachable = false;
		if (!file->made_by && file->fd < 0) {
			file->state = FILE_QUEUED;
			file->none = TRACE_NATIVE_PENDING;
		}
		return i;
	}
	at = file_room(u, listed->user);
	if (at) {
		u->files[at] = *listed;
		file_charge(u, at, listed->user);
	}
	return at;
}

uint32_t made_get(struct unwind *u, struct mounts_user *mounts, uint32_t user)
{
	uint32_t at;
	int fd;

	for (uint32_t i = 1; i <= u->files_n; i++)
		if (u->files[i].made_by == mounts->pid)
			return i;
	if (perf_map_open(mounts, &fd) < 0)
		return 0;
	at = file_room(u, user);
	if (at == 0) {
		close(fd);
		return 0;
	}
	u->files[at] = (struct file){
		.fd = fd, .state = FILE_MADE, .none = TRACE_NATIVE_NO_FILE, .made_by = mounts->pid
	};
	file_charge(u, at, user);
	return at;
}

void made_over(struct unwind *u, uint32_t tgid)
{
	for (uint32_t i = 1; i <= u->files_n; i++)
		if (u->files[i].made_by == (pid_t)tgid)
			u->files[i].made_by = -1;
}

bool unwind_is_made(const struct unwind *u, uint32_t file)
{
	return u->files[file].made_by != 0;
}

const char *unwind_path(const struct unwind *u, uint32_t file, int *ret_fd)
{
	*ret_fd = u->files[file].fd;
	return u->files[file].path;
}

/* ---- rows ---- */

int rows_room(struct unwind *u, struct file *file, uint32_t n)
{
	bool may = unwind_may(u, file->user, UNWIND_SHARE_ROWS, n);
	int r = may ? ranges_take(&u->rows_used, n, &file->first) : -ENOBUFS;

	for (uint32_t i = 1; r == -ENOBUFS && i <= u->files_n; i++) {
		struct file *other = &u->files[i];

		if (other->users > 0 || other->rows == 0 || (!may && other->user != file->user))
			continue;
		rows_give(u, other);
		other->state = FILE_QUEUED; /* made again once it is used */
		other->none = TRACE_NATIVE_PENDING;
		may = unwind_may(u, file->user, UNWIND_SHARE_ROWS, n);
		r = may ? ranges_take(&u->rows_used, n, &file->first) : -ENOBUFS;
	}
	if (r == 0) {
		file->rows = n;
		user_shares_take(&u->shares, file->user, UNWIND_SHARE_ROWS, n);
	}
	return r;
}

int file_take_rules(struct unwind *u, struct file *file, const struct unwind_rule *rules, uint32_t n,
		    uint32_t *ret_numbers)
{
	file->rules = calloc(n + 1, sizeof(*file->rules));
	if (!file->rules)
		return -ENOMEM;
	/* Without room for a rule its rows say that none is known. */
	for (uint32_t i = 0; i < n; i++) {
		if (rules_take(&u->rules, &u->shares, file->user, u->remote, &rules[i], &ret_numbers[i]) == 0)
			file->rules[file->rules_n++] = ret_numbers[i];
	}
	return 0;
}

void file_is_made(struct file *file, int r)
{
	file->state = FILE_MADE;
	file->none = r == -ENOBUFS || r == -ENOMEM || r == -EFBIG || r == -ETIME ? TRACE_NATIVE_FULL :
										   TRACE_NATIVE_NO_RULE;
}
