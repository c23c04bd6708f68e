// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/owner.h"

/*
 * A GPU or MIG instance that a container, pod or job was given, whether it uses it or not. Two that share a
 * GPU have one each.
 */
struct allocated {
	enum workload_kind kind; /* WORKLOAD_NONE: several that did not fit, together */
	/* as in struct workload; empty for a container or pod whose names alone are known */
	char id[96];
	char pod_uid[48]; /* of a container in a pod; else, or where it is not known, empty */
	char namespace[64], pod[254], container[64]; /* empty: not known */
	char resource[64]; /* what was asked for */
	enum source_id source; /* who says so */
	bool claimed; /* a process of it says so, whose user may have chosen what it says */
	uint32_t slots; /* logical slots of a shared device; 0: it is not shared */
	uint32_t count; /* how many allocations this is: 1 */
	uint32_t processes; /* its live ones on the device, and on instances of it */
	uint16_t entity;
	bool estimated; /* that it was given the device is likely, and not confirmed */
	bool stale; /* the source has said nothing for too long; the times stand still meanwhile */
	int64_t since_real_ns; /* when it was first seen */
	double seconds; /* since then; of several, all of theirs together */
	/*
	 * Of these, those in which no process of it worked on the device. Absent: in the newest reading
	 * that is not known. Estimated: of some time it was not.
	 */
	double idle_seconds;
	uint8_t idle_p;
};
