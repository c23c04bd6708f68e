// SPDX-License-Identifier: Apache-2.0
/*
 * A listening socket in the main loop. Accepts in small rounds, so that a flood does not keep the loop from
 * its other work; where connections cannot be taken now (no descriptors left, or their taker says so) it
 * looks away for a moment instead of spinning, and the kernel's queue holds them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <systemd/sd-event.h>

struct listener_ops {
	/* Makes room for one more connection. Nanoseconds to wait before asking again, 0: there is room. */
	int64_t (*room)(void *userdata);
	/* Takes ownership of a new, non-blocking socket. @local: over a UNIX socket. */
	void (*accepted)(int fd, bool local, void *userdata);
	/* The process has no descriptor left: give one back if you can. */
	void (*exhausted)(void *userdata);
};

struct listener;

/*
 * Takes ownership of @fd, on failure too. @ops must stay. @path (may be NULL) is unlinked in the end, if it
 * is still ours.
 */
int listener_new(sd_event *event, int fd, const char *path, const struct listener_ops *ops, void *userdata,
		 struct listener **ret_listener);
void listener_free(struct listener *listener);
/* Bound TCP port; 0 for a UNIX socket. */
unsigned listener_port(const struct listener *listener);
