// SPDX-License-Identifier: Apache-2.0
#include "trace/library.h"

#include <string.h>

#include "base/macro.h"
#include "trace/probe.h"

#define GROUP(name) (1U << PROBE_GROUP_##name)
#define CUDA_GROUPS (GROUP(SETUP) | GROUP(MEMORY) | GROUP(SYNC) | GROUP(COPY) | GROUP(EVENT) | GROUP(LAUNCH))
#define MADE_OF(library) .has_made_of = true, .made_of = PROBE_##library
#define FILES(...)          \
	{                   \
		__VA_ARGS__ \
	}

const struct library probe_libraries[PROBE_LIBRARIES] = {
#define LIBRARY(id_, name_, layer_, result_, errors_, groups_, files_, ...) \
	[PROBE_##id_] = { .name = name_,                                    \
			  .layer = TRACE_LAYER_##layer_,                    \
			  .result = TRACE_RESULT_##result_,                 \
			  .errors = LIBRARY_ERRORS_##errors_,               \
			  .groups = groups_,                                \
			  .files = files_,                                  \
			  ##__VA_ARGS__ },
#include "trace/libraries.def"
};
_Static_assert(PROBE_LIBRARIES < 31, "sets of libraries are bits of an unsigned");

static bool has_name(const struct library *library, const char *name, size_t n)
{
	for (size_t i = 0; i < LIBRARY_FILES_MAX && library->files[i]; i++) {
		size_t begin_n = strlen(library->files[i]);

		if (n >= begin_n && memcmp(name, library->files[i], begin_n) == 0)
			return true;
	}
	return false;
}

unsigned library_of_path(const char *path, size_t path_n)
{
	const char *slash = memrchr(path, '/', path_n);
	const char *name = slash ? slash + 1 : path;
	size_t n = path_n - (size_t)(name - path);
	unsigned found = 0;

	for (unsigned i = 0; i < PROBE_LIBRARIES; i++)
		if (has_name(&probe_libraries[i], name, n))
			found |= LIBRARY_BIT(i);
	return found;
}

unsigned library_companions(void)
{
	unsigned found = 0;

	for (unsigned i = 0; i < PROBE_LIBRARIES; i++)
		if (probe_libraries[i].companion)
			found |= LIBRARY_BIT(i);
	return found;
}
