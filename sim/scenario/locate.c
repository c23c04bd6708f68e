// SPDX-License-Identifier: Apache-2.0
#include "sim/scenario/locate.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"

const char *locate_scenario_name(const char *otherwise)
{
	const char *name = getenv("GPUSONDE_SIM_SCENARIO");

	return name && *name ? name : otherwise;
}

void locate_scenario(const char *name, char *path, size_t size)
{
	static const char *const above[] = { "", "/..", "/../.." };
	static const char anchor;
	const char *slash;
	Dl_info info;

	if (strchr(name, '/')) {
		snprintf(path, size, "%s", name);
		return;
	}
	if (dladdr(&anchor, &info) && info.dli_fname && (slash = strrchr(info.dli_fname, '/'))) {
		for (size_t i = 0; i < sizeof(above) / sizeof(above[0]); i++) {
			snprintf(path, size, "%.*s%s/scenarios/%s.yaml", (int)(slash - info.dli_fname),
				 info.dli_fname, above[i], name);
			if (access(path, R_OK) == 0)
				return;
		}
	}
	snprintf(path, size, "%s/scenarios/%s.yaml", GPUSONDE_DATADIR, name);
}
