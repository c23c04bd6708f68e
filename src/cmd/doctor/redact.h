// SPDX-License-Identifier: Apache-2.0
/*
 * What a support archive does not say (redact.def): secrets, and names that people chose, which become
 * "<user-1>", the same for the same name in every file. Names are learned from JSON and labels first; then
 * all texts are rewritten, so that a learned name is found in a log, too.
 */
#pragma once

#include <jansson.h>

#include "base/strbuf.h"
#include "config/options.h"

enum redact_kind {
#define KIND(id_, ...) REDACT_##id_,
#include "cmd/doctor/redact.def"
	REDACT_KINDS,
};
extern const char *const redact_words[REDACT_KINDS];

struct redactor;

/* @with_names: only secrets. -ENOMEM. */
int redactor_new(bool with_names, struct redactor **ret_redactor);
void redactor_free(struct redactor *redactor);
DEFINE_CLEANUP(struct redactor *, redactor_free, redactor_freep)

/* The words of a file of secrets: these are nowhere, whatever surrounds them. */
void redactor_secrets(struct redactor *redactor, const char *text);
/* Those of all files that @options name and this user may read. */
void redactor_secret_files(struct redactor *redactor, const struct options *options);

void redactor_learn_json(struct redactor *redactor, const json_t *json);
void redactor_learn_labels(struct redactor *redactor, const char *metrics);

/* Append to @out what is left, and count what was replaced. @redacted has a row for each kind. */
void redact_text(struct redactor *redactor, const char *text, struct strbuf *out,
		 unsigned redacted[static REDACT_KINDS]);
/* Changes @json. -ENOMEM. */
int redact_json(struct redactor *redactor, json_t *json, unsigned redacted[static REDACT_KINDS]);
/* The values of labels; lines stay lines. */
void redact_labels(struct redactor *redactor, const char *metrics, struct strbuf *out,
		   unsigned redacted[static REDACT_KINDS]);
