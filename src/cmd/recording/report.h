// SPDX-License-Identifier: Apache-2.0
/* What gpusonde report and diff share: reading a recording into an account, and what is shown of it. */
#pragma once

#include <jansson.h>

#include "cmd/recording/account.h"
#include "cmd/recording/document.h"
#include "config/cmdline.h"
#include "store/walk.h"

struct report_price {
	double of_kwh; /* 0: none was given */
	char currency[16];
};

/* The account of a file between two moments; errors are printed. NULL: there is none. */
struct account *report_account(const struct invocation *inv, const char *path, int64_t since_ns,
			       int64_t until_ns);
/* --job, --pod, --container, --user; false: refused, with an error. */
bool report_selection(const struct invocation *inv, struct selection *ret_selection);
/* FILE, or FILE@SINCE..UNTIL; *ret_path is the caller's. False: refused, with an error. */
bool report_period(const struct invocation *inv, const char *operand, char **ret_path, int64_t *ret_since_ns,
		   int64_t *ret_until_ns);
bool report_price(const struct invocation *inv, struct report_price *ret_price);

void report_write(const struct account *account, const struct report_price *price, struct document *document);
json_t *report_json(const struct account *account, const struct report_price *price);

/* Sums of a node or of who is selected, by name. */
struct report_sum {
	const char *name, *unit;
	struct amount amount;
};
enum { REPORT_SUMS = 16 };
unsigned report_sums(const struct account *account, struct report_sum ret_sums[static REPORT_SUMS]);
