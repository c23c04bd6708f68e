// SPDX-License-Identifier: Apache-2.0
#include "base/glob.h"

#include <string.h>

bool glob_matches(const char *pattern, size_t pattern_n, const char *name)
{
	const char *end = pattern + pattern_n, *star = NULL, *again = NULL;

	while (*name) {
		if (pattern < end && *pattern == '*') {
			star = ++pattern;
			again = name;
		} else if (pattern < end && (*pattern == '?' || *pattern == *name)) {
			pattern++;
			name++;
		} else if (star) {
			pattern = star;
			name = ++again;
		} else {
			return false;
		}
	}
	while (pattern < end && *pattern == '*')
		pattern++;
	return pattern == end;
}

bool glob_list_has(const char *list, const char *name)
{
	bool any = false, found = false;

	for (; list && *list; list += strspn(list, ", ")) {
		size_t n = strcspn(list, ", ");
		bool excludes = *list == '!';

		if (excludes && glob_matches(list + 1, n - 1, name))
			return false;
		any |= n > 0 && !excludes;
		found |= n > 0 && !excludes && glob_matches(list, n, name);
		list += n;
	}
	return found || !any;
}
