// SPDX-License-Identifier: Apache-2.0
/*
 * What DCGM exporters' pages said: the containers' figures of GET /container/metrics, as the exporters
 * themselves attribute them. The source DCGM passes a whole table to model_set_scraped() after each cycle of
 * scrapes; it may contain GPUs of other nodes. What the pages say of this node's GPUs is, apart from it, a
 * reading of that source (model_apply()).
 *
 * A row has a key of eight labels; of several samples with one key the first gave node and model, and the
 * newest each value.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "model/contract.h"

enum {
	SCRAPED_METRICS = CONTRACT_METRICS,
	SCRAPED_ROWS_MAX = 4096,
};

/* Sizes are those of Kubernetes' names plus NUL; texts are valid UTF-8, and empty where the label was not. */
struct scraped_row {
	char uuid[96]; /* of the GPU, also on a MIG instance */
	char gi[16]; /* GPU_I_ID; empty: the whole GPU */
	char gpu[16];
	char device[32];
	char mig_profile[32];
	char namespace[64];
	char pod[254];
	char container[64];
	/* not of the key: */
	char node[254]; /* the page's; "" */
	char model[96];
	uint32_t target; /* which exporter's page, from 0: changes nothing but the age of its rows */
	uint32_t present; /* 1 << index: it has that value */
	int64_t real_ns, boot_ns; /* when that page had been read */
	double v[SCRAPED_METRICS]; /* in DCGM's units of up to 4.8: MiB, MHz, percent, nanoseconds */
};

/* Immutable, reference counted: snapshots share it. */
struct scraped {
	atomic_uint refs;
	uint32_t n;
	int64_t stale_after_ns; /* a row of which the page is older is stale */
	struct scraped_row rows[]; /* ordered by the key: UUID, GI, ... */
};

struct scraped *scraped_ref(struct scraped *scraped);
void scraped_unref(struct scraped *scraped);

/*
 * The rows of the GPU with this UUID, or of its instance @gi; @gi "": of the whole GPU. *ret_n of them,
 * borrowed; NULL and 0: none, also if @scraped is NULL.
 */
const struct scraped_row *scraped_find(const struct scraped *scraped, const char *uuid, const char *gi,
				       uint32_t *ret_n);
bool scraped_is_stale(const struct scraped *scraped, const struct scraped_row *row, int64_t now_boot_ns);

static inline bool scraped_has(const struct scraped_row *row, unsigned metric)
{
	return (row->present >> metric & 1) != 0;
}
