// SPDX-License-Identifier: Apache-2.0
/*
 * What the agent and the child that holds NVML share: a mapping, and bytes on a socket pair.
 *
 * The agent writes NVML_COMMAND_READ, the child answers NVML_ANSWER_READY when the reading in the mapping is
 * complete. Between the two the reading is the child's, otherwise nobody writes it. The end of the socket
 * means: let go of the driver and exit. `function` and `since_ns` are the child's at any time; the agent
 * reads them to say what a child is stuck in.
 *
 * Persistent state is what has to outlive a child: how far the driver's samples have been counted, and sums
 * that only we keep. The child works on copies and writes them here when a reading is complete, so that what
 * a dying child had counted and not delivered is counted again by the next one. The agent carries them into
 * the next child's mapping and believes nothing in them; the child treats them as hints, checks their time
 * stamps against the clock and starts again where they make no sense.
 */
#pragma once

#include <stdatomic.h>

#include "model/reading.h"

#define NVML_SHARED_VERSION 1

enum {
	NVML_SHARED_MAGIC = 0x6773646e,
	NVML_COMMAND_READ = 'r',
	NVML_ANSWER_READY = '.',
};

/* Exit statuses of the child with a meaning for the agent. */
enum nvml_child_exit {
	NVML_CHILD_OK = 0,
	NVML_CHILD_USAGE = 64, /* not started by the agent */
	NVML_CHILD_FOREIGN = 65, /* the mapping is another version's */
	NVML_CHILD_SYSTEM = 71, /* mmap and the like */
};

/* A counter of the driver's that we turn into one that neither wraps nor restarts. */
struct persistent_counter {
	double raw; /* newest value seen */
	double total;
	uint8_t known; /* raw and total mean something */
	uint8_t wide; /* it has been above 2^32, so it does not wrap there */
	uint8_t pad[6];
};

enum direction { DIRECTION_TX, DIRECTION_RX, DIRECTIONS };

struct persistent_state {
	char uuid[96]; /* of the GPU; empty: unused */
	uint32_t gi, ci;
	uint64_t window_us; /* utilisation is counted up to here, in the driver's time stamps; 0 not yet */
	int64_t window_boot_ns; /* when that was last tried */
	int64_t window_carry_us; /* see window.h */
	uint64_t processes_us; /* newest time stamp of a process's utilisation; 0 none yet */
	int64_t processes_boot_ns;
	double energy_joules; /* integral of power, where the driver has no counter */
	double energy_watts; /* power at energy_boot_ns */
	int64_t energy_boot_ns; /* 0: no integral yet */
	struct persistent_counter pcie[DIRECTIONS];
	struct persistent_counter nvlink[DIRECTIONS]; /* KiB of all links */
	/* sums of single links, where the driver does not count all together */
	double nvlink_total[DIRECTIONS];
	double nvlink_raw[DIRECTIONS][NVLINKS_MAX]; /* newest value of each link; negative: not seen yet */
};

struct nvml_shared {
	uint32_t magic, version;
	uint64_t size; /* sizeof(struct nvml_shared), as the agent was built */
	_Atomic uint32_t function; /* enum nvml_function under way */
	_Atomic int64_t since_ns; /* CLOCK_MONOTONIC (coarse) at its begin */
	uint32_t attach; /* attachments so far, of all children */
	uint32_t left_out; /* groups that are not read: bits 1 << enum reading_group */
	struct persistent_state states[READING_ENTITIES_MAX];
	struct reading reading;
};
