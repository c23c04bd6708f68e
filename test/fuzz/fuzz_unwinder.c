// SPDX-License-Identifier: Apache-2.0
/*
 * What the helper of unwind/remote.c says, which was taken over: lists, files, rules, rows and names, in any
 * order, with any lengths. What the kernel side and other processes have of it stays within its bounds.
 */
#include "fuzz.h"

#include <stdio.h>

#include "../unit/unwind/fake_helper.h"

enum { MESSAGES_MAX = 200, NAMES = 8, TEXT = 64 };

struct input {
	const uint8_t *data;
	size_t n;
};

static uint64_t take(struct input *input, size_t n)
{
	uint64_t value = 0;

	for (; n > 0 && input->n > 0; n--, input->n--)
		value = value << 8 | *input->data++;
	return value;
}

/* ---- messages ---- */

static size_t make_areas(struct input *input, uint32_t n, void *to)
{
	uint64_t at = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct unwind_told_area area = { .start = at + take(input, 1) };

		area.end = area.start + take(input, 1);
		area.ino = take(input, 1) % 8;
		area.dev = take(input, 1) % 3;
		area.none = take(input, 1) % 2;
		area.bias = take(input, 8);
		at = area.end;
		memcpy((char *)to + i * sizeof(area), &area, sizeof(area));
	}
	return n * sizeof(struct unwind_told_area);
}

static size_t make_rules(struct input *input, uint32_t n, void *to)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct unwind_rule rule = { .cfa = (int32_t)take(input, 1),
						  .kind = (uint8_t)take(input, 1) % (UNWIND_SIGNAL + 2),
						  .ra_saved = (uint8_t)take(input, 1) % 4 };

		memcpy((char *)to + i * sizeof(rule), &rule, sizeof(rule));
	}
	return n * sizeof(struct unwind_rule);
}

static size_t make_rows(struct input *input, uint32_t n, void *to)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct unwind_row row = { (uint32_t)take(input, 2), (uint32_t)take(input, 1) };

		memcpy((char *)to + i * sizeof(row), &row, sizeof(row));
	}
	return n * sizeof(struct unwind_row);
}

static size_t make_file(struct input *input, void *to)
{
	struct unwind_told_file file = { .base = take(input, 8) };

	file.rows = (uint32_t)take(input, 1);
	file.rules = (uint32_t)take(input, 1);
	if (take(input, 1) % 16 == 0)
		file.rows = (uint32_t)take(input, 4);
	memset(file.name, 'x', take(input, 1));
	memcpy(to, &file, sizeof(file));
	return sizeof(file);
}

static size_t make_name(struct input *input, char *to)
{
	size_t n = MIN((size_t)take(input, 1) % TEXT, input->n);

	memcpy(to, input->data, n);
	input->data += n;
	input->n -= n;
	to[n] = '\0';
	return n + 1;
}

static size_t make(struct input *input, uint8_t kind, uint32_t n, void *to)
{
	switch (kind) {
	case UNWIND_TOLD_AREAS:
		return make_areas(input, n, to);
	case UNWIND_TOLD_FILE:
		return make_file(input, to);
	case UNWIND_TOLD_RULES:
		return make_rules(input, n, to);
	case UNWIND_TOLD_ROWS:
		return make_rows(input, n, to);
	case UNWIND_TOLD_NAME:
		return make_name(input, to);
	default:
		return 0;
	}
}

static void tell_one(struct input *input)
{
	static char bytes[256 * sizeof(struct unwind_told_area)];
	uint8_t kind = (uint8_t)take(input, 1) % (UNWIND_TOLD_END + 2), odd = (uint8_t)take(input, 1);
	uint32_t n = (uint32_t)take(input, 1);
	size_t size = make(input, kind, n, bytes);
	int fd = kind == UNWIND_TOLD_FILE || odd & 1 ? memfd_create("file", MFD_CLOEXEC) : -1;

	if (odd & 2 && size > 0)
		size--;
	if (odd & 4)
		n += 1U << 31;
	fake_tell(kind, kind == UNWIND_TOLD_END ? -(int)take(input, 1) : 0, n, bytes, size, fd);
}

/* ---- what has to hold ---- */

static void check_area(const struct unwind *u, const struct unwind_area *area, const struct mapping *mapping)
{
	const struct file *file = &u->files[mapping->file];

	if (mapping->file > u->files_n || area->start >= area->end)
		abort();
	if (area->rows == 0)
		return;
	if (mapping->file == 0 || area->rows != file->rows || area->first != file->first ||
	    area->rows > UNWIND_ROWS || area->first > UNWIND_ROWS - area->rows)
		abort();
	for (uint32_t i = 0; i < area->rows; i++)
		if (u->rows[area->first + i].rule >= u->rules.n)
			abort();
}

static void check(const struct unwind *u)
{
	uint32_t users[64] = { 0 }, asked;

	for (uint32_t i = 0; i < u->spaces_n; i++)
		for (uint32_t k = 0; u->spaces[i].number && k < u->spaces[i].n; k++) {
			check_area(u, &u->areas[u->spaces[i].first + k], &u->spaces[i].mappings[k]);
			users[u->spaces[i].mappings[k].file]++;
		}
	asked = u->remote->asked == ASKED_LIST ? u->remote->listing.n : 0;
	for (uint32_t k = 0; k < asked; k++)
		users[u->remote->listing.mappings[k].file]++;
	for (uint32_t i = 1; i <= u->files_n; i++)
		if (u->files[i].users != users[i])
			abort();
	for (unsigned i = 0; i <= UNWIND_SHARE_RULES; i++)
		if (u->shares.used[i] > u->shares.room[i])
			abort();
}

static void readable(const char *symbol, char *buf, size_t size)
{
	snprintf(buf, size, "%s", symbol);
}

static void want_names(struct unwind_names *names)
{
	for (uint32_t i = 0; i < NAMES; i++) {
		const struct unwind_place place = { 1 + i % 4, 0x100 + i };
		uint32_t number;

		unwind_names_add(names, &place, 0, &number);
	}
}

int fuzz_one(const uint8_t *data, size_t size)
{
	static const struct unwind_names_limits limits = { 64, 1024 };
	struct input input = { data, size };
	struct unwind_names *names;
	sd_event *event;
	struct unwind *u;

	if (sd_event_new(&event) < 0 || unwind_names_new(readable, &limits, &names) < 0)
		abort();
	u = fake_start(event, 32);
	unwind_set_names(u, names);
	for (unsigned i = 0; i < MESSAGES_MAX && input.n > 0; i++) {
		if (u->remote->asked == ASKED_NOTHING && unwind_mapped(u, getpid()) < 0)
			abort();
		if (u->remote->asked == ASKED_NOTHING)
			break; /* its user waits */
		if (i == 1)
			want_names(names);
		tell_one(&input);
		check(u);
	}
	unwind_free(u);
	unwind_names_free(names);
	sd_event_unref(event);
	return 0;
}
