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
/* The last bit is TARGET_ROLE_ANY. */
_Static_assert(PROBE_LIBRARIES + USER_PROBES_MAX <= 30, "sets of libraries are bits of an unsigned");

static struct user_probes user_probes;

void library_set_user(const struct user_probes *user)
{
	user_probes = *user;
}

void library_set_user_text(const char *text)
{
	struct strbuf errors;

	strbuf_init(&errors, 0);
	if (user_probes_parse(text ? text : "", &user_probes, &errors) < 0)
		user_probes = (struct user_probes){ 0 };
	strbuf_done(&errors);
}

static bool patterns_used;

void library_set_patterns(bool used)
{
	patterns_used = used;
}

bool library_patterns(void)
{
	return patterns_used;
}

const struct user_probes *library_user(void)
{
	return &user_probes;
}

unsigned library_user_of(unsigned bits, const char *symbol)
{
	for (unsigned i = 0; bits && i < user_probes.n; i++)
		if (bits & LIBRARY_USER_BIT(i) && user_probe_matches(&user_probes.at[i], symbol))
			return i + 1;
	return 0;
}

bool library_user_has_arguments(void)
{
	bool has = false;

	for (unsigned i = 0; i < user_probes.n; i++)
		has |= user_probes.at[i].args_n > 0;
	return has;
}

unsigned library_user_bits(void)
{
	unsigned bits = 0;

	for (unsigned i = 0; i < user_probes.n; i++)
		bits |= LIBRARY_USER_BIT(i);
	return bits;
}

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
	for (unsigned i = 0; i < user_probes.n; i++)
		if (user_probe_has_library(&user_probes.at[i], path, path_n))
			found |= LIBRARY_USER_BIT(i);
	return found;
}
