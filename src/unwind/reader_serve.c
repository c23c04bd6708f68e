// SPDX-License-Identifier: Apache-2.0
/* The helper's end. It keeps nothing from one question to the next. */
#include "unwind/reader.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fd.h"
#include "helper/helper.h"
#include "proc/mapped.h"
#include "unwind/perf_map.h"
#include "unwind/private.h"

enum { ALIVE_NS = 250 * 1000 * 1000 };

struct serving {
	int channel;
	unwind_readable_fn *readable;
	struct unwind_question question;
	struct mounts *mounts;
	int64_t told_ns; /* when the newest message was sent */
	union {
		struct unwind_told_head head;
		char bytes[UNWIND_TOLD_BYTES];
	} out;
};

/* A message of @n elements of @size bytes from @from on. */
static int tell_owner(struct serving *s, enum unwind_told kind, uint32_t n, const void *from, size_t size,
		      int fd)
{
	s->out.head = (struct unwind_told_head){ .kind = kind, .n = n };
	memcpy(s->out.bytes + sizeof(s->out.head), from, size);
	s->told_ns = clock_mono_ns();
	return send_with_fd(s->channel, s->out.bytes, sizeof(s->out.head) + size, fd);
}

/* In as many messages as it takes. */
static int tell_all(struct serving *s, enum unwind_told kind, const void *from, uint32_t n, size_t size)
{
	const uint32_t most = (uint32_t)((sizeof(s->out) - sizeof(s->out.head)) / size);
	int r = 0;

	for (uint32_t at = 0, part; r == 0 && at < n; at += part) {
		part = MIN(n - at, most);
		r = tell_owner(s, kind, part, (const char *)from + at * size, part * size, -1);
	}
	return r;
}

static int tell_end(struct serving *s, int error)
{
	const struct unwind_told_head head = { .kind = UNWIND_TOLD_END, .error = error };

	return send_with_fd(s->channel, &head, sizeof(head), -1);
}

/* ---- lists ---- */

static uint64_t stamp_of(const struct stat *st)
{
	const uint64_t parts[] = { (uint64_t)st->st_ctim.tv_sec, (uint64_t)st->st_ctim.tv_nsec,
				   (uint64_t)st->st_size };

	return hash_bytes(parts, sizeof(parts));
}

/* The file of the newest mapping: several parts of one follow each other. */
struct newest {
	uint64_t dev, ino, stamp;
	int error;
	struct file_code code;
};

static void look_at(struct newest *newest, const struct proc_map *map, struct mounts_user *user)
{
	_cleanup_close_ int fd = -1;
	struct stat st;

	*newest = (struct newest){ .dev = map->dev, .ino = map->ino };
	newest->error = proc_map_open("/proc", map, user, &fd, &st);
	if (newest->error < 0)
		return;
	newest->stamp = stamp_of(&st);
	file_code_read(&newest->code, fd);
}

static struct unwind_told_area area_of(const struct proc_map *map, struct newest *newest,
				       struct mounts_user *user)
{
	struct unwind_told_area area = {
		.start = map->start,
		.end = map->end,
		.dev = map->ino ? map->dev : is_made_code(map),
		.ino = map->ino,
		.none = map->ino ? 0 : TRACE_NATIVE_NO_FILE,
	};

	if (!map->ino)
		return area;
	if (map->dev != newest->dev || map->ino != newest->ino)
		look_at(newest, map, user);
	area.stamp = newest->stamp;
	if (newest->error < 0 || file_code_bias(&newest->code, map, &area.bias) < 0)
		area.none = TRACE_NATIVE_NO_FILE;
	return area;
}

static int list_areas(struct serving *s, struct unwind_told_area *areas)
{
	_cleanup_(proc_maps_done) struct proc_maps maps = { .fd = -1 };
	struct mounts_user user = { s->mounts, s->question.pid };
	struct newest newest = { .ino = 0 };
	struct proc_map map;
	uint32_t n = 0;
	int r = proc_maps_open("/proc", s->question.pid, &maps);

	while (r >= 0 && n < UNWIND_AREAS_OF_PROCESS && (r = proc_maps_next(&maps, &map)) > 0)
		if (map.executable)
			areas[n++] = area_of(&map, &newest, &user);
	return r < 0 ? r : tell_all(s, UNWIND_TOLD_AREAS, areas, n, sizeof(*areas));
}

static int answer_list(struct serving *s)
{
	struct unwind_told_area *areas = calloc(UNWIND_AREAS_OF_PROCESS, sizeof(*areas));
	int r = areas ? list_areas(s, areas) : -ENOMEM;

	free(areas);
	return r;
}

/* ---- files ---- */

static void name_file(const struct proc_map *map, char name[static UNWIND_FILE_NAME])
{
	const char *last = map->path_n ? memrchr(map->path, '/', map->path_n) : NULL;

	if (last)
		snprintf(name, UNWIND_FILE_NAME, "%.*s", (int)(map->path_n - (size_t)(last + 1 - map->path)),
			 last + 1);
}

static int open_asked(struct serving *s, int *ret_fd, char name[static UNWIND_FILE_NAME])
{
	const struct unwind_question *question = &s->question;
	_cleanup_(proc_maps_done) struct proc_maps maps = { .fd = -1 };
	struct mounts_user user = { s->mounts, question->pid };
	struct proc_map map;
	struct stat st;
	int r = proc_maps_open("/proc", question->pid, &maps);

	while (r >= 0 && (r = proc_maps_next(&maps, &map)) > 0)
		if (map.executable && map.dev == question->dev && map.ino == question->ino)
			break;
	if (r <= 0)
		return r < 0 ? r : -ENOENT;
	r = proc_map_open("/proc", &map, &user, ret_fd, &st);
	if (r < 0)
		return r;
	name_file(&map, name);
	return stamp_of(&st) == question->stamp ? 0 : -ESTALE;
}

static int make_rows(struct serving *s, struct making *making)
{
	int r = 1;

	while (r > 0) {
		r = making_step(making);
		if (r > 0 && clock_mono_ns() - s->told_ns > ALIVE_NS &&
		    tell_owner(s, UNWIND_TOLD_ALIVE, 0, "", 0, -1) < 0)
			return -EPIPE;
	}
	return r;
}

static int answer_file(struct serving *s)
{
	_cleanup_(making_done) struct making making = { .rows = NULL };
	struct unwind_told_file file = { .base = 0 };
	_cleanup_close_ int fd = -1;
	int r = open_asked(s, &fd, file.name), made;

	if (r < 0)
		return r;
	s->told_ns = clock_mono_ns();
	made = making_begin(&making, fd);
	if (made == 0)
		made = make_rows(s, &making);
	if (made == 0) {
		file.base = making.base;
		file.rows = making.rows_n;
		file.rules = making.rules_n;
	}
	/* The file is sent also where it has no rules: it may have names. */
	r = tell_owner(s, UNWIND_TOLD_FILE, 1, &file, sizeof(file), fd);
	if (r == 0)
		r = tell_all(s, UNWIND_TOLD_RULES, making.rules, file.rules, sizeof(*making.rules));
	if (r == 0)
		r = tell_all(s, UNWIND_TOLD_ROWS, making.rows, file.rows, sizeof(*making.rows));
	return r < 0 ? r : made;
}

/* ---- names ---- */

static int tell_names(struct serving *s, const struct unwind_names *names, const uint32_t *numbers)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < s->question.names; i++) {
		const char *text = numbers[i] ? unwind_names_known(names, numbers[i]) : NULL;

		if (text)
			r = tell_owner(s, UNWIND_TOLD_NAME, i, text,
				       MIN(strlen(text) + 1, sizeof(s->out) - sizeof(s->out.head)), -1);
	}
	return r;
}

static int answer_names(struct serving *s, int fd)
{
	static const struct unwind_names_limits limits = { UNWIND_ASKED_NAMES + 1, UNWIND_NAMES_BYTES };
	_cleanup_(unwind_names_freep) struct unwind_names *names = NULL;
	struct mounts_user user = { s->mounts, s->question.pid };
	uint32_t numbers[UNWIND_ASKED_NAMES] = { 0 };
	_cleanup_close_ int map = -1;
	int r = unwind_names_new(s->readable, &limits, &names);

	if (r == 0 && fd < 0)
		r = perf_map_open(&user, &map);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < s->question.names; i++) {
		const struct unwind_place place = { 1, s->question.addresses[i] };

		(void)unwind_names_add(names, &place, 0, &numbers[i]);
	}
	r = unwind_names_seek(names, fd < 0 ? map : fd, fd < 0);
	if (r == 0 || r == -ETIME)
		r = tell_names(s, names, numbers);
	return r;
}

/* ---- questions ---- */

static int reader_answer(struct serving *s, int fd)
{
	int r = mounts_new("/proc", &s->mounts);

	s->question.names = MIN(s->question.names, (uint32_t)UNWIND_ASKED_NAMES);
	if (r == 0 && s->question.op == UNWIND_ASK_LIST)
		r = answer_list(s);
	else if (r == 0 && s->question.op == UNWIND_ASK_FILE)
		r = answer_file(s);
	else if (r == 0)
		r = answer_names(s, fd);
	mounts_free(TAKE_PTR(s->mounts));
	return tell_end(s, r);
}

int unwind_reader_serve(int channel, unwind_readable_fn *readable)
{
	struct serving *s = calloc(1, sizeof(*s));
	int r = s ? 0 : -ENOMEM, fd;

	while (r == 0) {
		s->channel = channel;
		s->readable = readable;
		r = receive_question(channel, &s->question, sizeof(s->question), &fd);
		if (r != 0)
			break;
		r = reader_answer(s, fd);
		closep(&fd);
	}
	free(s);
	return r == 1 ? EXIT_SUCCESS : r == -EPROTONOSUPPORT ? HELPER_FOREIGN : EXIT_FAILURE;
}
