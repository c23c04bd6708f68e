// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>

#define SCENARIO_DEFAULT "node-8xh100"

/* What GPUSONDE_SIM_SCENARIO says, borrowed from the environment; or else this. */
const char *locate_scenario_name(const char *otherwise);

/*
 * The file of a scenario: a name with a slash in it is a path; else NAME.yaml is looked for beside the
 * library that this is linked into and in the two folders above it, then where scenarios are installed.
 */
void locate_scenario(const char *name, char *path, size_t size);
