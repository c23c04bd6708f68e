// SPDX-License-Identifier: Apache-2.0
#include "model/contract.h"

#include <errno.h>
#include <string.h>

#include "base/macro.h"
#include "model/xid.h"

const struct contract_row contract_rows[CONTRACT_METRICS] = {
#define CONTRACT_METRIC(member_, name_, also_) [CONTRACT_##member_] = { #member_, (name_), (also_) },
#include "model/contract.def"
};

static bool equals(const char *name, const char *text, size_t length)
{
	return name && strlen(name) == length && memcmp(name, text, length) == 0;
}

int contract_find(const char *name, size_t length, enum contract_metric *ret_metric, double *ret_factor)
{
	const struct dcgm_name *dcgm;
	const struct metric *source = metric_by_dcgm_name(name, length, &dcgm);

	for (unsigned i = 0; i < CONTRACT_METRICS; i++) {
		const struct contract_row *row = &contract_rows[i];

		if (source ? !source->dcgm.name || !STRV_EQ(source->dcgm.name, row->name) :
			     !equals(row->name, name, length) && !equals(row->also, name, length))
			continue;
		*ret_metric = (enum contract_metric)i;
		*ret_factor = source ? source->dcgm.scale / dcgm->scale : 1;
		return 0;
	}
	return -ENOENT;
}

const struct metric *contract_source(enum contract_metric metric)
{
	const struct dcgm_name *dcgm;
	const char *name = contract_rows[metric].name;

	return metric_by_dcgm_name(name, strlen(name), &dcgm);
}
