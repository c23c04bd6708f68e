// SPDX-License-Identifier: Apache-2.0
/* What commands that replay a recording are told, and what they say when it cannot be. */
#pragma once

#include "config/cmdline.h"

struct store_reader;

/* --at and --speed, untouched if they are not given. False: one is wrong; it is said. */
bool replay_arguments(const struct invocation *inv, const char *command, int64_t *ret_at_ns,
		      double *ret_speed);
/* What became of it: an exit status; @r below 0, but -EPIPE, is explained. */
int replay_report(const char *command, const struct store_reader *reader, const char *path, int r);
