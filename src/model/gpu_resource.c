// SPDX-License-Identifier: Apache-2.0
#include "model/gpu_resource.h"

#include <fnmatch.h>
#include <stddef.h>
#include <string.h>

#include "base/cursor.h"
#include "base/macro.h"

/* Of NVIDIA's and GKE's device plugins, and NVIDIA's driver for DRA. */
static const char *const gpu_names[] = { "nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-*",
					 "gpu.nvidia.com" };

static bool matches(const struct cursor *pattern, const char *name)
{
	char text[256];
	size_t n = cursor_left(pattern);

	if (n >= sizeof(text))
		return false;
	memcpy(text, pattern->p, n);
	text[n] = '\0';
	return fnmatch(text, name, FNM_NOESCAPE) == 0;
}

bool resource_is_gpu(const char *name, const char *names)
{
	struct cursor c = cursor_over(names ? names : "", names ? strlen(names) : 0), one;

	for (size_t i = 0; i < ARRAY_SIZE(gpu_names); i++)
		if (fnmatch(gpu_names[i], name, FNM_NOESCAPE) == 0)
			return true;
	while (!cursor_eof(&c)) {
		if (cursor_until(&c, ',', &one) < 0) {
			one = c;
			c.p = c.end;
		}
		cursor_skip_space(&one);
		while (!cursor_eof(&one) && one.end[-1] == ' ')
			one.end--;
		if (!cursor_eof(&one) && matches(&one, name))
			return true;
	}
	return false;
}
