// SPDX-License-Identifier: Apache-2.0
/* Names, units and attributes of OpenTelemetry for series of /metrics. */
#pragma once

#include "samples/read.h"

enum otlp_type { OTLP_GAUGE, OTLP_SUM, OTLP_UP_DOWN };

/* A row of otlp.def. */
struct otlp_metric {
	const char *family, *label, *value; /* label NULL: any */
	const char *name, *unit;
	enum otlp_type type;
	const char *attribute, *text; /* NULL: none */
};

extern const struct otlp_metric otlp_metrics[];
extern const unsigned otlp_metrics_n;

/* The row of a series with these labels; NULL: none. */
const struct otlp_metric *otlp_metric_of(const struct samples *samples, const struct page_family *family,
					 const struct page_label *labels, uint32_t n);
/* What a label of /metrics is called. */
const char *otlp_attribute(const char *label);
/* UCUM's word for a unit of /metrics. */
const char *otlp_unit(const char *unit);
