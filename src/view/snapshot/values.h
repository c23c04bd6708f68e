// SPDX-License-Identifier: Apache-2.0
/* Members of a document as values of a snapshot: what is missing, or of another type, is "missing". */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "model/metric.h"

void read_text(char *to, size_t size, const json_t *object, const char *key);
#define READ_TEXT(to, object, key) read_text((to), sizeof(to), (object), (key))
uint32_t read_u32(const json_t *object, const char *key, uint32_t missing);
uint64_t read_count(const json_t *object, const char *key);
double read_double(const json_t *object, const char *key, double missing);
/* Parses format_rfc3339()'s output; 0 if invalid. */
int64_t read_time(const json_t *object, const char *key);
/* Reads @object's numbers; the prefixes are those that view_json() strips. */
void read_rows(const json_t *object, const struct metric *metrics, unsigned n, const char *strip,
	       const char *strip_more, double *v, uint8_t *p);
