// SPDX-License-Identifier: Apache-2.0
#include "view/snapshot/values.h"

#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "base/text.h"
#include "view/json/json.h"

void read_text(char *to, size_t size, const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	snprintf(to, size, "%s", text ? text : "");
	utf8_sanitize(to);
}

uint32_t read_u32(const json_t *object, const char *key, uint32_t missing)
{
	const json_t *value = json_object_get(object, key);
	json_int_t number = json_integer_value(value);

	return json_is_integer(value) && number >= 0 && number < UINT32_MAX ? (uint32_t)number : missing;
}

uint64_t read_count(const json_t *object, const char *key)
{
	json_int_t number = json_integer_value(json_object_get(object, key));

	return number > 0 ? (uint64_t)number : 0;
}

double read_double(const json_t *object, const char *key, double missing)
{
	const json_t *value = json_object_get(object, key);

	return json_is_number(value) ? json_number_value(value) : missing;
}

int64_t read_time(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));
	unsigned year, month, day, hour, minute, second, ms;
	struct tm tm;

	if (!text || sscanf(text, "%4u-%2u-%2uT%2u:%2u:%2u.%3uZ", &year, &month, &day, &hour, &minute,
			    &second, &ms) != 7)
		return 0;
	if (year < 1970 || year > 2261 || month < 1 || month > 12 || day > 31 || hour > 23 || minute > 59 ||
	    second > 60)
		return 0;
	tm = (struct tm){ .tm_year = (int)year - 1900,
			  .tm_mon = (int)month - 1,
			  .tm_mday = (int)day,
			  .tm_hour = (int)hour,
			  .tm_min = (int)minute,
			  .tm_sec = (int)second };
	return (int64_t)timegm(&tm) * NSEC_PER_SEC + (int64_t)ms * NSEC_PER_MSEC;
}

void read_rows(const json_t *object, const struct metric *metrics, unsigned n, const char *strip,
	       const char *strip_more, double *v, uint8_t *p)
{
	const struct json_rows rows = { .rows = metrics, .n = n, .strip = strip, .strip_more = strip_more };

	json_read_rows(object, &rows, v, p);
}
