// SPDX-License-Identifier: Apache-2.0
#include "push/otlp_names.h"

#include <stdbool.h>
#include <stddef.h>

#include "base/macro.h"

const struct otlp_metric otlp_metrics[] = {
#define OTLP_METRIC(family_, label_, value_, name_, unit_, kind_, attribute_, text_) \
	{ family_, label_, value_, NULL, NULL, name_, unit_, kind_, attribute_, text_, NULL },
#define OTLP_ERRORS(family_, label_, value_, label2_, value2_, error_)      \
	{ family_,   label_,   value_,       label2_, value2_, "hw.errors", \
	  "{error}", OTLP_SUM, "error.type", error_,  NULL },
#define OTLP_PART(family_, label_, name_, unit_, kind_) \
	{ family_, label_, NULL, NULL, NULL, name_, unit_, kind_, NULL, NULL, label_ },
#include "push/otlp.def"
};
const unsigned otlp_metrics_n = ARRAY_SIZE(otlp_metrics);

static const char *const attributes[][2] = {
#define OTLP_ATTRIBUTE(label_, attribute_) { label_, attribute_ },
#include "push/otlp.def"
};

static const char *const descriptions[][2] = {
#define OTLP_DESCRIPTION(name_, text_) { name_, text_ },
#include "push/otlp.def"
};

static const char *const units[][2] = {
#define OTLP_UNIT(unit_, ucum_) { unit_, ucum_ },
#include "push/otlp.def"
};

/* @name NULL: whatever it has; @value NULL: any. */
static bool has_label(const struct samples *samples, const struct page_label *labels, uint32_t n,
		      const char *name, const char *value)
{
	for (uint32_t i = 0; name && i < n; i++)
		if (STRV_EQ(samples_text(samples, labels[i].name), name))
			return !value || STRV_EQ(samples_text(samples, labels[i].value), value);
	return !name;
}

const struct otlp_metric *otlp_metric_of(const struct samples *samples, const struct page_family *family,
					 const struct page_label *labels, uint32_t n)
{
	const char *name = samples_text(samples, family->name);

	for (unsigned i = 0; i < otlp_metrics_n; i++) {
		const struct otlp_metric *metric = &otlp_metrics[i];

		if (STRV_EQ(metric->family, name) && has_label(samples, labels, n, "uuid", NULL) &&
		    has_label(samples, labels, n, metric->label, metric->value) &&
		    has_label(samples, labels, n, metric->label2, metric->value2))
			return metric;
	}
	return NULL;
}

const char *otlp_description(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(descriptions); i++)
		if (STRV_EQ(descriptions[i][0], name))
			return descriptions[i][1];
	return NULL;
}

const char *otlp_attribute(const char *label)
{
	for (size_t i = 0; i < ARRAY_SIZE(attributes); i++)
		if (STRV_EQ(attributes[i][0], label))
			return attributes[i][1];
	return label;
}

const char *otlp_unit(const char *unit)
{
	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		if (STRV_EQ(units[i][0], unit))
			return units[i][1];
	return "";
}
