// SPDX-License-Identifier: Apache-2.0
/* The window that live tables are drawn in. */
#pragma once

#include <systemd/sd-event.h>

#include "cmd/output.h"
#include "screen/window.h"

/*
 * On standard output; its keys, and signals, end the loop of @event. NULL: that is no terminal that can be
 * drawn on, and one table follows the other. So it is also where a command runs, since the terminal is the
 * command's: it writes there and has its keys, and what it writes must not be drawn over.
 */
struct window *live_window_open(sd_event *event, const struct invocation *invocation);
