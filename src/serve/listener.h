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
	/*
	 * Frees a slot for one more connection. Returns the nanoseconds to wait before trying again, 0: there
	 * is a slot.
	 */
	int64_t (*room)(void *userdata);
	/* Takes ownership of a new, non-blocking socket. @local: over a UNIX socket. */
	void (*accepted)(int fd, bool local, void *userdata);
	/* The process has no free descriptors: close one if possible. */
	void (*exhausted)(void *userdata);
};

struct listener;

/*
 * Takes ownership of @fd, also on failure. @ops must remain valid. @path (may be NULL) is unlinked at the
 * end, if it is still this socket.
 */
int listener_new(sd_event *event, int fd, const char *path, const struct listener_ops *ops, void *userdata,
		 struct listener **ret_listener);
void listener_free(struct listener *listener);
/* Bound TCP port; 0 for a UNIX socket. */
unsigned listener_port(const struct listener *listener);
