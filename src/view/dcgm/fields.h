// SPDX-License-Identifier: Apache-2.0
/*
 * Which metrics DCGM's page has: what the exporter's file of counters names, as it spells them. Each line of
 * that file is "FIELD, gauge|counter|label, help text"; # begins a comment.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/macro.h"
#include "base/strbuf.h"
#include "model/metric.h"

enum { DCGM_LABEL_FIELDS_MAX = 16 };

enum { DCGM_LINKS = 18 };

/* Families of the page that are in no row of metrics.def. */
enum dcgm_extra {
	DCGM_EXTRA_NVLINK, /* sum of both directions */
	DCGM_EXTRA_XID, /* the last one */
	DCGM_EXTRA_XID_COUNT, /* of a window */
	DCGM_EXTRA_CLOCK_COUNT, /* the same of clock events */
	DCGM_EXTRA_HEALTH,
	DCGM_EXTRA_LINK, /* of each link, both directions; as many as DCGM has fields for */
	DCGM_EXTRAS = DCGM_EXTRA_LINK + DCGM_LINKS,
};

/* Text of a GPU that the exporter can show as a label. */
enum dcgm_text {
	DCGM_TEXT_DRIVER,
	DCGM_TEXT_NVML,
	DCGM_TEXT_NAME,
	DCGM_TEXT_UUID,
	DCGM_TEXT_SERIAL,
	DCGM_TEXT_VBIOS,
	DCGM_TEXT_PCI_BUS_ID,
	DCGM_TEXTS,
};

struct dcgm_field {
	struct dcgm_name name; /* .name NULL: not wanted; the spelling of the file, and what belongs to it */
	char *help; /* of the file */
};

struct dcgm_label_field {
	const char *name;
	enum dcgm_text text;
};

struct dcgm_fields {
	struct dcgm_field rows[GPU_METRICS], extras[DCGM_EXTRAS];
	struct dcgm_label_field labels[DCGM_LABEL_FIELDS_MAX];
	unsigned labels_n;
};

/* Names and units of the DCGM exporter up to release 4.8, or from 4.9 on. */
enum dcgm_names { DCGM_NAMES_OLD, DCGM_NAMES_49, DCGM_NAMES };

extern const struct dcgm_name dcgm_extras[DCGM_EXTRAS][DCGM_NAMES];

/*
 * Reads the text of such a file, called @name. -EINVAL: it is none, see @errors, which names each wrong line;
 * fields that the page does not have are named in @warnings. -ENOMEM.
 */
int dcgm_fields_parse(const char *name, const char *text, size_t n, struct strbuf *errors,
		      struct strbuf *warnings, struct dcgm_fields **ret_fields);
void dcgm_fields_free(struct dcgm_fields *fields);
DEFINE_CLEANUP(struct dcgm_fields *, dcgm_fields_free, dcgm_fields_freep)

/* How the page is written. */
struct dcgm_style {
	enum dcgm_names names;
	/* What the page has, and how it is spelled unless `names` are those of 4.9; NULL: all. */
	const struct dcgm_fields *fields;
	int64_t xid_window_ns; /* of DCGM_EXP_XID_ERRORS_COUNT */
	bool no_hostname; /* without the label Hostname */
	bool model_dashes; /* modelName without blanks */
};
