// SPDX-License-Identifier: Apache-2.0
/*
 * What CUPTI's plugin (src/cupti_plugin) sends to its listener (src/cupti_socket): work of GPUs with its
 * true times, and of which time that is. When it connects it is told how much is wanted.
 */
#pragma once

#include <stdint.h>

#include "model/plugin_wire.h"

/* Where the plugin looks for who listens, unless this variable names another place. */
#define CUPTI_SOCKET_VARIABLE "GPUSONDE_CUPTI_SOCKET"
#define CUPTI_SOCKET_DEFAULT "/run/gpusonde/cupti.sock"

enum { CUPTI_WIRE_VERSION = 1, CUPTI_WIRE_RECORDS = 40, CUPTI_NAME_PART = 64, CUPTI_NAME_MAX = 2560 };
#define CUPTI_WIRE_MAGIC UINT32_C(0x74707563) /* "cupt" */
#define CUPTI_DURATION_MAX_NS (3600 * UINT64_C(1000000000)) /* longer work is not told */

enum cupti_wire_kind {
	CUPTI_KERNEL,
	CUPTI_GRAPH, /* a whole one */
	CUPTI_COPY,
	CUPTI_SET,
	CUPTI_WORKS,
	CUPTI_NAME = CUPTI_WORKS, /* part of a kernel's name */
	CUPTI_DEVICE,
	CUPTI_SLICE,
	CUPTI_KINDS,
};

/* What the plugin does. */
enum cupti_state {
	CUPTI_ON, /* all work that began in the slice is told */
	CUPTI_OVER, /* the slice ended as it should */
	CUPTI_SPENT, /* it ended early: it had as many records as were wanted */
	CUPTI_OTHER, /* another tool has subscribed to CUPTI: the plugin stands down */
	CUPTI_NO_LIBRARY, /* CUPTI is not to be had */
	CUPTI_REFUSED, /* CUPTI refuses, with an error */
	CUPTI_STATES,
};

enum cupti_clock {
	CUPTI_CLOCK_OURS, /* CUPTI was given CLOCK_MONOTONIC */
	CUPTI_CLOCK_OFFSET, /* times are CUPTI's, less the offset that was measured when the slice began */
	CUPTI_CLOCKS,
};

struct cupti_work {
	uint8_t kind; /* enum cupti_wire_kind */
	uint8_t copy; /* CUpti_ActivityMemcpyKind */
	uint16_t pad;
	uint32_t device; /* CUDA's number, in the program */
	uint32_t context, stream; /* CUPTI's numbers */
	uint32_t correlation; /* of the call: equal for all kernels of a graph */
	uint32_t tid; /* that called; 0: not known */
	uint32_t graph; /* 0: of none */
	uint32_t pad2;
	uint64_t start_ns, end_ns; /* CLOCK_MONOTONIC */
	uint64_t launch_ns; /* a moment of the call; 0: not known */
	uint64_t name; /* of a kernel: cupti_name_hash() */
	uint64_t bytes; /* copied or set */
	uint64_t node; /* of the graph */
};
_Static_assert(sizeof(struct cupti_work) == 80, "both sides must agree");

/* Told before the first work that has it. */
struct cupti_name {
	uint8_t kind, n; /* n: bytes of the part */
	uint16_t at, size; /* where the part begins; of the whole name, as far as it is told */
	uint16_t pad;
	uint64_t name;
	char text[CUPTI_NAME_PART];
};
_Static_assert(sizeof(struct cupti_name) == 80, "both sides must agree");

struct cupti_device {
	uint8_t kind, pad[3];
	uint32_t device;
	uint8_t uuid[16];
	uint8_t pad2[56];
};
_Static_assert(sizeof(struct cupti_device) == 80, "both sides must agree");

/* Follows the work that it covers, as far as CUPTI has delivered it. */
struct cupti_slice {
	uint8_t kind, state, clock, pad;
	uint32_t api; /* CUPTI's version: 18, 130001; 0: none */
	uint32_t error; /* CUptiResult, where it refuses */
	uint32_t kinds; /* of activities that it delivers, as bits of 1 << enum cupti_wire_kind */
	uint64_t start_ns, end_ns; /* since the last one that was told; equal: it was off */
	/* so far, of the process: */
	uint64_t dropped; /* records that CUPTI had no buffer for */
	uint64_t unknown; /* records of other kinds */
	uint64_t bad; /* records that make no sense, or have no times */
	uint64_t unsure_ns; /* of the offset: as long as measuring it took */
	uint64_t pad2[2];
};
_Static_assert(sizeof(struct cupti_slice) == 80, "both sides must agree");

union cupti_record {
	uint8_t kind;
	struct cupti_work work;
	struct cupti_name name;
	struct cupti_device device;
	struct cupti_slice slice;
};

struct cupti_wire {
	struct plugin_wire wire;
	union cupti_record at[CUPTI_WIRE_RECORDS]; /* of which wire.n are sent */
};
_Static_assert(sizeof(struct cupti_wire) <= PLUGIN_WIRE_BYTES, "a message of a plugin");

/* The greeting. */
struct cupti_wanted {
	uint32_t magic;
	uint16_t version, pad;
	uint32_t slice_ms, period_ms; /* on for so long of so long; equal: always */
	uint32_t launches; /* of a slice, at most; 0: any number */
	uint32_t nodes; /* 1: each kernel of a graph, 0: graphs as a whole */
};

/* FNV-1a: of the name as compiled, in full. */
static inline uint64_t cupti_name_hash(const char *name)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (const unsigned char *c = (const unsigned char *)name; *c; c++)
		h = (h ^ *c) * UINT64_C(0x100000001b3);
	return h;
}
