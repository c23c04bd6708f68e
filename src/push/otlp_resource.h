// SPDX-License-Identifier: Apache-2.0
/* What metrics and logs of OTLP have in common: attributes, and of what they are sent. */
#pragma once

#include "push/otlp.pb-c.h"

#define OTLP_SCHEMA_URL "https://opentelemetry.io/schemas/1.44.0"

struct otlp_attribute {
	Otlp__KeyValue pair;
	Otlp__AnyValue value;
};

/* Attributes of a whole request, one after the other. Texts are borrowed. */
struct otlp_attributes {
	struct otlp_attribute *list;
	Otlp__KeyValue **pairs;
	size_t n;
};

/* Room for so many; -ENOMEM. In any case otlp_attributes_done() is to be called. */
int otlp_attributes_init(struct otlp_attributes *attributes, size_t room);
void otlp_attributes_done(struct otlp_attributes *attributes);
void otlp_add_text(struct otlp_attributes *attributes, const char *key, const char *value);
void otlp_add_number(struct otlp_attributes *attributes, const char *key, int64_t value);
void otlp_add_figure(struct otlp_attributes *attributes, const char *key, double value);

/* The resource and the scope of a request. */
struct otlp_resource {
	Otlp__Resource resource;
	Otlp__InstrumentationScope scope;
	char *texts;
};

/* How many attributes otlp_resource_init() adds. */
size_t otlp_resource_attributes(const char *lines);
/* @lines: name=value, each with its newline. -ENOMEM. otlp_resource_done() frees it. */
int otlp_resource_init(struct otlp_resource *resource, const char *lines, struct otlp_attributes *attributes);
void otlp_resource_done(struct otlp_resource *resource);
