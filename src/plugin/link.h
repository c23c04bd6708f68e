// SPDX-License-Identifier: Apache-2.0
/*
 * src/plugin has what our plugins share, which run in programs of others: a connection to the listener,
 * and a thread of their own. Needs libc only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/un.h>

#include "model/plugin_wire.h"

struct plugin_link {
	int fd; /* -1: not connected */
	uint64_t lost_told, lost_before; /* by the newest message; by those of earlier connections */
	struct sockaddr_un address; /* "": there is none */
};

enum link_sent {
	LINK_SENT,
	LINK_FULL, /* it takes no more now */
	LINK_GONE, /* nobody is at the other end: it is closed */
};

/* @path: NULL and "" mean @standard. One that is too long is none: what it begins with may be another's. */
void link_init(struct plugin_link *link, const char *path, const char *standard);
bool link_connect(struct plugin_link *link);
void link_close(struct plugin_link *link);
/* @message with records of @record_bytes; @lost: records in all that were. Never waits. */
enum link_sent link_send(struct plugin_link *link, struct plugin_wire *message, size_t record_bytes,
			 uint64_t lost);

void plugin_sleep_ms(long ms);
uint64_t plugin_now_ns(void); /* CLOCK_MONOTONIC */
/* A detached thread, to which no signal of the program's goes. False: there is none. */
bool plugin_thread(const char *name, void *(*run)(void *userdata), size_t stack_bytes);
