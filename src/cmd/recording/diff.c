// SPDX-License-Identifier: Apache-2.0
/* "gpusonde diff": two recordings, or two times of one, beside each other. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cmd/cmd.h"
#include "cmd/recording/report.h"
#include "view/json/json.h"

enum { EXIT_CHANGED = 3 };

static void put_amount(struct document *d, const struct amount *amount)
{
	if (amount->known)
		document_cell(d, "%s%.15g", amount->estimated ? "~" : "", amount->value);
	else
		document_cell(d, "-");
}

/* By the hour that was recorded, so that times of different length can be compared. */
static double rate_of(const struct account *account, const struct report_sum *sum)
{
	return account->covered_seconds > 0 ? sum->amount.value / account->covered_seconds : NAN;
}

static bool is_peak(const struct report_sum *sum)
{
	return STRV_EQ(sum->unit, "B");
}

/* A sum of both. */
struct diff_row {
	struct report_sum a, b;
	double change; /* share; INFINITY: of nothing; NAN: not known, or nothing to compare */
	bool beyond; /* the threshold */
};

struct diff {
	struct diff_row rows[REPORT_SUMS];
	unsigned n, beyond_n;
	double threshold; /* share; NAN: none was given */
};

static double change_of(const struct account *a, const struct report_sum *x, const struct account *b,
			const struct report_sum *y)
{
	double before = is_peak(x) ? x->amount.value : rate_of(a, x);
	double after = is_peak(y) ? y->amount.value : rate_of(b, y);

	if (!x->amount.known || !y->amount.known)
		return NAN;
	if (before > 0)
		return after / before - 1;
	return after > 0 ? INFINITY : NAN;
}

static void compare_accounts(const struct account *a, const struct account *b, double threshold,
			     struct diff *ret_diff)
{
	struct report_sum x[REPORT_SUMS], y[REPORT_SUMS];
	struct diff *diff = ret_diff;

	*diff = (struct diff){ .n = report_sums(a, x), .threshold = threshold };
	report_sums(b, y);
	for (unsigned i = 0; i < diff->n; i++) {
		struct diff_row *row = &diff->rows[i];

		row->a = x[i];
		row->b = y[i];
		/* The first sum is how long was recorded: no figure of the node's. */
		row->change = i == 0 ? NAN : change_of(a, &x[i], b, &y[i]);
		row->beyond = fabs(row->change) > threshold; /* no: of NAN */
		diff->beyond_n += row->beyond;
	}
}

static void put_change(struct document *d, const struct diff_row *row)
{
	const char *mark = row->beyond ? " !" : "";

	if (isnan(row->change))
		document_cell(d, "-");
	else if (isinf(row->change))
		document_cell(d, "new%s", mark);
	else
		document_cell(d, "%+.1f %%%s", 100 * row->change, mark);
}

static void write_diff(const struct diff *diff, struct document *d)
{
	static const char *const headings[] = { "<WHAT", "<UNIT", "A", "B", "CHANGE" };

	document_table(d, 5, headings);
	for (unsigned i = 0; i < diff->n; i++) {
		const struct diff_row *row = &diff->rows[i];

		document_cell(d, "%s", row->a.name);
		document_cell(d, "%s", row->a.unit);
		put_amount(d, &row->a.amount);
		put_amount(d, &row->b.amount);
		put_change(d, row);
	}
	document_table_end(d, "Nothing.");
	document_say(d, "CHANGE is of sums by the time that was recorded, and of peaks as they are. \"-\": "
			"not known, or nothing to compare with; \"new\": A has none.");
	if (!isnan(diff->threshold))
		document_say(d, "\"!\": changed by more than %.15g %%: %u of %u.", 100 * diff->threshold,
			     diff->beyond_n, diff->n);
}

static json_t *finite_json(double value)
{
	return isfinite(value) ? json_number(value) : json_null();
}

static json_t *amount_json(const struct amount *amount)
{
	return amount->known ? json_number(amount->value) : json_null();
}

static json_t *diff_json(const struct diff *diff)
{
	json_t *object = json_object(), *list = json_array();
	bool judged = !isnan(diff->threshold);

	for (unsigned i = 0; i < diff->n; i++) {
		const struct diff_row *row = &diff->rows[i];
		json_t *member = json_object();

		json_object_set_new(member, "name", json_string(row->a.name));
		json_object_set_new(member, "unit", json_string(row->a.unit));
		json_object_set_new(member, "a", amount_json(&row->a.amount));
		json_object_set_new(member, "b", amount_json(&row->b.amount));
		json_object_set_new(member, "change_ratio", finite_json(row->change));
		json_object_set_new(member, "new", json_boolean(isinf(row->change)));
		json_object_set_new(member, "beyond", judged ? json_boolean(row->beyond) : json_null());
		json_array_append_new(list, member);
	}
	json_object_set_new(object, "schema", json_string("gpusonde/diff/v1"));
	json_object_set_new(object, "threshold_ratio", finite_json(diff->threshold));
	json_object_set_new(object, "sums", list);
	return object;
}

static int print_diff(const struct invocation *inv, const struct diff *diff)
{
	struct document document;
	struct strbuf out;
	int status;

	strbuf_init(&out, 0);
	if (inv->flag[FLAG_JSON]) {
		json_write(diff_json(diff), 0, &out);
		strbuf_addc(&out, '\n');
	} else {
		document_begin(&document, DOCUMENT_TEXT, "GPU comparison", &out);
		write_diff(diff, &document);
		document_end(&document);
	}
	status = put_stdout(&out);
	strbuf_done(&out);
	return status == EXIT_SUCCESS && diff->beyond_n > 0 ? EXIT_CHANGED : status;
}

/* "5" or "5%". NAN: none is asked for. False: refused, with an error. */
static bool parse_threshold(const char *text, double *ret_threshold)
{
	char number[32];
	size_t n = text ? strlen(text) : 0;
	double percent;

	*ret_threshold = NAN;
	if (!text)
		return true;
	n -= n > 0 && text[n - 1] == '%';
	if (n < sizeof(number)) {
		memcpy(number, text, n);
		number[n] = '\0';
		if (parse_double(number, &percent) == 0 && percent >= 0) {
			*ret_threshold = percent / 100;
			return true;
		}
	}
	fprintf(stderr,
		"gpusonde diff: --threshold cannot be \"%.80s\": it must be a percentage such as 5%%\n",
		text);
	return false;
}

int diff_main(struct invocation *inv)
{
	_cleanup_free_ char *paths[2] = { NULL, NULL };
	struct account *accounts[2] = { NULL, NULL };
	int64_t since_ns[2], until_ns[2];
	int status = EXIT_FAILURE;
	double threshold;
	struct diff diff;

	if (inv->operands_n != 2) {
		fprintf(stderr, "gpusonde diff: name two recordings: FILE, or FILE@SINCE..UNTIL\n");
		return EXIT_USAGE;
	}
	if (!parse_threshold(inv->flag[FLAG_THRESHOLD], &threshold))
		return EXIT_USAGE;
	for (unsigned i = 0; i < 2; i++)
		if (!report_period(inv, inv->operands[i], &paths[i], &since_ns[i], &until_ns[i])) {
			free(paths[1]);
			return EXIT_USAGE;
		}
	for (unsigned i = 0; i < 2; i++)
		accounts[i] = report_account(inv, paths[i], since_ns[i], until_ns[i]);
	if (accounts[0] && accounts[1]) {
		compare_accounts(accounts[0], accounts[1], threshold, &diff);
		status = print_diff(inv, &diff);
	}
	account_free(accounts[0]);
	account_free(accounts[1]);
	free(paths[1]);
	return status;
}
