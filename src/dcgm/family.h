// SPDX-License-Identifier: Apache-2.0
/*
 * The families of an exporter's page that are read: the numbers of the contract and all rows of metrics.def
 * that DCGM has a name for, of both generations; and two of gpusonde's own pages, which say what DCGM's
 * format cannot.
 */
#pragma once

#include <stdint.h>

#include "model/contract.h"
#include "model/metric.h"

enum family_kind {
	FAMILY_NUMBER,
	FAMILY_XID, /* the code of a GPU's last XID: of the contract, and no number of metrics.def */
	FAMILY_ESTIMATED, /* which numbers of the page are estimates */
	FAMILY_NODE, /* whether they are simulated */
};

struct family {
	const char *name;
	enum family_kind kind;
	enum contract_metric contract; /* CONTRACT_METRICS: it is not of the contract */
	const struct metric *metric; /* NULL: no row of metrics.def */
	const struct dcgm_name *dcgm; /* its columns for this name */
};

/* Makes the table; once, before families_find(). -ENOMEM. */
int families_init(void);
/* The numbers that may be left out: those of metrics.def, by their rows, and behind them the last XID. */
enum { FAMILY_NUMBERS = GPU_METRICS + 1 };

/* From here on families of which @left_out is not 0 are not read. */
void families_leave_out(const uint8_t left_out[static FAMILY_NUMBERS]);
/* NULL: not read. */
const struct family *families_find(const char *name, size_t length);

/* What the page prints as @value, a whole number or not, in the units of the contract and of metrics.def. */
double family_contract_value(const struct family *family, double value, bool whole);
double family_base_value(const struct family *family, double value, bool whole);
