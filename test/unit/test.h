// SPDX-License-Identifier: Apache-2.0
/*
 * What every unit test includes first. A test is test_<module>.c in the folder that mirrors src/ (or
 * sim/), one name in that folder's meson.build, and a main() that runs one cmocka group; each case of
 * the group is counted on its own, because cmocka speaks TAP here.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

/* The checkout and the build folder, for files that belong to a test. */
static inline const char *test_source_root(void)
{
	return getenv("GPUSONDE_TEST_SOURCE");
}

static inline const char *test_build_root(void)
{
	return getenv("GPUSONDE_TEST_BUILD");
}
