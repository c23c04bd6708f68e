// SPDX-License-Identifier: Apache-2.0
/* Names, units and attributes of OpenTelemetry for series of /metrics. */
#pragma once

#include "samples/read.h"

enum otlp_type { OTLP_GAUGE, OTLP_SUM, OTLP_UP_DOWN };

/* A row of otlp.def. */
struct otlp_metric {
	const char *family;
	const char *label, *value; /* NULL: any */
	const char *label2, *value2; /* the same */
	const char *name, *unit;
	enum otlp_type type;
	const char *attribute, *text; /* NULL: none; without a value, which it has, that is appended */
	const char *part; /* hw.type of a part of the GPU; NULL: it is of the GPU */
};

extern const struct otlp_metric otlp_metrics[];
extern const unsigned otlp_metrics_n;

/* The row of a series with these labels; NULL: none, or its GPU is not known. */
const struct otlp_metric *otlp_metric_of(const struct samples *samples, const struct page_family *family,
					 const struct page_label *labels, uint32_t n);
/* Of a convention's name that series of several families have; NULL: it has one family. */
const char *otlp_description(const char *name);
/* What a label of /metrics is called. */
const char *otlp_attribute(const char *label);
/* UCUM's word for a unit of /metrics. */
const char *otlp_unit(const char *unit);
