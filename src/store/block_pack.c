// SPDX-License-Identifier: Apache-2.0
#include "store/block_pack.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/macro.h"
#include "store/block.h"
#include "store/block_private.h"

enum stream { OUTLINE, HEADS, GAPS, FLAGS, WHOLE, NUMBERS, STREAMS };

enum form {
	FORM_DENSE = 1 << 0,
	FORM_REFERS = 1 << 1, /* differences to the changes of the field before */
	FORM_WHOLE = 1 << 2, /* some changes are whole: there are flags */
	FORM_BYTES = 3, /* shift: of each number */
};

/* It refers to where the next smaller field has the same. */
struct place {
	uint32_t part; /* 0: first values, 1: series */
	uint32_t table, field, track;
};

struct sequence {
	struct place place;
	unsigned kind;
	uint32_t changes, whole;
	uint32_t first; /* of its numbers */
	size_t gaps_at, gaps_n; /* in their stream, when packed */
	bool dense;
};

struct packer {
	const struct stored_layout *layout;
	bool packs; /* else it unpacks */
	struct strbuf out[STREAMS]; /* when it packs; else the first alone: the plain block */
	struct bytes in[STREAMS]; /* the opposite */
	struct sequence *list;
	uint32_t n, room;
	uint32_t behind; /* in the list: where the last one referred to, or could not */
	uint64_t *numbers;
	uint32_t numbers_n, numbers_room, changes, changes_max;
	int error;
};

static bool fail_pack(struct packer *p, int error)
{
	p->error = p->error < 0 ? p->error : error;
	return false;
}

static bool is_text(unsigned kind)
{
	return kind == COLUMN_TEXT || kind == COLUMN_STRING;
}

/* ---- sequences ---- */

static int compare_places(const struct place *a, const struct place *b)
{
	const uint32_t x[] = { a->part, a->table, a->field, a->track };
	const uint32_t y[] = { b->part, b->table, b->field, b->track };

	for (size_t i = 0; i < ARRAY_SIZE(x); i++)
		if (x[i] != y[i])
			return x[i] < y[i] ? -1 : 1;
	return 0;
}

static bool refers_to(const struct sequence *s, const struct sequence *before)
{
	return before->kind == s->kind && before->changes == s->changes && before->whole == 0 &&
	       s->whole == 0 && !is_text(s->kind);
}

/* The same row's of the field before; NULL: there is none of its kind. Both directions find the same. */
static const struct sequence *reference_of(struct packer *p, const struct sequence *s)
{
	struct place place = s->place;

	if (place.field == 0)
		return NULL;
	place.field--;
	while (p->behind < p->n && compare_places(&p->list[p->behind].place, &place) < 0)
		p->behind++;
	if (p->behind == p->n || compare_places(&p->list[p->behind].place, &place) != 0)
		return NULL;
	return refers_to(s, &p->list[p->behind]) ? &p->list[p->behind] : NULL;
}

static bool add_sequence(struct packer *p, const struct sequence *s)
{
	if (p->n == p->room) {
		uint32_t room = MAX(1024u, p->room * 2);
		struct sequence *list = reallocarray(p->list, room, sizeof(*list));

		if (!list)
			return fail_pack(p, -ENOMEM);
		p->list = list;
		p->room = room;
	}
	p->list[p->n++] = *s;
	return true;
}

static bool add_number(struct packer *p, uint64_t number)
{
	if (p->numbers_n == p->numbers_room) {
		uint32_t room = MAX(4096u, p->numbers_room * 2);
		uint64_t *numbers = reallocarray(p->numbers, room, sizeof(*numbers));

		if (!numbers)
			return fail_pack(p, -ENOMEM);
		p->numbers = numbers;
		p->numbers_room = room;
	}
	p->numbers[p->numbers_n++] = number;
	return true;
}

/* Of a packed block of @n bytes. */
static uint32_t changes_most(size_t n)
{
	size_t most = MIN(n, (size_t)PACKED_CHANGES_MAX) * PACKED_CHANGES_PER_BYTE + PACKED_CHANGES_FREE;

	return (uint32_t)MIN(most, (size_t)PACKED_CHANGES_MAX);
}

static bool gaps_are_alike(const struct packer *p, const struct sequence *a, const struct sequence *b)
{
	const char *gaps = p->out[GAPS].data;

	return a->dense == b->dense && a->gaps_n == b->gaps_n &&
	       memcmp(gaps + a->gaps_at, gaps + b->gaps_at, a->gaps_n) == 0;
}

/* ---- packing a sequence ---- */

/* True: a number; else *ret_whole has its bytes, as block_write.c makes them. */
static bool take_change(struct bytes *b, unsigned kind, uint64_t *ret_number, struct bytes *ret_whole)
{
	const uint8_t *at = b->at;
	uint64_t coded = get_varint(b);
	struct bytes scale;

	if (!is_text(kind) && (kind != COLUMN_REAL || !(coded & 1))) {
		if (kind == COLUMN_REAL)
			*ret_number = unzigzag(coded >> 1);
		else if (kind == COLUMN_INT)
			*ret_number = coded & 1 ? unzigzag(get_varint(b)) :
						  unzigzag(coded >> 1) * (uint64_t)NSEC_PER_MSEC;
		else
			*ret_number = unzigzag(coded);
		return true;
	}
	if (kind == COLUMN_REAL) {
		scale = get_bytes(b, 1);
		if (!b->bad && *scale.at == REAL_RAW)
			get_bytes(b, sizeof(uint64_t));
		else if (!b->bad)
			get_varint(b);
	}
	*ret_whole = (struct bytes){ at, b->at, false };
	return false;
}

/* Counts its changes, and whether all gaps but the first are 1. */
static bool measure_sequence(struct packer *p, struct sequence *s, struct bytes b)
{
	struct bytes whole;
	uint64_t number;

	s->dense = true;
	for (; b.at != b.end && !b.bad; s->changes++) {
		if (p->changes++ == p->changes_max)
			return fail_pack(p, -E2BIG);
		s->dense &= get_varint(&b) == 1 || s->changes == 0;
		s->whole += !take_change(&b, s->kind, &number, &whole);
	}
	return !b.bad || fail_pack(p, -EBADMSG);
}

static bool split_sequence(struct packer *p, struct sequence *s, struct bytes b)
{
	bool flags = s->whole > 0 && !is_text(s->kind);

	s->first = p->numbers_n;
	s->gaps_at = p->out[GAPS].len;
	for (uint32_t i = 0; i < s->changes; i++) {
		uint64_t gap = get_varint(&b), number;
		struct bytes whole;
		bool is_number;

		if (i == 0 || !s->dense)
			put_varint(&p->out[GAPS], gap);
		is_number = take_change(&b, s->kind, &number, &whole);
		if (flags)
			strbuf_addc(&p->out[FLAGS], (char)!is_number);
		if (!is_number)
			strbuf_add(&p->out[WHOLE], whole.at, (size_t)(whole.end - whole.at));
		else if (!add_number(p, number))
			return false;
	}
	s->gaps_n = p->out[GAPS].len - s->gaps_at;
	return true;
}

static unsigned bits_of(uint64_t v)
{
	return v ? 64 - (unsigned)__builtin_clzll(v) : 0;
}

/* What a sequence refers to, if that makes its numbers smaller by a twentieth. */
static const struct sequence *worth_reference(struct packer *p, const struct sequence *s)
{
	const struct sequence *reference = reference_of(p, s);
	uint64_t bits = 0, left = 0;

	if (!reference || !gaps_are_alike(p, s, reference))
		return NULL;
	for (uint32_t i = 0; i < s->changes; i++) {
		uint64_t own = p->numbers[s->first + i];

		bits += bits_of(zigzag(own));
		left += bits_of(zigzag(own - p->numbers[reference->first + i]));
	}
	return left * 20 < bits * 19 ? reference : NULL;
}

static uint64_t size_of(uint64_t number)
{
	return (int64_t)number < 0 ? 0 - number : number;
}

static uint64_t common_divisor(const uint64_t *numbers, uint32_t n)
{
	uint64_t divisor = 0;

	for (uint32_t i = 0; i < n && divisor != 1; i++)
		for (uint64_t v = size_of(numbers[i]); v;) {
			uint64_t rest = divisor % v;

			divisor = v;
			v = rest;
		}
	/* What is divided must have its sign. */
	return divisor > 0 && divisor <= INT64_MAX ? divisor : 1;
}

/* The numbers of a sequence as bytes, the lowest of all first. */
static bool put_numbers(struct packer *p, const struct sequence *s, const struct sequence *reference)
{
	uint32_t n = s->changes - s->whole;
	_cleanup_free_ uint64_t *list = calloc((size_t)n + 1, sizeof(*list));
	unsigned bytes = 0;
	uint64_t divisor;

	if (!list)
		return fail_pack(p, -ENOMEM);
	for (uint32_t i = 0; i < n; i++)
		list[i] = p->numbers[s->first + i] - (reference ? p->numbers[reference->first + i] : 0);
	divisor = common_divisor(list, n);
	for (uint32_t i = 0; i < n; i++) {
		list[i] = zigzag((uint64_t)((int64_t)list[i] / (int64_t)divisor));
		bytes = MAX(bytes, (bits_of(list[i]) + 7) / 8);
	}
	strbuf_addc(&p->out[HEADS], (char)((s->dense ? FORM_DENSE : 0) | (reference ? FORM_REFERS : 0) |
					   (s->whole ? FORM_WHOLE : 0) | bytes << FORM_BYTES));
	put_varint(&p->out[HEADS], divisor);
	for (unsigned byte = 0; byte < bytes; byte++)
		for (uint32_t i = 0; i < n; i++)
			strbuf_addc(&p->out[NUMBERS], (char)(list[i] >> 8 * byte));
	return true;
}

static bool pack_sequence(struct packer *p, struct sequence *s, struct bytes b)
{
	if (!measure_sequence(p, s, b) || !split_sequence(p, s, b))
		return false;
	put_varint(&p->out[HEADS], s->changes);
	return put_numbers(p, s, worth_reference(p, s)) && add_sequence(p, s);
}

/* ---- unpacking one ---- */

struct head {
	uint32_t changes;
	unsigned form;
	uint64_t divisor;
};

static bool get_head(struct packer *p, struct head *ret_head)
{
	struct bytes *heads = &p->in[HEADS], form;

	ret_head->changes = get_below(heads, PACKED_CHANGES_MAX + 1);
	form = get_bytes(heads, 1);
	ret_head->divisor = get_varint(heads);
	if (heads->bad || p->changes_max - p->changes < ret_head->changes)
		return fail_pack(p, -EBADMSG);
	ret_head->form = *form.at;
	p->changes += ret_head->changes;
	return ret_head->form >> FORM_BYTES <= sizeof(uint64_t) || fail_pack(p, -EBADMSG);
}

/* How many of its changes are whole. */
static bool get_flags(struct packer *p, const struct head *head, struct sequence *s, struct bytes *ret_flags)
{
	*ret_flags = (struct bytes){ 0 };
	if (is_text(s->kind)) {
		s->whole = s->changes;
		return true;
	}
	if (!(head->form & FORM_WHOLE))
		return true;
	*ret_flags = get_bytes(&p->in[FLAGS], s->changes);
	for (const uint8_t *flag = ret_flags->at; flag != ret_flags->end; flag++) {
		s->whole += *flag != 0;
	}
	return (!p->in[FLAGS].bad && s->kind == COLUMN_REAL) || fail_pack(p, -EBADMSG);
}

static bool get_numbers(struct packer *p, const struct head *head, const struct sequence *s)
{
	uint32_t n = s->changes - s->whole;
	unsigned bytes = head->form >> FORM_BYTES;
	const struct sequence *reference = reference_of(p, s);
	struct bytes planes = get_bytes(&p->in[NUMBERS], (uint64_t)n * bytes);

	if (p->in[NUMBERS].bad || ((head->form & FORM_REFERS) && !reference))
		return fail_pack(p, -EBADMSG);
	for (uint32_t i = 0; i < n; i++) {
		uint64_t coded = 0;

		for (unsigned byte = 0; byte < bytes; byte++)
			coded |= (uint64_t)planes.at[(size_t)byte * n + i] << 8 * byte;
		coded = unzigzag(coded) * head->divisor;
		if (head->form & FORM_REFERS)
			coded += p->numbers[reference->first + i];
		if (!add_number(p, coded))
			return false;
	}
	return true;
}

static void put_number(struct strbuf *out, unsigned kind, uint64_t number)
{
	if (kind == COLUMN_REAL)
		put_varint(out, zigzag(number) << 1);
	else if (kind == COLUMN_INT)
		put_int_change(out, number);
	else
		put_varint(out, zigzag(number));
}

/* As it was, appended to @out. */
static bool join_sequence(struct packer *p, const struct head *head, const struct sequence *s,
			  struct bytes flags, struct strbuf *out)
{
	uint32_t number = s->first;

	for (uint32_t i = 0; i < s->changes; i++) {
		bool is_whole = is_text(s->kind) || (flags.at != flags.end && flags.at[i]);
		struct bytes whole;
		uint64_t ignored;

		put_varint(out, i > 0 && (head->form & FORM_DENSE) ? 1 : get_varint(&p->in[GAPS]));
		if (!is_whole) {
			put_number(out, s->kind, p->numbers[number++]);
			continue;
		}
		if (take_change(&p->in[WHOLE], s->kind, &ignored, &whole) || p->in[WHOLE].bad)
			return fail_pack(p, -EBADMSG);
		strbuf_add(out, whole.at, (size_t)(whole.end - whole.at));
	}
	return (!p->in[GAPS].bad && !out->failed) || fail_pack(p, -EBADMSG);
}

static bool unpack_sequence(struct packer *p, struct sequence *s, struct strbuf *out)
{
	struct bytes flags;
	struct head head;

	if (!get_head(p, &head))
		return false;
	s->changes = head.changes;
	s->first = p->numbers_n;
	return get_flags(p, &head, s, &flags) && get_numbers(p, &head, s) &&
	       join_sequence(p, &head, s, flags, out) && add_sequence(p, s);
}

/* ---- the outline ---- */

static uint64_t copy_number(struct packer *p)
{
	uint64_t v = get_varint(&p->in[OUTLINE]);

	put_varint(&p->out[OUTLINE], v);
	return v;
}

static bool outline_is_good(struct packer *p)
{
	return !p->in[OUTLINE].bad || fail_pack(p, -EBADMSG);
}

static bool copy_texts(struct packer *p)
{
	struct bytes texts;

	copy_number(p); /* frames */
	copy_number(p);
	texts = get_bytes(&p->in[OUTLINE], copy_number(p));
	if (!p->in[OUTLINE].bad)
		strbuf_add(&p->out[OUTLINE], texts.at, (size_t)(texts.end - texts.at));
	return outline_is_good(p);
}

/* First values of a field lie where they are told. */
static bool copy_first(struct packer *p, struct sequence *s)
{
	struct strbuf bytes;
	bool good;

	if (p->packs) {
		struct bytes b = get_bytes(&p->in[OUTLINE], get_varint(&p->in[OUTLINE]));

		return outline_is_good(p) && pack_sequence(p, s, b);
	}
	strbuf_init(&bytes, BLOCK_BYTES_MAX);
	good = unpack_sequence(p, s, &bytes);
	put_varint(&p->out[OUTLINE], bytes.len);
	strbuf_add(&p->out[OUTLINE], bytes.data, bytes.len);
	strbuf_done(&bytes);
	return good;
}

static bool copy_firsts(struct packer *p)
{
	uint64_t table, gap, field;

	while ((table = copy_number(p)) < p->layout->n) {
		const struct stored_table *t = &p->layout->tables[table];

		copy_number(p); /* tracks */
		for (field = 0; outline_is_good(p) && (gap = copy_number(p)) > 0;) {
			struct sequence s = { 0 };

			if (gap > (uint64_t)t->n + FIRST_EXTRAS - field)
				return fail_pack(p, -EBADMSG);
			field += gap;
			s.kind = field <= t->n ? first_kind(t->kind[field - 1]) : COLUMN_UINT;
			s.place = (struct place){ 0, (uint32_t)table, (uint32_t)(field - 1), 0 };
			if (!copy_first(p, &s))
				return false;
		}
		if (p->error < 0)
			return false;
	}
	return outline_is_good(p);
}

/* Those of series lie behind all that says of what they are. */
struct series_of {
	struct sequence sequence;
	uint64_t bytes; /* when it packs */
};

static bool copy_series_place(struct packer *p, struct series_of *series)
{
	uint64_t table = copy_number(p), field = copy_number(p), track = copy_number(p);
	const struct stored_table *t = table < p->layout->n ? &p->layout->tables[table] : NULL;

	if (!t || field > t->n || track >= BLOCK_TRACKS_MAX || p->in[OUTLINE].bad)
		return fail_pack(p, -EBADMSG);
	series->sequence.place = (struct place){ 1, (uint32_t)table, (uint32_t)field, (uint32_t)track };
	series->sequence.kind = field < t->n ? t->kind[field] : COLUMN_UINT;
	return true;
}

static bool pack_series(struct packer *p, struct series_of *list, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (!copy_series_place(p, &list[i]))
			return false;
		list[i].bytes = get_varint(&p->in[OUTLINE]);
	}
	for (uint32_t i = 0; i < n; i++) {
		struct bytes b = get_bytes(&p->in[OUTLINE], list[i].bytes);

		if (!outline_is_good(p) || !pack_sequence(p, &list[i].sequence, b))
			return false;
	}
	return true;
}

static bool unpack_series(struct packer *p, struct series_of *list, uint32_t n)
{
	struct strbuf bytes;
	bool good = true;

	strbuf_init(&bytes, BLOCK_BYTES_MAX);
	for (uint32_t i = 0; i < n && good; i++) {
		size_t before = bytes.len;

		good = copy_series_place(p, &list[i]) && unpack_sequence(p, &list[i].sequence, &bytes);
		put_varint(&p->out[OUTLINE], bytes.len - before);
	}
	strbuf_add(&p->out[OUTLINE], bytes.data, bytes.len);
	strbuf_done(&bytes);
	return good;
}

static bool copy_series(struct packer *p)
{
	uint64_t n = copy_number(p);
	_cleanup_free_ struct series_of *list = NULL;

	/* Its place has three bytes at least. */
	if (n > (uint64_t)(p->in[OUTLINE].end - p->in[OUTLINE].at) / 3 || n > BLOCK_SERIES_MAX)
		return fail_pack(p, -EBADMSG);
	list = calloc(n + 1, sizeof(*list));
	if (!list)
		return fail_pack(p, -ENOMEM);
	return p->packs ? pack_series(p, list, (uint32_t)n) : unpack_series(p, list, (uint32_t)n);
}

static int copy_outline(struct packer *p)
{
	if (copy_texts(p) && copy_firsts(p) && copy_series(p) && p->in[OUTLINE].at != p->in[OUTLINE].end)
		fail_pack(p, -EBADMSG);
	for (unsigned i = 0; i < STREAMS; i++)
		if (p->out[i].failed)
			fail_pack(p, -ENOMEM);
	return p->error;
}

/* ---- both ways ---- */

static bool skip_magic(struct bytes *b, const char *magic)
{
	struct bytes found = get_bytes(b, sizeof(BLOCK_MAGIC) - 1);

	return !b->bad && memcmp(found.at, magic, sizeof(BLOCK_MAGIC) - 1) == 0;
}

static void packer_done(struct packer *p)
{
	for (unsigned i = 0; i < STREAMS; i++)
		strbuf_done(&p->out[i]);
	free(p->list);
	free(p->numbers);
}

static void packer_init(struct packer *p, const struct stored_layout *layout, bool packs,
			uint32_t changes_max)
{
	*p = (struct packer){ .layout = layout, .packs = packs, .changes_max = changes_max };
	for (unsigned i = 0; i < STREAMS; i++)
		strbuf_init(&p->out[i], BLOCK_BYTES_MAX);
}

int block_pack(const struct stored_layout *layout, const struct strbuf *plain, struct strbuf *out)
{
	const uint8_t *at = (const uint8_t *)plain->data;
	const size_t before = out->len;
	struct packer p;
	int r;

	packer_init(&p, layout, true, PACKED_CHANGES_MAX);
	p.in[OUTLINE] = (struct bytes){ at, at + plain->len, false };
	r = skip_magic(&p.in[OUTLINE], BLOCK_MAGIC) ? copy_outline(&p) : -EBADMSG;
	strbuf_add(out, PACKED_MAGIC, sizeof(PACKED_MAGIC) - 1);
	for (unsigned i = 0; i < STREAMS; i++)
		put_varint(out, p.out[i].len);
	for (unsigned i = 0; i < STREAMS; i++)
		strbuf_add(out, p.out[i].data, p.out[i].len);
	if (r == 0 && p.changes > changes_most(out->len - before))
		r = -E2BIG;
	packer_done(&p);
	return r < 0 ? r : out->failed ? -ENOMEM : 0;
}

/* Nothing is left of any stream. */
static bool all_is_used(const struct packer *p)
{
	for (unsigned i = 0; i < STREAMS; i++)
		if (p->in[i].at != p->in[i].end)
			return false;
	return true;
}

int block_unpack(const struct stored_layout *layout, const void *packed, size_t n, struct strbuf *out)
{
	struct bytes b = { packed, (const uint8_t *)packed + n, false };
	uint64_t sizes[STREAMS];
	struct packer p;
	int r;

	packer_init(&p, layout, false, changes_most(n));
	r = skip_magic(&b, PACKED_MAGIC) ? 0 : -EBADMSG;
	for (unsigned i = 0; i < STREAMS; i++)
		sizes[i] = get_varint(&b);
	for (unsigned i = 0; i < STREAMS; i++)
		p.in[i] = get_bytes(&b, sizes[i]);
	strbuf_add(&p.out[OUTLINE], BLOCK_MAGIC, sizeof(BLOCK_MAGIC) - 1);
	if (b.bad)
		r = -EBADMSG;
	if (r == 0)
		r = copy_outline(&p);
	if (r == 0 && (!all_is_used(&p) || b.at != b.end))
		r = -EBADMSG;
	if (r == 0)
		strbuf_add(out, p.out[OUTLINE].data, p.out[OUTLINE].len);
	packer_done(&p);
	return r < 0 ? r : out->failed ? -ENOMEM : 0;
}
