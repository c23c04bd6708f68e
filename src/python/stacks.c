// SPDX-License-Identifier: Apache-2.0
#include "python/stacks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hashmap.h"
#include "base/strbuf.h"
#include "python/lines.h"
#include "python/private.h"
#include "python/slots.h"
#include "python/text.h"

enum {
	LASTI_UNIT = 2, /* bytes, of 3.10's f_lasti */
	SHARE_STEPS = 256, /* entries that are looked at, to make room for another one of their user */
	PENDING = 256, /* NATIVE events whose STACK is to come: of threads on other CPUs, or preempted */
};

/* A function of a running process. */
struct code {
	struct slot_link link; /* first: slots.h */
	uint64_t address;
	uint32_t tgid; /* 0: unused */
	uint32_t check;
	uint32_t name, file;
	int32_t first_line;
	uint32_t instructions, instructions_at;
	uint32_t table_n;
	uint16_t user; /* who is charged for it and its table */
	uint8_t kind; /* enum trace_lines */
	bool cut; /* the table is longer: its end says nothing */
	bool used; /* by a stack, since it was looked at last to make room */
	uint8_t *table;
};

/* An id of a running process. */
struct known {
	struct slot_link link; /* first */
	uint32_t tgid; /* 0: unused */
	uint32_t id;
	uint32_t path;
	uint32_t user; /* who is charged for it */
};

struct path {
	uint32_t first, n; /* in frames */
};

/* A NATIVE event, with room for its addresses; of tgid 0: unused. */
struct pending {
	union {
		struct trace_native event;
		char bytes[sizeof(struct trace_native) + TRACE_STACK_LARGE * sizeof(__u64)];
	};
};

struct python_stacks {
	struct strbuf texts; /* NUL-terminated, one after the other; a text is its offset */
	struct hashmap text_by, place_by, path_by, code_by, known_by;
	struct python_place *places;
	uint32_t places_n, places_cap;
	struct path *paths;
	uint32_t paths_n, paths_cap;
	uint32_t *frames; /* of all paths */
	uint32_t frames_n, frames_cap;
	struct slots code_slots, known_slots;
	struct code *codes; /* entries of code_slots */
	struct known *knowns; /* of known_slots */
	uint64_t table_bytes;
	uint64_t lost;
	uint64_t dropped; /* entries that were looked at since their processes had ended */
	struct strbuf scratch;
	python_native_fn *native_fn;
	void *userdata;
	struct python_shares shares;
	struct pending *pendings;
	uint32_t pendings_n, pendings_next;
};

/* ---- texts, places, paths: what is equal is one ---- */

static int stacks_grow(void **array, uint32_t *cap, uint32_t wanted, uint32_t max, size_t size)
{
	uint32_t n = *cap ? *cap : 256;
	void *grown;

	if (wanted > max)
		return -ENOBUFS;
	if (wanted <= *cap)
		return 0;
	while (n < wanted)
		n *= 2;
	grown = reallocarray(*array, n, size);
	if (!grown)
		return -ENOMEM;
	*array = grown;
	*cap = n;
	return 0;
}

static int text_add(struct python_stacks *s, const char *text, uint32_t *ret_text)
{
	size_t n = strlen(text) + 1;
	uint64_t key = hash_bytes_secret(text, n);
	uint32_t at = (uint32_t)s->texts.len;
	int r;

	if (hashmap_get(&s->text_by, key, ret_text) && strcmp(s->texts.data + *ret_text, text) == 0)
		return 0;
	if (s->texts.len + n > PYTHON_TEXT_BYTES)
		return -ENOBUFS;
	r = hashmap_put(&s->text_by, key, at);
	if (r < 0)
		return r;
	strbuf_add(&s->texts, text, n);
	if (s->texts.failed)
		return -ENOMEM;
	*ret_text = at;
	return 0;
}

static int place_add(struct python_stacks *s, const struct python_place *place, uint32_t *ret_place)
{
	uint64_t key = hash_bytes_secret(place, sizeof(*place));
	int r;

	if (hashmap_get(&s->place_by, key, ret_place) &&
	    memcmp(&s->places[*ret_place], place, sizeof(*place)) == 0)
		return 0;
	r = stacks_grow((void **)&s->places, &s->places_cap, s->places_n + 1, PYTHON_PLACES, sizeof(*place));
	if (r == 0)
		r = hashmap_put(&s->place_by, key, s->places_n);
	if (r < 0)
		return r;
	s->places[s->places_n] = *place;
	*ret_place = s->places_n++;
	return 0;
}

static int path_add(struct python_stacks *s, const uint32_t *places, uint32_t n, uint32_t *ret_path)
{
	uint64_t key = hash_bytes_secret(places, n * sizeof(*places));
	uint32_t found;
	int r;

	if (hashmap_get(&s->path_by, key, &found) && s->paths[found].n == n &&
	    memcmp(&s->frames[s->paths[found].first], places, n * sizeof(*places)) == 0) {
		*ret_path = found;
		return 0;
	}
	r = stacks_grow((void **)&s->paths, &s->paths_cap, s->paths_n + 1, PYTHON_PATHS, sizeof(*s->paths));
	if (r == 0)
		r = stacks_grow((void **)&s->frames, &s->frames_cap, s->frames_n + n, PYTHON_PATH_FRAMES_MAX,
				sizeof(*s->frames));
	if (r == 0)
		r = hashmap_put(&s->path_by, key, s->paths_n);
	if (r < 0)
		return r;
	memcpy(&s->frames[s->frames_n], places, n * sizeof(*places));
	s->paths[s->paths_n] = (struct path){ s->frames_n, n };
	s->frames_n += n;
	*ret_path = s->paths_n++;
	return 0;
}

static int remark_add(struct python_stacks *s, const char *text, uint32_t *ret_place)
{
	struct python_place place = { 0 };
	int r = text_add(s, text, &place.name);

	return r < 0 ? r : place_add(s, &place, ret_place);
}

/* ---- shares ---- */

/* How many are looked at for one of a user's own. */
static uint32_t share_steps(const struct slots *slots)
{
	return MIN(slots->begun, (uint32_t)SHARE_STEPS);
}

static bool share_has(const struct python_stacks *s, uint32_t user, unsigned table, uint32_t n)
{
	return !s->shares.of || user_shares_have(s->shares.of, user, table, n);
}

static void share_charge(struct python_stacks *s, uint32_t user, unsigned table, uint32_t n)
{
	if (s->shares.of)
		user_shares_take(s->shares.of, user, table, n);
}

static void share_return(struct python_stacks *s, uint32_t user, unsigned table, uint32_t n)
{
	if (s->shares.of)
		user_shares_give(s->shares.of, user, table, n);
}

/* ---- functions ---- */

static uint64_t code_key(uint32_t tgid, uint64_t address, uint32_t check)
{
	const uint64_t id[] = { tgid, address, check };

	return hash_bytes_secret(id, sizeof(id));
}

static struct code *code_find(const struct python_stacks *s, uint32_t tgid, uint64_t address, uint32_t check)
{
	uint32_t i;

	if (!hashmap_get(&s->code_by, code_key(tgid, address, check), &i) || s->codes[i].tgid != tgid ||
	    s->codes[i].address != address || s->codes[i].check != check)
		return NULL;
	return &s->codes[i];
}

static void code_drop(struct python_stacks *s, struct code *code)
{
	if (code->tgid == 0)
		return;
	hashmap_del(&s->code_by, code_key(code->tgid, code->address, code->check));
	s->table_bytes -= code->table_n;
	share_return(s, code->user, s->shares.lines, code->table_n);
	share_return(s, code->user, s->shares.codes, 1);
	free(code->table);
	slots_give(&s->code_slots, code->tgid, (uint32_t)(code - s->codes));
}

static int code_text(struct python_stacks *s, const struct trace_text *text, const unsigned char *data,
		     uint32_t *ret_text)
{
	strbuf_reset(&s->scratch);
	python_text(data, text->n, text->width, &s->scratch);
	if (text->total > text->n)
		strbuf_adds(&s->scratch, "...");
	return s->scratch.failed ? -ENOMEM : text_add(s, s->scratch.data, ret_text);
}

/* There is room. */
static int code_put(struct python_stacks *s, const struct code *new)
{
	struct slot_link link;
	uint32_t index;
	int r = slots_take(&s->code_slots, new->tgid, &index);

	if (r < 0)
		return r;
	r = hashmap_put(&s->code_by, code_key(new->tgid, new->address, new->check), index);
	if (r < 0) {
		slots_give(&s->code_slots, new->tgid, index);
		return r;
	}
	link = s->codes[index].link;
	s->codes[index] = *new;
	s->codes[index].link = link;
	s->table_bytes += new->table_n;
	share_charge(s, new->user, s->shares.lines, new->table_n);
	share_charge(s, new->user, s->shares.codes, 1);
	return 0;
}

/*
 * Makes room for a function with a table of @n bytes: with shares there is some; else in place of those
 * that no stack has used since they were looked at last, since the kernel side keeps those that are used, and
 * sends them no more. False: there is none.
 */
static bool code_room(struct python_stacks *s, uint32_t n)
{
	for (uint32_t i = 0; i <= 2 * PYTHON_CODES; i++) {
		struct code *code;

		if (slots_have(&s->code_slots) && s->table_bytes + n <= PYTHON_LINES_BYTES)
			return true;
		code = &s->codes[slots_next(&s->code_slots, &s->code_slots.next)];
		if (code->used)
			code->used = false;
		else
			code_drop(s, code);
	}
	return false;
}

static bool text_is_valid(const struct trace_text *text)
{
	return text->width == 1 || text->width == 2 || text->width == 4;
}

static bool code_share_has(const struct python_stacks *s, uint32_t user, uint32_t n)
{
	return share_has(s, user, s->shares.lines, n) && share_has(s, user, s->shares.codes, 1);
}

/* Who has his share gives up functions of his own that no stack has used lately. False: none was found. */
static bool code_share(struct python_stacks *s, uint32_t user, uint32_t n)
{
	for (uint32_t i = 0; i < share_steps(&s->code_slots) && !code_share_has(s, user, n); i++) {
		struct code *code = &s->codes[slots_next(&s->code_slots, &s->code_slots.share_next)];

		if (code->user != user)
			continue; /* others' are used as much as they were */
		if (code->used)
			code->used = false;
		else
			code_drop(s, code);
	}
	return code_share_has(s, user, n);
}

static int on_code(struct python_stacks *s, const struct trace_code *event, uint32_t user)
{
	struct code *known = code_find(s, event->header.tgid, event->code, event->check), new;
	int r;

	if (event->unread || !text_is_valid(&event->name) || !text_is_valid(&event->file))
		return 0; /* comes again, with the next stack that has it; or is no function */
	if (known)
		code_drop(s, known);
	if (!code_share(s, user, event->lines_n))
		return -ENOBUFS;
	new = (struct code){
		.address = event->code,
		.tgid = event->header.tgid,
		.check = event->check,
		.first_line = event->first_line,
		.instructions = event->instructions,
		.instructions_at = event->instructions_at,
		.table_n = event->lines_n,
		.user = (uint16_t)user,
		.kind = event->lines,
		.cut = event->lines_total > event->lines_n,
	};
	r = code_text(s, &event->name, event->name_text, &new.name);
	if (r == 0)
		r = code_text(s, &event->file, event->file_text, &new.file);
	if (r < 0)
		return r;
	if (!code_room(s, event->lines_n))
		return -ENOBUFS;
	new.table = malloc(event->lines_n + 1);
	if (!new.table)
		return -ENOMEM;
	memcpy(new.table, event->line_table, event->lines_n);
	r = code_put(s, &new);
	if (r < 0)
		free(new.table);
	return r;
}

static uint32_t line_of(const struct code *code, uint32_t at)
{
	uint32_t offset = at;

	if (code->instructions_at) {
		/* Beyond the instructions: they are not where they are expected, and nothing is known. */
		if (at < code->instructions_at || at - code->instructions_at >= code->instructions)
			return 0;
		offset = at - code->instructions_at;
	} else if (at == UINT32_MAX) {
		return code->first_line > 0 ? (uint32_t)code->first_line : 0; /* f_lasti -1: not begun yet */
	} else if (code->kind == TRACE_LINES_TABLE) {
		offset = at * LASTI_UNIT;
	}
	/* The last line of a lnotab goes on to the end, and where that is, a cut one does not tell. */
	if (code->cut && code->kind == TRACE_LINES_LNOTAB)
		return 0;
	return python_line(code->kind, code->table, code->table_n, code->first_line, offset);
}

/*
 * A frame that 3.13 and later put below that of a class's __init__ to look at what it returns, once a call is
 * often made (_Py_InitCleanup): no function of the program, and in no traceback.
 */
static bool is_shim(const struct python_stacks *s, const struct code *code)
{
	return code->first_line == 0 && code->name == code->file &&
	       strcmp(python_stacks_text(s, code->name), "__init__") == 0;
}

/* 1: the frame is not one of the program's. */
static int place_of(struct python_stacks *s, uint32_t tgid, const struct trace_frame *frame,
		    uint32_t *ret_place)
{
	const char *mark = python_mark_text(frame->code);
	struct python_place place;
	struct code *code;

	if (mark)
		return remark_add(s, mark, ret_place);
	code = code_find(s, tgid, frame->code, frame->check);
	if (!code) {
		s->lost++;
		return remark_add(s, "[unknown function]", ret_place);
	}
	code->used = true;
	if (is_shim(s, code))
		return 1;
	place = (struct python_place){
		.name = code->name,
		.file = code->file,
		.line = line_of(code, frame->at),
		.first_line = code->first_line > 0 ? (uint32_t)code->first_line : 0,
	};
	return place_add(s, &place, ret_place);
}

/* ---- stacks ---- */

static uint64_t known_key(uint32_t tgid, uint32_t id)
{
	return (uint64_t)tgid << 32 | id;
}

static void known_drop(struct python_stacks *s, struct known *known)
{
	uint32_t i;

	if (known->tgid == 0)
		return;
	/* An id that was defined again is another entry's. */
	if (hashmap_get(&s->known_by, known_key(known->tgid, known->id), &i) && &s->knowns[i] == known)
		hashmap_del(&s->known_by, known_key(known->tgid, known->id));
	share_return(s, known->user, s->shares.ids, 1);
	slots_give(&s->known_slots, known->tgid, (uint32_t)(known - s->knowns));
}

/* As for functions: in place of the oldest one, roughly; of one's own where that is one's share. */
static bool known_room(struct python_stacks *s, uint32_t user)
{
	for (uint32_t i = 0; i < share_steps(&s->known_slots) && !share_has(s, user, s->shares.ids, 1); i++) {
		struct known *known = &s->knowns[slots_next(&s->known_slots, &s->known_slots.share_next)];

		if (known->user == user)
			known_drop(s, known);
	}
	if (!slots_have(&s->known_slots))
		known_drop(s, &s->knowns[slots_next(&s->known_slots, &s->known_slots.next)]);
	return share_has(s, user, s->shares.ids, 1);
}

static int known_add(struct python_stacks *s, uint32_t tgid, uint32_t id, uint32_t path, uint32_t user)
{
	struct known *known;
	uint32_t index;
	int r;

	if (!known_room(s, user))
		return -ENOBUFS;
	r = slots_take(&s->known_slots, tgid, &index);
	if (r < 0)
		return r;
	r = hashmap_put(&s->known_by, known_key(tgid, id), index);
	if (r < 0) {
		slots_give(&s->known_slots, tgid, index);
		return r;
	}
	known = &s->knowns[index];
	share_charge(s, user, s->shares.ids, 1);
	known->tgid = tgid;
	known->id = id;
	known->path = path;
	known->user = user;
	return 0;
}

/* A path while it is made. */
struct making {
	struct python_stacks *s;
	const struct trace_stack *event;
	uint32_t next; /* of the Python frames */
	uint32_t n;
	uint32_t places[2 * TRACE_STACK_MAX + 5]; /* and remarks */
	int error;
};

static void make_remark(struct making *m, const char *text)
{
	if (m->error == 0 && m->n < ARRAY_SIZE(m->places))
		m->error = remark_add(m->s, text, &m->places[m->n++]);
}

static bool make_python(struct making *m)
{
	int r;

	if (m->next >= m->event->n || m->next >= TRACE_STACK_MAX)
		return false;
	if (m->error == 0 && m->n < ARRAY_SIZE(m->places)) {
		r = place_of(m->s, m->event->header.tgid, &m->event->frames[m->next], &m->places[m->n]);
		m->n += r == 0;
		m->error = MIN(r, 0);
	}
	m->next++;
	return true;
}

static bool bit_is_set(const __u64 bits[2], uint32_t i)
{
	return i < TRACE_STACK_MAX && bits[i / 64] >> i % 64 & 1;
}

/* The Python frames that one evaluation loop runs. False: there are none left. */
static bool make_loop(struct making *m, const struct trace_native *native)
{
	if (!make_python(m))
		return false;
	while (!bit_is_set(native->entries, m->next - 1) && make_python(m))
		;
	return true;
}

static void make_native(struct making *m, const struct pending *native, uint32_t i)
{
	struct python_place place = { 0 };
	char text[32];

	if (m->error < 0 || m->n == ARRAY_SIZE(m->places))
		return;
	if (m->s->native_fn)
		place.native = m->s->native_fn(&native->event, i, m->s->userdata);
	if (place.native == 0) {
		snprintf(text, sizeof(text), "[0x%" PRIx64 "]", (uint64_t)native->event.pcs[i]);
		make_remark(m, text);
		return;
	}
	m->error = place_add(m->s, &place, &m->places[m->n++]);
}

static void make_merged(struct making *m, const struct pending *native)
{
	const char *text = native_stop_text(native->event.stop);

	for (uint32_t i = 0; i < native->event.n; i++) {
		if (i > 0 && i == native->event.guessed)
			make_remark(m, "[guessed by frame pointers]");
		if (!bit_is_set(native->event.loops, i) || !make_loop(m, &native->event))
			make_native(m, native, i);
	}
	if (text)
		make_remark(m, text);
	text = python_none_text(native->event.python);
	if (text)
		make_remark(m, text);
	if (m->next < m->event->n && native->event.stop == TRACE_NATIVE_END)
		make_remark(m, "[Python, of an unknown native frame]");
}

static struct pending *pending_find(const struct python_stacks *s, uint32_t tgid, uint32_t id)
{
	for (uint32_t i = 0; i < s->pendings_n; i++)
		if (s->pendings[i].event.header.tgid == tgid && s->pendings[i].event.header.stack == id)
			return &s->pendings[i];
	return NULL;
}

/* In place of the oldest one, roughly, where there are PENDING: its STACK was lost, or says that it lacks. */
static struct pending *pending_room(struct python_stacks *s)
{
	struct pending *unused = pending_find(s, 0, 0);

	if (unused)
		return unused;
	if (s->pendings_n < PENDING)
		return &s->pendings[s->pendings_n++];
	return &s->pendings[s->pendings_next++ % PENDING];
}

static void pending_drop(struct pending *pending)
{
	pending->event.header.tgid = pending->event.header.stack = 0;
}

/* The native frames of @making's stack, which came before it; else that they are missing. */
static void make_natives(struct making *making, const struct trace_stack *event)
{
	struct pending *native = pending_find(making->s, event->header.tgid, event->header.stack);

	if (native) {
		make_merged(making, native);
		pending_drop(native);
	} else if (event->flags & TRACE_STACK_NO_NATIVE) {
		make_remark(making, "[native frames given up: trace.max_overhead]");
	} else if (making->s->native_fn) {
		making->s->lost++;
		make_remark(making, "[native frames lost]");
	}
}

static int on_stack(struct python_stacks *s, const struct trace_stack *event, uint32_t user)
{
	struct making making = { .s = s, .event = event };
	uint32_t path = PYTHON_PATH_MORE;
	int put;

	make_natives(&making, event);
	while (make_python(&making))
		;
	if (event->flags & (TRACE_STACK_CUT | TRACE_STACK_PART))
		make_remark(&making,
			    event->flags & TRACE_STACK_CUT ? "[deeper stack]" : "[callers not readable]");
	if (making.error == 0)
		making.error = path_add(s, making.places, making.n, &path);
	put = known_add(s, event->header.tgid, event->header.stack, path, user);
	return making.error < 0 ? making.error : put;
}

static void on_native(struct python_stacks *s, const struct trace_native *event)
{
	memcpy(pending_room(s)->bytes, event, sizeof(*event) + event->n * sizeof(event->pcs[0]));
}

static void on_over(struct python_stacks *s, uint32_t tgid)
{
	uint32_t first;

	for (; slots_first(&s->code_slots, tgid, &first); s->dropped++)
		code_drop(s, &s->codes[first]);
	for (; slots_first(&s->known_slots, tgid, &first); s->dropped++)
		known_drop(s, &s->knowns[first]);
	for (uint32_t i = 0; i < s->pendings_n; i++)
		if (s->pendings[i].event.header.tgid == tgid)
			pending_drop(&s->pendings[i]);
}

int python_stacks_event(struct python_stacks *s, const struct trace_header *event, _unused_ uint32_t size,
			uint32_t user)
{
	int r = 0;

	if (event->tgid == 0)
		return 0;
	switch (event->type) {
	case TRACE_EVENT_CODE:
		r = on_code(s, (const struct trace_code *)event, user);
		break;
	case TRACE_EVENT_NATIVE:
		on_native(s, (const struct trace_native *)event);
		break;
	case TRACE_EVENT_STACK:
		r = on_stack(s, (const struct trace_stack *)event, user);
		break;
	case TRACE_EVENT_EXEC:
	case TRACE_EVENT_EXIT:
		on_over(s, event->tgid);
		break;
	}
	s->lost += r < 0;
	return r < 0 ? -ENOBUFS : 0;
}

uint32_t python_stacks_path(const struct python_stacks *s, const struct trace_header *event)
{
	uint32_t i;

	if (event->stack < TRACE_STACK_NONES)
		return event->stack;
	if (!hashmap_get(&s->known_by, known_key(event->tgid, event->stack), &i))
		return PYTHON_PATH_UNKNOWN;
	return s->knowns[i].path;
}

/* ---- reading ---- */

uint32_t python_stacks_paths(const struct python_stacks *s)
{
	return s->paths_n;
}

struct python_stacks_used python_stacks_used(const struct python_stacks *s)
{
	return (struct python_stacks_used){ s->paths_n, s->places_n, s->frames_n, (uint32_t)s->texts.len };
}

const uint32_t *python_stacks_places(const struct python_stacks *s, uint32_t path, uint32_t *ret_n)
{
	*ret_n = s->paths[path].n;
	return &s->frames[s->paths[path].first];
}

const struct python_place *python_stacks_place(const struct python_stacks *s, uint32_t place)
{
	return &s->places[place];
}

const char *python_stacks_text(const struct python_stacks *s, uint32_t text)
{
	return s->texts.data + text;
}

uint64_t python_stacks_lost(const struct python_stacks *s)
{
	return s->lost;
}

uint64_t python_stacks_dropped(const struct python_stacks *s)
{
	return s->dropped;
}

/* ---- start and end ---- */

void python_stacks_share(struct python_stacks *s, const struct python_shares *shares)
{
	s->shares = *shares;
}

void python_stacks_name_natives(struct python_stacks *s, python_native_fn *fn, void *userdata)
{
	s->native_fn = fn;
	s->userdata = userdata;
}

static int add_made_up(struct python_stacks *s)
{
	static const char *const remarks[PYTHON_PATHS_MADE_UP] = {
		[TRACE_STACK_OFF] = "[no stack recorded]",
		[TRACE_STACK_NO_PYTHON] = "[no Python interpreter known]",
		[TRACE_STACK_NO_THREAD] = "[thread without Python]",
		[TRACE_STACK_EMPTY] = "[no Python code running]",
		[TRACE_STACK_AMBIGUOUS] = "[one of several interpreters]",
		[TRACE_STACK_UNREAD] = "[stack not readable]",
		[TRACE_STACK_LOST] = "[stack lost]",
		[TRACE_STACK_SKIPPED] = "[not sampled]",
		[TRACE_STACK_GIVEN_UP] = "[given up: trace.max_overhead]",
		[PYTHON_PATH_UNKNOWN] = "[stack lost]",
		[PYTHON_PATH_MORE] = "[too many stacks]",
		[PYTHON_PATH_OTHERS] = "[other stacks]",
	};
	uint32_t place, path;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < PYTHON_PATHS_MADE_UP; i++) {
		r = remark_add(s, remarks[i], &place);
		/* Two have the same text, and are two paths nevertheless. */
		hashmap_clear(&s->path_by);
		if (r == 0)
			r = path_add(s, &place, 1, &path);
	}
	return r;
}

int python_stacks_new(struct python_stacks **ret_stacks)
{
	_cleanup_(python_stacks_freep) struct python_stacks *s = calloc(1, sizeof(*s));
	uint32_t none;
	int r;

	if (!s)
		return -ENOMEM;
	strbuf_init(&s->texts, 0);
	strbuf_init(&s->scratch, 0);
	s->pendings = calloc(PENDING, sizeof(*s->pendings));
	if (slots_init(&s->code_slots, PYTHON_CODES, sizeof(*s->codes)) < 0 ||
	    slots_init(&s->known_slots, PYTHON_IDS, sizeof(*s->knowns)) < 0 || !s->pendings)
		return -ENOMEM;
	s->codes = s->code_slots.entries;
	s->knowns = s->known_slots.entries;
	r = text_add(s, "", &none);
	if (r == 0)
		r = add_made_up(s);
	if (r < 0)
		return r;
	*ret_stacks = TAKE_PTR(s);
	return 0;
}

void python_stacks_free(struct python_stacks *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; s->codes && i < PYTHON_CODES; i++)
		free(s->codes[i].table);
	slots_done(&s->code_slots);
	slots_done(&s->known_slots);
	free(s->pendings);
	free(s->places);
	free(s->paths);
	free(s->frames);
	strbuf_done(&s->texts);
	strbuf_done(&s->scratch);
	hashmap_done(&s->text_by);
	hashmap_done(&s->place_by);
	hashmap_done(&s->path_by);
	hashmap_done(&s->code_by);
	hashmap_done(&s->known_by);
	free(s);
}
