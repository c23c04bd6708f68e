// SPDX-License-Identifier: Apache-2.0
#include "helper/below.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"

void below_add(struct below *below, const char *path)
{
	if (!path || !*path || below->n == BELOW_MAX)
		return;
	snprintf(below->paths[below->n], PATH_MAX, "%s", path);
	below->list[below->n] = below->paths[below->n];
	below->list[++below->n] = NULL;
}

void below_add_folder_of(struct below *below, const char *path)
{
	char resolved[PATH_MAX], folder[PATH_MAX];
	const char *paths[] = { path, path ? realpath(path, resolved) : NULL };

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		const char *slash = paths[i] ? strrchr(paths[i], '/') : NULL;

		if (!slash || slash == paths[i])
			continue;
		snprintf(folder, sizeof(folder), "%.*s", (int)(slash - paths[i]), paths[i]);
		below_add(below, folder);
	}
}

void below_add_network(struct below *below)
{
	static const char *const system[] = {
		"/etc/resolv.conf",   "/etc/hosts",    "/etc/host.conf",
		"/etc/nsswitch.conf", "/etc/gai.conf", "/etc/services",
		"/etc/ssl",           "/etc/pki",      "/usr/share/ca-certificates",
		"/usr/lib/ssl"
	};

	for (size_t i = 0; i < ARRAY_SIZE(system); i++)
		below_add(below, system[i]);
}
