// SPDX-License-Identifier: Apache-2.0
#include "unwind/names.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/hashmap.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "elf/elf.h"
#include "unwind/debug_file.h"
#include "unwind/perf_map.h"

enum {
	SYMBOLS_MS = 2000, /* CPU time for a file: PyTorch's largest has 500,000 symbols */
	SYMBOLS_STEPS = 1024, /* names that are looked at between two looks at the clock */
	NAME = 4096,
};

struct name {
	struct unwind_place place;
	uint64_t best; /* address of the symbol that it has; 0 with @text 0: none */
	uint32_t text, file; /* offsets in the texts; 0: none */
	uint16_t user; /* who is charged for them */
	bool asked; /* a helper was asked for it */
};

struct unwind_names {
	unwind_readable_fn *readable;
	struct unwind_names_limits limits;
	struct user_shares *shares; /* NULL: all are one user's */
	unsigned table;
	struct name *names; /* from 1 on */
	uint32_t n, cap;
	uint32_t unasked; /* no helper was asked for so many */
	struct hashmap by;
	struct strbuf texts;
	struct hashmap text_by;
	uint64_t lost;
};

int unwind_names_add(struct unwind_names *s, const struct unwind_place *place, uint32_t user,
		     uint32_t *ret_name)
{
	const uint64_t id[] = { place->file, place->address };
	uint64_t key = hash_bytes_secret(id, sizeof(id));
	int r;

	if (hashmap_get(&s->by, key, ret_name) && s->names[*ret_name].place.file == place->file &&
	    s->names[*ret_name].place.address == place->address)
		return 0;
	if (s->n + 1 >= s->limits.names)
		return -ENOBUFS;
	if (s->n + 1 >= s->cap) {
		uint32_t cap = MAX(2 * s->cap, 256U);
		struct name *grown = reallocarray(s->names, cap, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		s->names = grown;
		s->cap = cap;
	}
	r = hashmap_put(&s->by, key, s->n + 1);
	if (r < 0)
		return r;
	s->names[++s->n] = (struct name){ .place = *place, .user = (uint16_t)user };
	s->unasked++;
	*ret_name = s->n;
	return 0;
}

/* ---- symbols ---- */

/* The names of one file that are sought, by address. */
struct seeking {
	struct unwind_names *s;
	uint32_t *names;
	uint32_t n;
	uint32_t steps;
	int64_t end_ns; /* CPU time of the thread */
};

static bool is_late(struct seeking *seeking)
{
	return seeking->steps++ % SYMBOLS_STEPS == SYMBOLS_STEPS - 1 &&
	       clock_thread_cpu_ns() >= seeking->end_ns;
}

static uint32_t text_add(struct unwind_names *s, const char *text, uint32_t user)
{
	size_t n = strlen(text) + 1, at = s->texts.len;
	uint64_t key = hash_bytes_secret(text, n);
	uint32_t known;

	if (hashmap_get(&s->text_by, key, &known) && strcmp(s->texts.data + known, text) == 0)
		return known;
	if (at + n > s->limits.bytes ||
	    (s->shares && !user_shares_have(s->shares, user, s->table, (uint32_t)n)))
		return 0;
	if (hashmap_put(&s->text_by, key, (uint32_t)at) < 0)
		return 0;
	strbuf_add(&s->texts, text, n);
	if (s->texts.failed)
		return 0;
	if (s->shares)
		user_shares_take(s->shares, user, s->table, (uint32_t)n);
	return (uint32_t)at;
}

/* @newest: it counts for all its addresses, whatever was said of them before. -ETIME. */
static int offer_name(struct seeking *seeking, const char *symbol, uint64_t address, uint64_t size,
		      bool newest)
{
	struct unwind_names *s = seeking->s;
	uint32_t low = 0, high = seeking->n, text = 0;
	char readable[NAME];

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (s->names[seeking->names[middle]].place.address < address)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < seeking->n; low++) {
		struct name *name = &s->names[seeking->names[low]];

		if (name->place.address - address >= size)
			break;
		if (is_late(seeking))
			return -ETIME;
		if (name->text && name->best >= address && !newest)
			continue;
		if (text == 0) {
			s->readable(symbol, readable, sizeof(readable));
			text = text_add(s, readable, name->user);
			if (text == 0) {
				s->lost++; /* what they were called before stays */
				return 0;
			}
		}
		name->best = address;
		name->text = text;
	}
	return is_late(seeking) ? -ETIME : 0;
}

static int on_symbol(const struct elf_symbol *symbol, void *userdata)
{
	return offer_name(userdata, symbol->name, symbol->address, symbol->size, false);
}

static int on_line(uint64_t address, uint64_t size, const char *name, void *userdata)
{
	return offer_name(userdata, name, address, size, true);
}

static int seek_debug(struct elf_file *elf, int fd, struct seeking *seeking)
{
	_cleanup_(elf_closep) struct elf_file *symbols = NULL;
	_cleanup_close_ int found = -1;
	int r = debug_file_open(elf, fd, seeking->end_ns, &found);

	if (r < 0 || elf_open(found, &symbols) < 0)
		return r == -ETIME ? r : 0;
	elf_limit_cpu(symbols, seeking->end_ns);
	return elf_functions_of(symbols, elf, on_symbol, seeking);
}

static int seek(struct seeking *seeking, int fd)
{
	_cleanup_(elf_closep) struct elf_file *elf = NULL;
	int r;

	if (fd < 0 || elf_open(fd, &elf) < 0)
		return 0;
	elf_limit_cpu(elf, seeking->end_ns);
	r = elf_functions(elf, on_symbol, seeking);
	for (uint32_t i = 0; r != -ETIME && i < seeking->n; i++)
		if (seeking->s->names[seeking->names[i]].text == 0)
			return seek_debug(elf, fd, seeking);
	return r;
}

static int seek_in(struct seeking *seeking, int fd, bool made)
{
	seeking->end_ns = clock_thread_cpu_ns() + SYMBOLS_MS * NSEC_PER_MSEC;
	return made ? perf_map_read(fd, on_line, seeking) : seek(seeking, fd);
}

/* ---- all of them ---- */

static int by_place(const void *a, const void *b, void *userdata)
{
	const struct unwind_names *s = userdata;
	const struct unwind_place *one = &s->names[*(const uint32_t *)a].place;
	const struct unwind_place *other = &s->names[*(const uint32_t *)b].place;

	if (one->file != other->file)
		return one->file < other->file ? -1 : 1;
	return one->address < other->address ? -1 : one->address > other->address;
}

static void clean(char *text)
{
	utf8_sanitize(text);
	for (char *c = text; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
}

static uint32_t file_text(struct unwind_names *s, const char *path, uint32_t user)
{
	const char *slash = strrchr(path, '/');
	char text[NAME_MAX + 1];

	snprintf(text, sizeof(text), "%s", slash ? slash + 1 : path);
	clean(text);
	return text_add(s, text, user);
}

static void name_by_address(struct unwind_names *s, struct name *name)
{
	char text[NAME_MAX + 32];

	if (name->file)
		snprintf(text, sizeof(text), "%s+0x%" PRIx64, s->texts.data + name->file,
			 name->place.address);
	else
		snprintf(text, sizeof(text), "[0x%" PRIx64 "]", name->place.address);
	name->file = 0;
	name->text = text_add(s, text, name->user);
}

static void resolve_file(struct seeking *seeking, const struct unwind *unwind, uint32_t file)
{
	struct unwind_names *s = seeking->s;
	int fd = -1;
	bool made = file && unwind_is_made(unwind, file);
	const char *path = file ? unwind_path(unwind, file, &fd) : NULL;
	uint32_t text = path ? file_text(s, path, s->names[seeking->names[0]].user) : 0;
	int r = 0;

	for (uint32_t i = 0; i < seeking->n; i++)
		s->names[seeking->names[i]].file = text;
	if (file)
		r = seek_in(seeking, fd, made);
	s->lost += r == -ETIME;
	for (uint32_t i = 0; i < seeking->n; i++)
		if (s->names[seeking->names[i]].text == 0)
			name_by_address(s, &s->names[seeking->names[i]]);
}

/* Numbers of those without a name, by file and address; NULL: no memory. To be freed. */
static uint32_t *unnamed(struct unwind_names *s, uint32_t *ret_n)
{
	uint32_t *order = calloc(s->n + 1, sizeof(*order)), n = 0;

	if (!order)
		return NULL;
	for (uint32_t i = 1; i <= s->n; i++)
		if (s->names[i].text == 0)
			order[n++] = i;
	qsort_r(order, n, sizeof(*order), by_place, s);
	*ret_n = n;
	return order;
}

void unwind_names_resolve(struct unwind_names *s, const struct unwind *unwind)
{
	uint32_t n, *order = unnamed(s, &n);

	if (!order)
		return;
	for (uint32_t i = 0, end; i < n; i = end) {
		struct seeking seeking = { .s = s, .names = order + i };
		uint32_t file = s->names[order[i]].place.file;

		for (end = i; end < n && s->names[order[end]].place.file == file; end++)
			;
		seeking.n = end - i;
		resolve_file(&seeking, unwind, file);
	}
	free(order);
}

/* ---- by a helper ---- */

int unwind_names_seek(struct unwind_names *s, int fd, bool made)
{
	struct seeking seeking = { .s = s };
	int r;

	seeking.names = unnamed(s, &seeking.n);
	if (!seeking.names)
		return -ENOMEM;
	r = seek_in(&seeking, fd, made);
	free(seeking.names);
	return r;
}

const char *unwind_names_known(const struct unwind_names *s, uint32_t name)
{
	return s->names[name].text ? s->texts.data + s->names[name].text : NULL;
}

uint32_t unwind_names_ask(struct unwind_names *s, bool (*ready)(uint32_t file, void *userdata),
			  void *userdata, uint32_t max, uint32_t *ret_file, uint32_t *ret_names)
{
	uint32_t n = 0, none = 0; /* a file that is not ready */

	for (uint32_t i = 1; s->unasked > 0 && n < max && i <= s->n; i++) {
		struct name *name = &s->names[i];
		uint32_t file = name->place.file;

		if (name->asked || (n > 0 && file != *ret_file) || (file && file == none))
			continue;
		if (n == 0 && file && !ready(file, userdata)) {
			none = file;
			continue;
		}
		name->asked = true;
		s->unasked--;
		if (file == 0) {
			name_by_address(s, name);
			continue;
		}
		*ret_file = file;
		ret_names[n++] = i;
	}
	return n;
}

uint64_t unwind_names_address(const struct unwind_names *s, uint32_t name)
{
	return s->names[name].place.address;
}

void unwind_names_of_file(struct unwind_names *s, const uint32_t *numbers, uint32_t n, const char *file)
{
	uint32_t text = n ? file_text(s, file, s->names[numbers[0]].user) : 0;

	for (uint32_t i = 0; i < n; i++)
		s->names[numbers[i]].file = text;
}

void unwind_names_give(struct unwind_names *s, uint32_t number, const char *text)
{
	struct name *name = &s->names[number];
	char copy[NAME];

	if (name->text)
		return;
	if (text) {
		snprintf(copy, sizeof(copy), "%s", text);
		clean(copy);
		name->text = text_add(s, copy, name->user);
		s->lost += name->text == 0;
	}
	if (name->text == 0)
		name_by_address(s, name);
}

/* ---- reading ---- */

const char *unwind_names_text(const struct unwind_names *s, uint32_t name, const char **ret_file)
{
	*ret_file = s->texts.data + s->names[name].file;
	return s->names[name].text ? s->texts.data + s->names[name].text : "[not named yet]";
}

uint64_t unwind_names_lost(const struct unwind_names *s)
{
	return s->lost;
}

uint32_t unwind_names_n(const struct unwind_names *s)
{
	return s->n;
}

void unwind_names_share(struct unwind_names *s, struct user_shares *shares, unsigned table)
{
	s->shares = shares;
	s->table = table;
}

int unwind_names_new(unwind_readable_fn *readable, const struct unwind_names_limits *limits,
		     struct unwind_names **ret_names)
{
	_cleanup_(unwind_names_freep) struct unwind_names *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->readable = readable;
	s->limits = *limits;
	strbuf_init(&s->texts, 0);
	strbuf_add(&s->texts, "", 1); /* offset 0: none */
	if (s->texts.failed)
		return -ENOMEM;
	*ret_names = TAKE_PTR(s);
	return 0;
}

void unwind_names_free(struct unwind_names *s)
{
	if (!s)
		return;
	free(s->names);
	hashmap_done(&s->by);
	hashmap_done(&s->text_by);
	strbuf_done(&s->texts);
	free(s);
}
