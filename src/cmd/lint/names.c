// SPDX-License-Identifier: Apache-2.0
/*
 * Names of DCGM in a query. Words are enough to find them: no other word of PromQL begins so. Texts are
 * passed over, unless a matcher of __name__ has them.
 */
#include "cmd/lint/lint.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "model/metric.h"
#include "view/dcgm/fields.h"

enum { SEEN_MAX = 64 };

struct name_scan {
	lint_take_name *take;
	void *userdata;
	struct {
		const char *at;
		size_t n;
	} seen[SEEN_MAX];
	unsigned seen_n; /* names beyond are told as often as they come */
};

/* Families that no row of metrics.def has; "": nothing that is the same number. */
static const struct {
	const char *dcgm, *dcgm49, *ours;
} other_names[] = {
	{ "DCGM_FI_DEV_XID_ERRORS", "DCGM_FI_DEV_XID_ERROR", "" },
	{ "DCGM_FI_DRIVER_VERSION", "DCGM_FI_SYSTEM_DRIVER_VERSION", "" }, /* labels */
};

static bool is_query_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == ':';
}

static void fill_of_row(struct lint_name *name, const struct metric *m, const struct dcgm_name *said)
{
	int n = snprintf(name->ours, sizeof(name->ours), "gpusonde_%s", m->family);

	if (m->label && n > 0 && (size_t)n < sizeof(name->ours))
		n += snprintf(name->ours + n, sizeof(name->ours) - (size_t)n, "{%s=\"%s\"", m->label,
			      m->value);
	if (m->label && m->label2 && n > 0 && (size_t)n < sizeof(name->ours))
		n += snprintf(name->ours + n, sizeof(name->ours) - (size_t)n, ",%s=\"%s\"", m->label2,
			      m->value2);
	if (m->label && n > 0 && (size_t)n < sizeof(name->ours))
		snprintf(name->ours + n, sizeof(name->ours) - (size_t)n, "}");
	name->dcgm = m->dcgm.name;
	name->dcgm49 = m->dcgm49.name ? m->dcgm49.name : m->dcgm.name;
	name->factor_ours = 1 / said->scale;
	name->factor49 = (m->dcgm49.name ? m->dcgm49.scale : m->dcgm.scale) / said->scale;
}

static bool fill_of_extra(struct lint_name *name)
{
	for (unsigned i = 0; i < DCGM_EXTRAS; i++) {
		const struct dcgm_name *pair = dcgm_extras[i];

		for (unsigned k = 0; k < DCGM_NAMES; k++) {
			if (!pair[k].name || strlen(pair[k].name) != name->n ||
			    memcmp(pair[k].name, name->name, name->n) != 0)
				continue;
			name->dcgm = pair[DCGM_NAMES_OLD].name;
			name->dcgm49 = pair[DCGM_NAMES_49].name;
			if (name->dcgm49)
				name->factor49 = pair[DCGM_NAMES_49].scale / pair[k].scale;
			return true;
		}
	}
	return false;
}

static void fill_of_others(struct lint_name *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(other_names); i++) {
		if ((strlen(other_names[i].dcgm) == name->n &&
		     memcmp(other_names[i].dcgm, name->name, name->n) == 0) ||
		    (strlen(other_names[i].dcgm49) == name->n &&
		     memcmp(other_names[i].dcgm49, name->name, name->n) == 0)) {
			name->dcgm = other_names[i].dcgm;
			name->dcgm49 = other_names[i].dcgm49;
			name->factor49 = 1;
		}
	}
}

static void scan_word(struct name_scan *scan, const char *word, size_t n)
{
	struct lint_name name = { .name = word, .n = n };
	const struct dcgm_name *said;
	const struct metric *m;

	if (n < 6 || memcmp(word, "DCGM_", 5) != 0)
		return;
	for (unsigned i = 0; i < scan->seen_n; i++)
		if (scan->seen[i].n == n && memcmp(scan->seen[i].at, word, n) == 0)
			return;
	if (scan->seen_n < SEEN_MAX) {
		scan->seen[scan->seen_n].at = word;
		scan->seen[scan->seen_n++].n = n;
	}
	m = metric_by_dcgm_name(word, n, &said);
	if (m)
		fill_of_row(&name, m, said);
	else if (!fill_of_extra(&name))
		fill_of_others(&name);
	name.breaks_49 = !name.dcgm49 || strlen(name.dcgm49) != n || memcmp(name.dcgm49, word, n) != 0;
	scan->take(&name, scan->userdata);
}

/* The end of the text that begins with the quote at @at; within it words are names if @named. */
static const char *scan_text(struct name_scan *scan, const char *at, bool named)
{
	char quote = *at++;

	while (*at && *at != quote) {
		size_t n = 0;

		while (is_query_word(at[n]))
			n++;
		if (named && n > 0)
			scan_word(scan, at, n);
		if (n == 0)
			n = at[0] == '\\' && quote != '`' && at[1] ? 2 : 1;
		at += n;
	}
	return *at ? at + 1 : at;
}

void lint_names(const char *query, lint_take_name *take, void *userdata)
{
	struct name_scan scan = { .take = take, .userdata = userdata };
	bool named = false; /* the last word was __name__ */

	for (const char *at = query; *at;) {
		size_t n = 0;

		if (*at == '#') {
			at += strcspn(at, "\n");
			continue;
		}
		if (*at == '"' || *at == '\'' || *at == '`') {
			at = scan_text(&scan, at, named);
			continue;
		}
		while (is_query_word(at[n]))
			n++;
		if (n > 0) {
			scan_word(&scan, at, n);
			named = n == strlen("__name__") && memcmp(at, "__name__", n) == 0;
		}
		at += n > 0 ? n : 1;
	}
}
