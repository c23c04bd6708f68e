// SPDX-License-Identifier: Apache-2.0
#include "view/statsd.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/glob.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "view/set_texts.h"
#include "view/shown.h"
#include "view/walk/walk.h"

enum { NAME_MAX_BYTES = 256, TAG_MAX_BYTES = 200 /* of which a receiver takes no more */ };

struct statsd_row {
	const struct metric *row;
	const char *name;
	double scale;
};

static const struct statsd_row rows[] = {
#define STATSD_GPU(id_, name_, scale_) { &gpu_metrics[GPU_##id_], name_, scale_ },
#define STATSD_PROCESS(id_, name_, scale_) { &process_metrics[PROCESS_##id_], name_, scale_ },
#include "view/statsd.def"
};

static const struct {
	const char *label, *tag;
} tags[] = {
#define STATSD_TAG(label_, tag_) { label_, tag_ },
#include "view/statsd.def"
};

struct statsd_walk {
	const struct snapshot *snapshot;
	const char *families;
	statsd_receiver receive;
	void *userdata;
	struct family family;
	bool whole; /* the family itself is wanted */
	struct set_texts sets; /* as tags, each with a comma before it */
	struct strbuf tags;
};

static const struct statsd_row *statsd_row_of(const struct metric *row)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].row == row)
			return &rows[i];
	return NULL;
}

/* ---- tags ---- */

/* Nearly all are. @ret_n: its length. */
static bool is_plain(const char *value, size_t *ret_n)
{
	size_t n = 0;

	while (value[n] > ' ' && value[n] < 0x7f && value[n] != ',' && value[n] != '|' && value[n] != '#')
		n++;
	*ret_n = n;
	return value[n] == '\0' && n < TAG_MAX_BYTES;
}

/* A receiver takes a comma for the next tag, a bar for the next part, a new line for the next number. */
static void add_tag_value(struct strbuf *out, const char *value, bool lower)
{
	char text[TAG_MAX_BYTES];
	size_t n;

	if (!lower && is_plain(value, &n)) {
		strbuf_add(out, value, n);
		return;
	}
	snprintf(text, sizeof(text), "%s", value);
	utf8_sanitize(text);
	for (char *c = text; *c; c++) {
		if (strchr(",|#", *c) || (unsigned char)*c < ' ' || *c == 0x7f)
			*c = '_';
		else if (lower)
			*c = *c == ' ' ? '_' : (char)tolower(*c);
	}
	strbuf_adds(out, text);
}

static void add_statsd_tag(struct strbuf *out, const char *name, const char *value, bool lower)
{
	if (!*value)
		return;
	strbuf_addc(out, ',');
	strbuf_adds(out, name);
	strbuf_addc(out, ':');
	add_tag_value(out, value, lower);
}

static const char *tag_of(const char *label)
{
	for (size_t i = 0; i < ARRAY_SIZE(tags); i++)
		if (STRV_EQ(tags[i].label, label))
			return tags[i].tag;
	return label;
}

/* Under a name of the check's, what tells the rows of our family apart is in the name. */
static bool is_of_row(const struct metric *row, const struct label *label)
{
	return (row->label && STRV_EQ(row->label, label->name)) ||
	       (row->label2 && STRV_EQ(row->label2, label->name));
}

static void add_set_tags(struct strbuf *out, const struct label_set *set, _unused_ void *userdata)
{
	for (uint32_t i = 0; i < set->n; i++)
		add_statsd_tag(out, set->labels[i].name, set->labels[i].value, false);
}

/* Under our own name: all labels. */
static void set_own_tags(struct statsd_walk *walk, const struct series *series)
{
	strbuf_reset(&walk->tags);
	for (unsigned i = 0; i < SERIES_SETS; i++)
		if (series->sets[i] && series->sets[i]->n > 0)
			set_texts_add(&walk->sets, series->sets[i], add_set_tags, NULL, &walk->tags);
}

/* Under a name of the check's. */
static void set_named_tags(struct statsd_walk *walk, const struct series *series)
{
	strbuf_reset(&walk->tags);
	for (unsigned i = 0; i < SERIES_SETS; i++)
		for (uint32_t k = 0; series->sets[i] && k < series->sets[i]->n; k++) {
			const struct label *label = &series->sets[i]->labels[k];

			if (!is_of_row(series->row, label))
				add_statsd_tag(&walk->tags, tag_of(label->name), label->value, false);
		}
	if (series->entity >= walk->snapshot->entities_n)
		return;
	add_statsd_tag(&walk->tags, "gpu_vendor", GPU_VENDOR, false);
	add_statsd_tag(&walk->tags, "gpu_device", walk->snapshot->entities[series->entity].id.name, true);
	add_statsd_tag(&walk->tags, "gpu_driver_version", snapshot_driver(walk->snapshot)->driver_version,
		       false);
}

/* Each tag has a comma before it. */
static const char *tags_of(const struct statsd_walk *walk)
{
	return walk->tags.len > 0 ? walk->tags.data + 1 : "";
}

/* ---- series ---- */

static void tell_value(struct statsd_walk *walk, const struct series *series, const char *suffix,
		       double value, bool is_counter)
{
	char name[NAME_MAX_BYTES];
	size_t n = (size_t)snprintf(name, sizeof(name), "gpusonde.%s", walk->family.name);

	if (walk->family.type == FAMILY_COUNTER && n > 6 && n < sizeof(name) &&
	    STRV_EQ(name + n - 6, "_total"))
		name[n - 6] = '\0';
	strncat(name, suffix, sizeof(name) - strlen(name) - 1);
	walk->receive(&(struct statsd_value){ name, tags_of(walk), value, is_counter,
					      series->created_real_ns },
		      walk->userdata);
}

static bool begin_statsd_family(void *userdata, const struct family *family)
{
	struct statsd_walk *walk = userdata;
	char name[NAME_MAX_BYTES];
	bool named = false;

	snprintf(name, sizeof(name), "%s%s", family->prefix, family->name);
	walk->family = *family;
	walk->whole = walk->families && family->type != FAMILY_INFO && glob_list_has(walk->families, name);
	/* Of sums over processes and the like there are rows, too; the check has none of them. */
	for (unsigned i = 0; i < family->rows_n; i++)
		named |= statsd_row_of(&family->rows[i]) && STRV_EQ(family->rows[i].family, family->name);
	return named || walk->whole;
}

static void take_statsd_series(void *userdata, const struct series *series)
{
	struct statsd_walk *walk = userdata;
	const struct statsd_row *row = series->row ? statsd_row_of(series->row) : NULL;

	if (row && STRV_EQ(series->row->family, walk->family.name)) {
		set_named_tags(walk, series);
		walk->receive(&(struct statsd_value){ row->name, tags_of(walk), series->value * row->scale,
						      false, 0 },
			      walk->userdata);
	}
	if (!walk->whole)
		return;
	set_own_tags(walk, series);
	if (series->histogram) {
		tell_value(walk, series, ".sum", series->histogram->sum, true);
		tell_value(walk, series, ".count", (double)series->histogram->count, true);
	} else {
		tell_value(walk, series, "", series->value, walk->family.type == FAMILY_COUNTER);
	}
}

int view_statsd(const struct snapshot *snapshot, const char *families, statsd_receiver receive,
		void *userdata)
{
	struct statsd_walk walk = {
		.snapshot = snapshot,
		.families = families,
		.receive = receive,
		.userdata = userdata,
	};
	const struct walk_sink sink = { begin_statsd_family, take_statsd_series, &walk };
	int r;

	strbuf_init(&walk.tags, 0);
	set_texts_init(&walk.sets);
	r = walk_snapshot(snapshot, families ? WALK_ALL : WALK_GPUS | WALK_PROCESSES, &sink);
	if (walk.tags.failed || walk.sets.text.failed)
		r = -ENOMEM;
	set_texts_done(&walk.sets);
	strbuf_done(&walk.tags);
	return r;
}
