// SPDX-License-Identifier: Apache-2.0
/*
 * What every message of our plugins in programs (src/nccl_plugin, src/cupti_plugin) begins with. They go over
 * UNIX sockets of type SOCK_SEQPACKET, in native byte order, since both ends are on one machine. The receiver
 * believes nothing.
 */
#pragma once

#include <stdint.h>

enum { PLUGIN_WIRE_BYTES = 4096 }; /* of a message, at most */

struct plugin_wire {
	uint32_t magic;
	uint16_t version, n; /* records that follow */
	uint64_t lost; /* records that were not sent, for want of room, since earlier connections told */
};
_Static_assert(sizeof(struct plugin_wire) == 16, "both sides must agree");
