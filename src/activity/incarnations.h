// SPDX-License-Identifier: Apache-2.0
/*
 * Which incarnation of a PID its events are of: calls do not say, beginnings of processes do. It is known of
 * the newest INCARNATIONS PIDs or so, since these are given one after the other.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "bpf/event.h"

enum { INCARNATIONS = 4096 };

struct incarnations {
	struct {
		uint32_t tgid;
		uint64_t incarnation;
	} newest[INCARNATIONS];
};

/* One event, of any type: beginnings and ends of processes are remembered. */
void incarnations_event(struct incarnations *incarnations, const struct trace_header *event, uint32_t size);
/* 0: not known */
uint64_t incarnations_of(const struct incarnations *incarnations, uint32_t tgid);

/*
 * A process of which calls were seen, the first of which ended at @first_ns, ends by this event; *incarnation
 * is its own, and is learnt if it was 0: a call may overtake the event of its process's beginning. What is
 * said of another incarnation does not end it.
 */
bool incarnation_ends(uint64_t *incarnation, uint64_t first_ns, const struct trace_header *event,
		      uint32_t size);
/* The same of the end of incarnation @said; 0 is one that is not known, and may be any. */
bool incarnation_is(uint64_t known, uint64_t said);
