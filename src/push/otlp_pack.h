// SPDX-License-Identifier: Apache-2.0
/* Points as requests of OTLP. */
#pragma once

#include <stdbool.h>

#include "push/batch.h"
#include "push/otlp_names.h"

/* One series, as it is sent. */
struct otlp_point {
	const struct page_family *family;
	const struct page_series *series;
	const struct otlp_metric *metric; /* NULL: it keeps its name */
	double value; /* of a histogram: the sum */
	int64_t start_real_ns; /* 0: it is not known */
	const uint64_t *counts; /* of a histogram: of each bucket by itself */
};

/* What all requests of a page have. */
struct otlp_page {
	const struct samples *samples;
	const char *resource; /* lines name=value */
	bool delta;
	bool ended; /* its series are no more: points say so, and have no value */
	int64_t real_ns; /* of the points */
};

/* A request of @n points; those of one family and metric stand together. -ENOMEM; -EFBIG. */
int otlp_pack(const struct otlp_page *page, const struct otlp_point *points, uint32_t n,
	      struct batch *ret_batch);
