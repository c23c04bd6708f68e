// SPDX-License-Identifier: Apache-2.0
/*
 * How what a command prints looks on the file or terminal that it goes to.
 */
#pragma once

#include "config/cmdline.h"
#include "view/view.h"

/* Colours as --color says, and the width of a terminal. */
struct table_options output_options(const struct invocation *invocation, int fd);
