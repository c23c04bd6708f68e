// SPDX-License-Identifier: Apache-2.0
#include "base/size.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "base/text.h"

static const struct {
	const char *unit;
	int64_t bytes;
} units[] = {
	{ "KiB", INT64_C(1) << 10 },
	{ "MiB", INT64_C(1) << 20 },
	{ "GiB", INT64_C(1) << 30 },
};

int size_parse(const char *text, int64_t *ret_bytes)
{
	char number[32];
	size_t digits = strspn(text, "0123456789");
	uint64_t n;

	if (digits >= sizeof(number))
		return -EINVAL;
	snprintf(number, sizeof(number), "%.*s", (int)digits, text);
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (!STRV_EQ(text + digits, units[i].unit))
			continue;
		if (parse_u64(number, &n) < 0 || n > (uint64_t)(INT64_MAX / units[i].bytes))
			return -EINVAL;
		*ret_bytes = (int64_t)n * units[i].bytes;
		return 0;
	}
	return -EINVAL;
}

void size_describe(int64_t bytes, struct strbuf *out)
{
	size_t i = ARRAY_SIZE(units) - 1;

	while (i > 0 && bytes % units[i].bytes)
		i--;
	strbuf_addf(out, "%lld%s", (long long)(bytes / units[i].bytes), units[i].unit);
}
