// SPDX-License-Identifier: Apache-2.0
#include "view/metrics/metric_name.h"

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

size_t gpu_metrics_named(const char *name, size_t n, uint16_t *ret_list, size_t room)
{
	static const char prefix[] = "gpusonde_gpu_";
	size_t found = 0;

	if (n > strlen(prefix) && strncmp(name, prefix, strlen(prefix)) == 0) {
		name += strlen(prefix);
		n -= strlen(prefix);
	}
	for (uint16_t i = 0; n > 0 && i < GPU_METRICS; i++) {
		if (!metric_is_named(&gpu_metrics[i], name, n))
			continue;
		if (found < room)
			ret_list[found] = i;
		found++;
	}
	return found;
}
