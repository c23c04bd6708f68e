// SPDX-License-Identifier: Apache-2.0
#include "view/metrics/metric_name.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "model/metric.h"

static const char *without(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0 ? text + strlen(prefix) : text;
}

void metric_name(const struct metric *m, char buf[static METRIC_NAME])
{
	snprintf(buf, METRIC_NAME, "%s%s%s%s%s", without(m->family, "gpu_"), m->value ? "." : "",
		 m->value ? m->value : "", m->value2 ? "." : "", m->value2 ? m->value2 : "");
}

static bool metric_is_named(const struct metric *m, const char *name, size_t n)
{
	char full[METRIC_NAME];

	metric_name(m, full);
	return strncmp(full, name, n) == 0 && (n == strlen(full) || n == strlen(without(m->family, "gpu_")));
}

/* On /metrics, before what it is called here. */
static const char *const prefixes[METRIC_LISTS] = {
	[METRICS_OF_GPU] = "gpusonde_gpu_",
	[METRICS_OF_HOST] = "gpusonde_",
	[METRICS_OF_DISK] = "gpusonde_",
	[METRICS_OF_INTERFACE] = "gpusonde_",
};

size_t metrics_named(const char *name, size_t n, uint32_t *ret_list, size_t room)
{
	size_t found = 0;

	for (unsigned list = 0; list < METRIC_LISTS; list++) {
		size_t before = strlen(prefixes[list]);
		bool whole = n > before && strncmp(name, prefixes[list], before) == 0;
		const char *at = whole ? name + before : name;
		size_t length = whole ? n - before : n;

		for (uint32_t i = 0; length > 0 && i < metrics_in_list(list); i++) {
			uint32_t code = metric_code(list, i);

			if (!metric_is_named(metric_of_code(code), at, length))
				continue;
			if (found < room)
				ret_list[found] = code;
			found++;
		}
	}
	return found;
}
