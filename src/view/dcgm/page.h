// SPDX-License-Identifier: Apache-2.0
/* DCGM's page while it is written: for dcgm.c and extra.c only. */
#pragma once

#include "view/dcgm/fields.h"
#include "view/dcgm/owners.h"
#include "view/page.h"
#include "view/tags.h"
#include "view/view.h"

enum { DCGM_LABELS = 8 + DCGM_LABEL_FIELDS_MAX };

/* A GPU or MIG instance: its labels, and the data for the end of the page. */
struct dcgm_entity {
	struct label labels[DCGM_LABELS];
	struct label_set set;
	char index[12], gi[12], device[24], model[96]; /* label values */
	double nvlink[2]; /* rates: out, in */
	bool has_nvlink[2];
	const struct xid *xid; /* the newest */
	bool estimated[GPU_METRICS];
};

struct dcgm_page {
	const struct snapshot *s;
	struct dcgm_style style;
	struct page page;
	struct dcgm_entity *entities;
	struct dcgm_owners owners;
	const struct metric *row; /* row of the family being written */
	struct strbuf state, reason; /* of the driver, if it gives no data */
	struct tag *tags; /* TAGS_MAX */
	bool simulated;
};

/* The unit, for HELP: ours, and DCGM's where the row has a scale. */
extern const char *const dcgm_unit_words[UNIT_MAX][2];

bool dcgm_entity_current(const struct entity *e);
/* DCGM truncates to an integer; the rest has six decimals. Ends the line. */
void dcgm_add_value(struct strbuf *out, double value, bool integer);
/* The file's text, which is of the unit that its spelling has: NULL under the other generation's name. */
const char *dcgm_help_of(const struct dcgm_field *field, const struct dcgm_name *name);
void dcgm_begin_family(struct dcgm_page *d, const char *name, const char *help, const char *help_more,
		       bool counter);
/* Its .name is NULL where the page does not have the metric. */
const struct dcgm_name *dcgm_name_of(const struct dcgm_page *d, const struct metric *m);
/* What follows the rows of metrics.def: enum dcgm_extra, and families of gpusonde's own. */
void dcgm_add_extras(struct dcgm_page *d);
