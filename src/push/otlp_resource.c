// SPDX-License-Identifier: Apache-2.0
#include "push/otlp_resource.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"

int otlp_attributes_init(struct otlp_attributes *attributes, size_t room)
{
	*attributes = (struct otlp_attributes){ .list = calloc(room + 1, sizeof(*attributes->list)),
						.pairs = calloc(room + 1, sizeof(*attributes->pairs)) };
	return attributes->list && attributes->pairs ? 0 : -ENOMEM;
}

void otlp_attributes_done(struct otlp_attributes *attributes)
{
	free(attributes->list);
	free(attributes->pairs);
}

static Otlp__AnyValue *add_attribute(struct otlp_attributes *attributes, const char *key)
{
	struct otlp_attribute *attribute = &attributes->list[attributes->n];

	otlp__key_value__init(&attribute->pair);
	otlp__any_value__init(&attribute->value);
	attribute->pair.key = (char *)key;
	attribute->pair.value = &attribute->value;
	attributes->pairs[attributes->n++] = &attribute->pair;
	return &attribute->value;
}

void otlp_add_text(struct otlp_attributes *attributes, const char *key, const char *value)
{
	Otlp__AnyValue *any = add_attribute(attributes, key);

	any->value_case = OTLP__ANY_VALUE__VALUE_STRING_VALUE;
	any->string_value = (char *)value;
}

void otlp_add_number(struct otlp_attributes *attributes, const char *key, int64_t value)
{
	Otlp__AnyValue *any = add_attribute(attributes, key);

	any->value_case = OTLP__ANY_VALUE__VALUE_INT_VALUE;
	any->int_value = value;
}

void otlp_add_figure(struct otlp_attributes *attributes, const char *key, double value)
{
	Otlp__AnyValue *any = add_attribute(attributes, key);

	any->value_case = OTLP__ANY_VALUE__VALUE_DOUBLE_VALUE;
	any->double_value = value;
}

/* ---- the resource ---- */

size_t otlp_resource_attributes(const char *lines)
{
	size_t n = 0;

	for (; *lines; lines++)
		n += *lines == '\n';
	return n;
}

int otlp_resource_init(struct otlp_resource *resource, const char *lines, struct otlp_attributes *attributes)
{
	size_t first = attributes->n;

	otlp__resource__init(&resource->resource);
	otlp__instrumentation_scope__init(&resource->scope);
	resource->texts = strdup(lines);
	if (!resource->texts)
		return -ENOMEM;
	for (char *line = resource->texts; *line;) {
		char *end = line + strcspn(line, "\n"), *value = strchr(line, '=');
		char *next = *end ? end + 1 : end;

		*end = '\0';
		if (value) {
			*value = '\0';
			otlp_add_text(attributes, line, value + 1);
		}
		line = next;
	}
	resource->resource.attributes = &attributes->pairs[first];
	resource->resource.n_attributes = attributes->n - first;
	resource->scope.name = (char *)"gpusonde";
	resource->scope.version = (char *)GPUSONDE_VERSION;
	return 0;
}

void otlp_resource_done(struct otlp_resource *resource)
{
	free(resource->texts);
}
