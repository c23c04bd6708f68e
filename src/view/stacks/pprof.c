// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "base/hashmap.h"
#include "base/macro.h"
#include "view/profile.pb-c.h"
#include "view/stacks/stacks.h"

enum {
	GZIP_WINDOW = 15 + 16, /* zlib's: the largest window, and gzip's frame */
	GZIP_MEMORY = 8,
	PIECE = 64 << 10,
	SAMPLE_PLACES = 256, /* of a sample, at most: a path, a process and a call */
	/* Samples, locations and strings are packed one by one: a message is the sum of its members. */
	FIELD_SAMPLE = 2,
	FIELD_LOCATION = 4,
	FIELD_FUNCTION = 5,
	FIELD_STRING = 6,
	WIRE_BYTES = 2,
};

struct writer {
	const struct stack_page *page;
	z_stream z;
	struct strbuf *out;
	struct hashmap strings; /* by the text's hash: its index */
	const char **table; /* of strings */
	uint32_t strings_n, strings_cap;
	struct hashmap locations; /* by place: id */
	uint64_t locations_n;
	int r;
};

static void deflate_bytes(struct writer *w, const void *data, size_t n, int flush)
{
	char piece[PIECE];

	w->z.next_in = (Bytef *)(uintptr_t)data;
	w->z.avail_in = (uInt)n;
	do {
		w->z.next_out = (Bytef *)piece;
		w->z.avail_out = sizeof(piece);
		deflate(&w->z, flush);
		strbuf_add(w->out, piece, sizeof(piece) - w->z.avail_out);
	} while (w->z.avail_out == 0);
}

static void write_number(struct writer *w, uint64_t value)
{
	unsigned char bytes[10];
	size_t n = 0;

	do {
		bytes[n++] = (unsigned char)((value & 127) | (value > 127 ? 128 : 0));
		value >>= 7;
	} while (value);
	deflate_bytes(w, bytes, n, Z_NO_FLUSH);
}

/* A member of the profile that is a message or a string. */
static void write_field(struct writer *w, unsigned field, const void *data, size_t n)
{
	write_number(w, field << 3 | WIRE_BYTES);
	write_number(w, n);
	deflate_bytes(w, data, n, Z_NO_FLUSH);
}

static void write_message(struct writer *w, unsigned field, const ProtobufCMessage *message)
{
	size_t n = protobuf_c_message_get_packed_size(message);
	uint8_t *packed = malloc(n + 1);

	if (!packed) {
		w->r = -ENOMEM;
		return;
	}
	protobuf_c_message_pack(message, packed);
	write_field(w, field, packed, n);
	free(packed);
}

/* Its index; the text must live as long as the writer. */
static int64_t string_of(struct writer *w, const char *text)
{
	uint64_t key = hash_bytes_secret(text, strlen(text) + 1);
	uint32_t index;

	if (hashmap_get(&w->strings, key, &index) && strcmp(w->table[index], text) == 0)
		return index;
	if (w->strings_n == w->strings_cap) {
		uint32_t cap = w->strings_cap ? 2 * w->strings_cap : 256;
		const char **grown = reallocarray(w->table, cap, sizeof(*grown));

		if (!grown) {
			w->r = -ENOMEM;
			return 0;
		}
		w->table = grown;
		w->strings_cap = cap;
	}
	w->table[w->strings_n] = text;
	if (hashmap_put(&w->strings, key, w->strings_n) < 0)
		w->r = -ENOMEM;
	return w->strings_n++;
}

/* Writes a location with a function of its own. */
static uint64_t location_write(struct writer *w, const struct stack_place *place)
{
	Pprof__Function function = PPROF__FUNCTION__INIT;
	Pprof__Location location = PPROF__LOCATION__INIT;
	Pprof__Line line = PPROF__LINE__INIT, *lines = &line;

	function.id = ++w->locations_n;
	function.name = function.system_name = string_of(w, place->name);
	function.filename = string_of(w, place->file);
	function.start_line = place->first_line;
	line.function_id = function.id;
	line.line = place->line;
	location.id = function.id;
	location.n_line = 1;
	location.line = &lines;
	write_message(w, FIELD_FUNCTION, &function.base);
	write_message(w, FIELD_LOCATION, &location.base);
	return function.id;
}

static uint64_t location_of(struct writer *w, uint64_t key, const struct stack_place *place)
{
	uint32_t id;

	if (hashmap_get(&w->locations, key, &id))
		return id;
	if (hashmap_put(&w->locations, key, (uint32_t)w->locations_n + 1) < 0)
		w->r = -ENOMEM;
	return location_write(w, place);
}

/* A place that is only a name. */
static uint64_t location_of_name(struct writer *w, const char *name)
{
	const struct stack_place place = { .name = name, .file = "" };

	return location_of(w, UINT64_C(1) << 63 | hash_bytes_secret(name, strlen(name)), &place);
}

static void write_sample(struct writer *w, const struct stack_row *row, const enum stack_weight *known,
			 size_t known_n)
{
	uint64_t ids[SAMPLE_PLACES];
	int64_t values[STACK_WEIGHTS];
	Pprof__Sample sample = PPROF__SAMPLE__INIT;
	size_t n = 0;

	ids[n++] = location_of_name(w, row->call);
	for (uint32_t i = 0; i < row->n && n < SAMPLE_PLACES - 1; i++)
		ids[n++] = location_of(w, row->places[i], &w->page->places[row->places[i]]);
	ids[n++] = location_of_name(w, row->process);
	for (size_t i = 0; i < known_n; i++)
		values[i] = llround(row->weights[known[i]]);
	sample.n_location_id = n;
	sample.location_id = ids;
	sample.n_value = known_n;
	sample.value = values;
	write_message(w, FIELD_SAMPLE, &sample.base);
}

/* What is no list, and the kinds of values. */
static void write_head(struct writer *w, const enum stack_weight *known, size_t known_n)
{
	Pprof__Profile profile = PPROF__PROFILE__INIT;
	Pprof__ValueType types[STACK_WEIGHTS], *list[STACK_WEIGHTS];
	int64_t comments[2];
	size_t n;
	uint8_t *packed;

	string_of(w, "");
	for (size_t i = 0; i < known_n; i++) {
		pprof__value_type__init(&types[i]);
		types[i].type = string_of(w, stack_weight_infos[known[i]].name);
		types[i].unit = string_of(w, stack_weight_infos[known[i]].unit);
		list[i] = &types[i];
	}
	profile.n_sample_type = known_n;
	profile.sample_type = list;
	profile.time_nanos = w->page->real_ns;
	profile.duration_nanos = w->page->duration_ns;
	profile.default_sample_type = types[0].type;
	profile.comment = comments;
	if (w->page->estimated)
		comments[profile.n_comment++] = string_of(w, "estimated: stacks are a sample");
	if (w->page->incomplete)
		comments[profile.n_comment++] = string_of(w, w->page->incomplete);
	n = pprof__profile__get_packed_size(&profile);
	packed = malloc(n + 1);
	if (!packed) {
		w->r = -ENOMEM;
		return;
	}
	pprof__profile__pack(&profile, packed);
	deflate_bytes(w, packed, n, Z_NO_FLUSH);
	free(packed);
}

int view_stacks_pprof(const struct stack_page *page, struct strbuf *out)
{
	struct writer w = { .page = page, .out = out };
	enum stack_weight known[STACK_WEIGHTS];
	size_t known_n = 0;

	if (deflateInit2(&w.z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, GZIP_MEMORY,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	for (unsigned i = 0; i < STACK_WEIGHTS; i++)
		if (stack_weight_is_known(page, (enum stack_weight)i))
			known[known_n++] = (enum stack_weight)i;
	write_head(&w, known, known_n);
	for (size_t i = 0; w.r == 0 && i < page->rows_n; i++)
		write_sample(&w, &page->rows[i], known, known_n);
	for (uint32_t i = 0; w.r == 0 && i < w.strings_n; i++)
		write_field(&w, FIELD_STRING, w.table[i], strlen(w.table[i]));
	deflate_bytes(&w, NULL, 0, Z_FINISH);
	deflateEnd(&w.z);
	free(w.table);
	hashmap_done(&w.strings);
	hashmap_done(&w.locations);
	return w.r < 0 ? w.r : out->failed ? -ENOMEM : 0;
}
