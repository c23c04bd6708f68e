// SPDX-License-Identifier: Apache-2.0
/* "gpusonde diff": two recordings, or two times of one, beside each other. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cmd/cmd.h"
#include "cmd/recording/report.h"
#include "view/json.h"

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

/* NAN: there is none. */
static double change_of(const struct account *a, const struct report_sum *x, const struct account *b,
			const struct report_sum *y)
{
	double before = is_peak(x) ? x->amount.value : rate_of(a, x);
	double after = is_peak(y) ? y->amount.value : rate_of(b, y);

	return x->amount.known && y->amount.known && before > 0 ? after / before - 1 : NAN;
}

static void write_diff(const struct account *a, const struct account *b, struct document *d)
{
	static const char *const headings[] = { "<WHAT", "<UNIT", "A", "B", "CHANGE" };
	struct report_sum x[REPORT_SUMS], y[REPORT_SUMS];
	unsigned n = report_sums(a, x);

	report_sums(b, y);
	document_table(d, 5, headings);
	for (unsigned i = 0; i < n; i++) {
		double change = i == 0 ? NAN : change_of(a, &x[i], b, &y[i]);

		document_cell(d, "%s", x[i].name);
		document_cell(d, "%s", x[i].unit);
		put_amount(d, &x[i].amount);
		put_amount(d, &y[i].amount);
		if (isnan(change))
			document_cell(d, "-");
		else
			document_cell(d, "%+.1f %%", 100 * change);
	}
	document_table_end(d, "Nothing.");
	document_say(d, "CHANGE is of sums by the time that was recorded, and of peaks as they are. \"-\": "
			"not known, or nothing to compare with.");
}

static json_t *diff_json(const struct account *a, const struct account *b)
{
	struct report_sum x[REPORT_SUMS], y[REPORT_SUMS];
	json_t *object = json_object(), *list = json_array();
	unsigned n = report_sums(a, x);

	report_sums(b, y);
	for (unsigned i = 0; i < n; i++) {
		double change = i == 0 ? NAN : change_of(a, &x[i], b, &y[i]);
		json_t *row = json_object();

		json_object_set_new(row, "name", json_string(x[i].name));
		json_object_set_new(row, "unit", json_string(x[i].unit));
		json_object_set_new(row, "a",
				    x[i].amount.known ? json_number(x[i].amount.value) : json_null());
		json_object_set_new(row, "b",
				    y[i].amount.known ? json_number(y[i].amount.value) : json_null());
		json_object_set_new(row, "change_ratio", isnan(change) ? json_null() : json_number(change));
		json_array_append_new(list, row);
	}
	json_object_set_new(object, "schema", json_string("gpusonde/diff/v1"));
	json_object_set_new(object, "sums", list);
	return object;
}

static int print_diff(const struct invocation *inv, const struct account *a, const struct account *b)
{
	struct document document;
	struct strbuf out;
	int status;

	strbuf_init(&out, 0);
	if (inv->flag[FLAG_JSON]) {
		json_write(diff_json(a, b), 0, &out);
		strbuf_addc(&out, '\n');
	} else {
		document_begin(&document, DOCUMENT_TEXT, "GPU comparison", &out);
		write_diff(a, b, &document);
		document_end(&document);
	}
	status = put_stdout(&out);
	strbuf_done(&out);
	return status;
}

int diff_main(struct invocation *inv)
{
	_cleanup_free_ char *paths[2] = { NULL, NULL };
	struct account *accounts[2] = { NULL, NULL };
	int64_t since_ns[2], until_ns[2];
	int status = EXIT_FAILURE;

	if (inv->operands_n != 2) {
		fprintf(stderr, "gpusonde diff: name two recordings: FILE, or FILE@SINCE..UNTIL\n");
		return EXIT_USAGE;
	}
	for (unsigned i = 0; i < 2; i++)
		if (!report_period(inv, inv->operands[i], &paths[i], &since_ns[i], &until_ns[i])) {
			free(paths[1]);
			return EXIT_USAGE;
		}
	for (unsigned i = 0; i < 2; i++)
		accounts[i] = report_account(inv, paths[i], since_ns[i], until_ns[i]);
	if (accounts[0] && accounts[1])
		status = print_diff(inv, accounts[0], accounts[1]);
	account_free(accounts[0]);
	account_free(accounts[1]);
	free(paths[1]);
	return status;
}
