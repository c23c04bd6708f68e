// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/cmdline.h"

/* Says which variables of the environment the command does not get, since the loader has removed them. */
void trace_report_dropped(const struct invocation *invocation);
