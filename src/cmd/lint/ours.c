// SPDX-License-Identifier: Apache-2.0
/*
 * Names of gpusonde's metrics and their labels in a query. What is told is certain: a label in a selector is
 * judged by its metric, one in by() or on() by all metrics in the expression, of which one must have it,
 * unless one of them is not ours, or a function makes labels of that name.
 */
#include "cmd/lint/lint.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "cmd/lint/promql.h"
#include "view/metrics/family_names.h"

static const char prefix[] = "gpusonde_";
static const char *const keywords[] = {
	"and", "or", "unless", "bool", "offset", "inf", "nan", "start", "end"
};
static const char *const lists[] = { "by", "without", "on", "ignoring", "group_left", "group_right" };
/* What a scrape adds to every series. */
static const char *const scraped[] = { "instance", "job", "__name__" };

enum metric_of {
	METRIC_NONE, /* the token is no metric */
	METRIC_OURS,
	METRIC_OTHER, /* of others, recorded, or by a variable or pattern: its labels are not known */
	METRIC_UNKNOWN, /* it would be ours; the same for labels */
};

struct ours_scan {
	struct promql_token tokens[PROMQL_TOKENS_MAX];
	unsigned n;
	bool is_name[PROMQL_TOKENS_MAX]; /* of a label, a function, an operator: no metric */
	struct {
		enum metric_of of;
		const char *name;
		size_t name_n, labels; /* of ours: where in @labels */
	} metrics[PROMQL_TOKENS_MAX]; /* by the word, or the { of a selector without one */
	struct strbuf labels; /* texts with their ends */
	const char *records;
	lint_take_fault *take;
	void *userdata;
};

static bool is_any(const struct promql_token *token, const char *const *words, size_t n)
{
	for (size_t i = 0; token->kind == PROMQL_WORD && i < n; i++)
		if (promql_is(token, words[i]))
			return true;
	return false;
}

static bool is_sign(const struct ours_scan *scan, unsigned i, const char *signs)
{
	return i < scan->n && scan->tokens[i].kind == PROMQL_SIGN && strchr(signs, *scan->tokens[i].at);
}

/* A list of labels begins behind this word. */
static bool is_list(const struct ours_scan *scan, unsigned i)
{
	return is_any(&scan->tokens[i], lists, ARRAY_SIZE(lists)) && is_sign(scan, i + 1, "(");
}

/* ---- which words are metrics ---- */

/* label_values(SELECTOR, LABEL) and label_values(LABEL) of Grafana: the label; 0: it has none. */
static unsigned asked_label(const struct ours_scan *scan, unsigned i)
{
	unsigned end;

	if (!promql_is(&scan->tokens[i], "label_values") || !is_sign(scan, i + 1, "("))
		return 0;
	end = scan->tokens[i + 1].partner;
	if (end < i + 3 || scan->tokens[end - 1].kind != PROMQL_WORD)
		return 0;
	return end == i + 3 || is_sign(scan, end - 2, ",") ? end - 1 : 0;
}

static void mark_within(struct ours_scan *scan, unsigned open)
{
	for (unsigned i = open + 1; i < scan->tokens[open].partner; i++)
		scan->is_name[i] = true;
}

static void mark_names(struct ours_scan *scan)
{
	for (unsigned i = 0; i < scan->n; i++) {
		const struct promql_token *token = &scan->tokens[i];

		if (is_list(scan, i) || (promql_is(token, "metrics") && is_sign(scan, i + 1, "(")))
			mark_within(scan, i + 1);
		if (is_sign(scan, i, "{"))
			mark_within(scan, i);
		if (asked_label(scan, i) > 0)
			scan->is_name[asked_label(scan, i)] = true;
		if (token->kind == PROMQL_SIGN || token->kind == PROMQL_TEXT ||
		    isdigit((unsigned char)*token->at) || is_sign(scan, i + 1, "(") ||
		    is_any(token, keywords, ARRAY_SIZE(keywords)) ||
		    is_any(token, lists, ARRAY_SIZE(lists)) || (i + 1 < scan->n && is_list(scan, i + 1)))
			scan->is_name[i] = true;
	}
}

/* ---- metrics ---- */

static bool is_recorded(const struct ours_scan *scan, const char *name, size_t n)
{
	for (const char *line = scan->records; *line;) {
		size_t m = strcspn(line, "\n");

		if (m == n && memcmp(line, name, n) == 0)
			return true;
		line += m + (line[m] != '\0');
	}
	return false;
}

static void judge_metric(struct ours_scan *scan, unsigned at, const char *name, size_t n)
{
	size_t labels = scan->labels.len;

	scan->metrics[at].of = METRIC_OTHER;
	scan->metrics[at].name = name;
	scan->metrics[at].name_n = n;
	if (n < strlen(prefix) || memcmp(name, prefix, strlen(prefix)) != 0 || is_recorded(scan, name, n))
		return;
	if (series_labels(name, n, &scan->labels)) {
		strbuf_addc(&scan->labels, '\0');
		scan->metrics[at].of = METRIC_OURS;
		scan->metrics[at].labels = labels;
		return;
	}
	scan->metrics[at].of = METRIC_UNKNOWN;
	for (unsigned i = 0; i < at; i++)
		if (scan->metrics[i].of == METRIC_UNKNOWN && scan->metrics[i].name_n == n &&
		    memcmp(scan->metrics[i].name, name, n) == 0)
			return; /* told */
	scan->take(&(struct lint_fault){ name, n, NULL, 0 }, scan->userdata);
}

/* Of __name__=~"a|b" each, if it is no real pattern. */
static void judge_pattern(struct ours_scan *scan, unsigned at, const struct promql_token *text)
{
	size_t n;

	for (size_t i = 0; i < text->n; i++)
		if (!isalnum((unsigned char)text->at[i]) && !strchr("_:|", text->at[i]))
			return;
	for (const char *name = text->at; name < text->at + text->n; name += n + 1) {
		for (n = 0; name + n < text->at + text->n && name[n] != '|';)
			n++;
		judge_metric(scan, at, name, n);
	}
	scan->metrics[at].of = METRIC_OTHER;
}

/* { without a word before it: its name is a text, or a matcher of __name__. */
static void judge_nameless(struct ours_scan *scan, unsigned open)
{
	unsigned end = scan->tokens[open].partner;

	scan->metrics[open].of = METRIC_OTHER;
	for (unsigned i = open + 1; i < end; i++) {
		const struct promql_token *token = &scan->tokens[i], *value = token + 2;

		if (token->kind == PROMQL_TEXT && is_sign(scan, i - 1, "{,") && is_sign(scan, i + 1, ",}"))
			judge_metric(scan, open, token->at, token->n);
		if (!promql_is(token, "__name__") || i + 2 >= end || !is_sign(scan, i + 1, "="))
			continue;
		if (value->kind == PROMQL_TEXT)
			judge_metric(scan, open, value->at, value->n);
		else if (promql_is(value, "~") && i + 3 < end && value[1].kind == PROMQL_TEXT)
			judge_pattern(scan, open, value + 1);
	}
}

static bool is_metric_word(const struct ours_scan *scan, unsigned i)
{
	return !scan->is_name[i] && scan->tokens[i].kind != PROMQL_SIGN;
}

static void judge_metrics(struct ours_scan *scan)
{
	for (unsigned i = 0; i < scan->n; i++) {
		const struct promql_token *token = &scan->tokens[i];

		if (is_sign(scan, i, "{") && (i == 0 || !is_metric_word(scan, i - 1)))
			judge_nameless(scan, i);
		else if (is_metric_word(scan, i) && token->kind == PROMQL_VARIABLE)
			scan->metrics[i].of = METRIC_OTHER;
		else if (is_metric_word(scan, i))
			judge_metric(scan, i, token->at, token->n);
	}
}

/* ---- labels ---- */

static bool has_label(const struct ours_scan *scan, unsigned metric, const struct promql_token *label)
{
	static const char exported[] = "exported_"; /* which Prometheus calls labels that it has itself */
	const char *list = scan->labels.data + scan->metrics[metric].labels;
	size_t n = strlen(exported);

	return label->kind == PROMQL_VARIABLE || is_any(label, scraped, ARRAY_SIZE(scraped)) ||
	       label_is_listed(list, label->at, label->n) ||
	       (label->n > n && memcmp(label->at, exported, n) == 0 &&
		label_is_listed(list, label->at + n, label->n - n));
}

static void judge_selector(struct ours_scan *scan, unsigned open)
{
	unsigned metric = open > 0 && is_metric_word(scan, open - 1) ? open - 1 : open;

	for (unsigned i = open + 1; scan->metrics[metric].of == METRIC_OURS && i < scan->tokens[open].partner;
	     i++) {
		const struct promql_token *label = &scan->tokens[i];

		if (label->kind == PROMQL_SIGN || !is_sign(scan, i - 1, "{,") ||
		    !is_sign(scan, i + 1, "=!") || has_label(scan, metric, label))
			continue;
		scan->take(&(struct lint_fault){ scan->metrics[metric].name, scan->metrics[metric].name_n,
						 label->at, label->n },
			   scan->userdata);
	}
}

/* label_replace() and others have the names of labels that they make as texts. */
static bool is_made(const struct ours_scan *scan, const struct promql_token *label)
{
	for (unsigned i = 0; i < scan->n; i++)
		if (scan->tokens[i].kind == PROMQL_TEXT && scan->tokens[i].n == label->n &&
		    memcmp(scan->tokens[i].at, label->at, label->n) == 0)
			return true;
	return false;
}

/* A label of what stands from token @from to @end. */
static void judge_label(struct ours_scan *scan, const struct promql_token *label, unsigned from, unsigned end)
{
	struct lint_fault fault = { .label = label->at, .label_n = label->n };
	unsigned found = 0;

	for (unsigned i = from; i < end; i++) {
		const char *name = scan->metrics[i].name;
		size_t n = scan->metrics[i].name_n;

		if (scan->metrics[i].of == METRIC_NONE)
			continue;
		if (scan->metrics[i].of != METRIC_OURS || has_label(scan, i, label))
			return;
		if (found++ > 0 &&
		    (!fault.metric || fault.metric_n != n || memcmp(fault.metric, name, n) != 0))
			name = NULL;
		fault.metric = name;
		fault.metric_n = name ? n : 0;
	}
	if (found > 0 && !is_made(scan, label))
		scan->take(&fault, scan->userdata);
}

/* by (LABELS) (EXPRESSION), (EXPRESSION) by (LABELS); of on() and others all of the query. */
static void judge_list(struct ours_scan *scan, unsigned at)
{
	unsigned open = at + 1, close = scan->tokens[open].partner, from = 0, end = scan->n;

	if (promql_is(&scan->tokens[at], "by") || promql_is(&scan->tokens[at], "without")) {
		if (is_sign(scan, close + 1, "(")) {
			from = close + 1;
			end = scan->tokens[from].partner;
		} else if (at > 0 && is_sign(scan, at - 1, ")")) {
			from = scan->tokens[at - 1].partner;
			end = at;
		}
	}
	for (unsigned i = open + 1; i < close; i++)
		if (scan->tokens[i].kind == PROMQL_WORD)
			judge_label(scan, &scan->tokens[i], from, end);
}

static void judge_labels(struct ours_scan *scan)
{
	for (unsigned i = 0; i < scan->n; i++) {
		unsigned asked = asked_label(scan, i);

		if (is_sign(scan, i, "{"))
			judge_selector(scan, i);
		else if (is_list(scan, i))
			judge_list(scan, i);
		else if (asked > 0)
			judge_label(scan, &scan->tokens[asked], i + 1, asked);
	}
}

int lint_ours(const char *query, const char *records, lint_take_fault *take, void *userdata)
{
	_cleanup_free_ struct ours_scan *scan = NULL;
	int n, r = 0;

	if (!strstr(query, prefix))
		return 0;
	scan = calloc(1, sizeof(*scan));
	if (!scan)
		return -ENOMEM;
	n = promql_read(query, scan->tokens);
	if (n < 0) {
		take(&(struct lint_fault){ 0 }, userdata);
		return 0;
	}
	scan->n = (unsigned)n;
	scan->records = records;
	scan->take = take;
	scan->userdata = userdata;
	strbuf_init(&scan->labels, 0);
	mark_names(scan);
	judge_metrics(scan);
	if (scan->labels.failed)
		r = -ENOMEM;
	else
		judge_labels(scan);
	strbuf_done(&scan->labels);
	return r;
}
