// SPDX-License-Identifier: Apache-2.0
/*
 * gpusonde doctor --bundle FILE: a support archive. A table of files (bundle.def), each made by a function
 * within bounds, redacted by another table (redact.def), and listed before anything is written. It reads
 * only; what cannot be had, or comes too late, is said in the list.
 */
#pragma once

#include <jansson.h>

#include "base/strbuf.h"
#include "cmd/doctor/doctor.h"
#include "cmd/doctor/redact.h"

enum {
	BUNDLE_ITEM_MAX = 8 << 20, /* bytes of a file */
	BUNDLE_SECONDS = 30, /* for all files; then the others are left out */
};

enum bundle_form { BUNDLE_TEXT, BUNDLE_JSON, BUNDLE_LABELS };

struct bundle_source {
	const struct doctor *doctor;
	const char *text, *json; /* what doctor says */
	int64_t end_ns; /* of the boot clock */
};

struct bundle_item {
	const char *name, *help;
	enum bundle_form form;
	struct strbuf text; /* what is written; limited to BUNDLE_ITEM_MAX */
	json_t *json; /* of BUNDLE_JSON, until it is redacted */
	char why[200]; /* it is not there, or not whole: why; "" otherwise */
	unsigned redacted[REDACT_KINDS];
};

/* Each fills text or json, or says why not. */
#define ITEM(name_, function_, form_, help_) \
	void function_(const struct bundle_source *source, struct bundle_item *item);
#include "cmd/doctor/bundle.def"
#undef ITEM

/* Its text, or why not, after a line with the path. */
void bundle_add_file(struct strbuf *out, const char *path);
_printf_(2, 3) void bundle_lacks(struct bundle_item *item, const char *fmt, ...);

/* The archive's flags go together; false: the cause was printed. */
bool bundle_flags_valid(const struct invocation *invocation);
/* Before the work: whether FILE may be made, which is decided later. -errno; the cause was printed. */
int bundle_check_place(const struct invocation *invocation);
/* Collects, lists, asks, writes. An exit status; causes were printed. */
int bundle_write(const struct doctor *doctor, const char *text, const char *json);
