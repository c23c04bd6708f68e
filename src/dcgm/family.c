// SPDX-License-Identifier: Apache-2.0
#include "dcgm/family.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/hashmap.h"
#include "base/macro.h"

enum { FAMILIES_MAX = 2 * GPU_METRICS + 2 * CONTRACT_METRICS + 2 };

static struct family families[FAMILIES_MAX];
static uint32_t families_n;
static uint8_t families_left_out[FAMILY_NUMBERS];
static struct hashmap by_name; /* hash_bytes() of the name to the index */

static const struct family *find(const char *name, size_t length, uint64_t hash)
{
	uint32_t i;

	/* No two of the names have one hash: families_init() would have failed. */
	if (!hashmap_get(&by_name, hash, &i) || strlen(families[i].name) != length ||
	    memcmp(families[i].name, name, length) != 0)
		return NULL;
	return &families[i];
}

static int add_family(const char *name, enum family_kind kind, const struct metric *metric,
		      const struct dcgm_name *dcgm)
{
	struct family *family = &families[families_n];
	uint64_t hash;
	double factor;

	if (!name)
		return 0;
	hash = hash_bytes(name, strlen(name));
	if (find(name, strlen(name), hash))
		return 0;
	*family = (struct family){ .name = name, .kind = kind, .metric = metric, .dcgm = dcgm };
	if (contract_find(name, strlen(name), &family->contract, &factor) < 0)
		family->contract = CONTRACT_METRICS;
	return hashmap_put(&by_name, hash, families_n++);
}

/* A further name of a contract's number has the columns of its first one. */
static int add_contract(enum contract_metric contract)
{
	const struct contract_row *row = &contract_rows[contract];
	const struct metric *metric = contract_source(contract);
	const struct dcgm_name *dcgm = metric ? &metric->dcgm : NULL;
	enum family_kind kind = metric ? FAMILY_NUMBER : FAMILY_XID;
	int r = add_family(row->name, kind, metric, dcgm);

	return r == 0 ? add_family(row->also, kind, metric, dcgm) : r;
}

int families_init(void)
{
	int r = families_n ? 0 : hashmap_init(&by_name, FAMILIES_MAX);

	if (families_n)
		return 0;
	for (unsigned i = 0; r == 0 && i < GPU_METRICS; i++) {
		const struct metric *metric = &gpu_metrics[i];

		r = add_family(metric->dcgm.name, FAMILY_NUMBER, metric, &metric->dcgm);
		if (r == 0)
			r = add_family(metric->dcgm49.name, FAMILY_NUMBER, metric, &metric->dcgm49);
	}
	for (unsigned i = 0; r == 0 && i < CONTRACT_METRICS; i++)
		r = add_contract((enum contract_metric)i);
	if (r == 0)
		r = add_family("gpusonde_gpu_estimated", FAMILY_ESTIMATED, NULL, NULL);
	if (r == 0)
		r = add_family("gpusonde_node_info", FAMILY_NODE, NULL, NULL);
	return r;
}

void families_leave_out(const uint8_t left_out[static FAMILY_NUMBERS])
{
	memcpy(families_left_out, left_out, sizeof(families_left_out));
}

static bool is_left_out(const struct family *family)
{
	if (family->kind == FAMILY_XID)
		return families_left_out[GPU_METRICS];
	return family->metric && families_left_out[family->metric - gpu_metrics];
}

const struct family *families_find(const char *name, size_t length)
{
	const struct family *family = find(name, length, hash_bytes(name, length));

	return family && !is_left_out(family) ? family : NULL;
}

/*
 * DCGM 4.6 printed a percentage by the name that is a ratio's from 4.7 on: as a whole number, where a ratio
 * has decimals.
 */
static double scale_of(const struct family *family, bool whole)
{
	if (whole && family->dcgm == &gpu_metrics[GPU_UTILIZATION_GPU].dcgm49)
		return gpu_metrics[GPU_UTILIZATION_GPU].dcgm.scale;
	return family->dcgm->scale;
}

/* By a number of more than one, so that what was divided by a power of ten comes back exactly. */
static double divide(double value, double scale)
{
	return scale < 1 ? value * nearbyint(1 / scale) : value / scale;
}

static double multiply(double value, double scale)
{
	return scale < 1 ? value / nearbyint(1 / scale) : value * scale;
}

double family_base_value(const struct family *family, double value, bool whole)
{
	return divide(value, scale_of(family, whole));
}

/* A page has six decimals, of which a change of unit must not make more. */
double family_contract_value(const struct family *family, double value, bool whole)
{
	double scale, wanted;

	if (!family->metric)
		return value;
	scale = scale_of(family, whole);
	wanted = family->metric->dcgm.scale;
	if (scale == wanted)
		return value;
	value = multiply(divide(value, scale), wanted);
	return fabs(value) < 1e9 ? nearbyint(value * 1e6) / 1e6 : nearbyint(value);
}
