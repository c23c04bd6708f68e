// SPDX-License-Identifier: Apache-2.0
#include "serve/origin.h"

#include <string.h>
#include <strings.h>

bool origin_is_own(const char *origin, const char *host)
{
	const char *authority = strstr(origin, "://");

	return host && authority && strcasecmp(authority + 3, host) == 0;
}
