// SPDX-License-Identifier: Apache-2.0
/* What NCCL's plugin sends to the agent (src/nccl_socket): operations that have ended. */
#pragma once

#include <stdint.h>

#include "model/plugin_wire.h"

/* Where the agent listens, unless this variable names another place. */
#define NCCL_SOCKET_VARIABLE "GPUSONDE_NCCL_SOCKET"
#define NCCL_SOCKET_DEFAULT "/run/gpusonde/nccl.sock"

enum { NCCL_WIRE_VERSION = 1, NCCL_WIRE_OPERATIONS = 32 };
#define NCCL_WIRE_MAGIC UINT32_C(0x6c63636e) /* "nccl" */

enum nccl_algorithm {
	NCCL_ALGORITHM_UNKNOWN,
#define NCCL_ALGORITHM(id_, name_) NCCL_ALGORITHM_##id_,
#define NCCL_PROTOCOL(id_, name_)
#include "model/nccl_names.def"
	NCCL_ALGORITHMS,
};

enum nccl_protocol {
	NCCL_PROTOCOL_UNKNOWN,
#define NCCL_ALGORITHM(id_, name_)
#define NCCL_PROTOCOL(id_, name_) NCCL_PROTOCOL_##id_,
#include "model/nccl_names.def"
	NCCL_PROTOCOLS,
};

/* Whose clock the duration of an operation is by. */
enum nccl_timing {
	NCCL_TIMING_NONE, /* it is not known */
	NCCL_TIMING_GPU, /* from the first channel's start to the last one's end, by the GPU's clock */
	NCCL_TIMING_HOST, /* the same, as NCCL's proxy thread sees it */
	NCCL_TIMINGS,
};

/* Longer durations are not told. */
#define NCCL_WIRE_DURATION_MAX_NS (3600 * UINT64_C(1000000000))

struct nccl_wire_operation {
	uint64_t comm; /* NCCL's hash; 0: not known */
	uint64_t sequence;
	uint64_t bytes; /* of the argument */
	uint64_t start_ns; /* CLOCK_MONOTONIC, when it was enqueued */
	uint64_t duration_ns; /* 0: not known */
	uint32_t ranks; /* 0: not known */
	int32_t rank;
	uint32_t proxy_operations; /* of network transfers */
	uint32_t nodes;
	uint8_t operation; /* enum nccl_operation */
	uint8_t algorithm, protocol, timing;
	uint8_t channels;
	uint8_t pad[3];
};
_Static_assert(sizeof(struct nccl_wire_operation) == 64, "both sides must agree");

struct nccl_wire {
	struct plugin_wire wire;
	struct nccl_wire_operation at[NCCL_WIRE_OPERATIONS]; /* of which wire.n are sent */
};
_Static_assert(sizeof(struct nccl_wire) <= PLUGIN_WIRE_BYTES, "a message of a plugin");
