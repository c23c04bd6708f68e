// SPDX-License-Identifier: Apache-2.0
/*
 * What CUPTI has measured in programs, for code that judges or draws it beside what is estimated from calls:
 *
 *   agent/cupti.c ── struct gpu_works, each second ──> measured_take() ── work sinks ──> timelines, analysis
 *                                                          └──> which time of which process was measured
 *
 * An estimate of time that was measured is left out (measured_rest()). Since what was measured is told a few
 * seconds later than calls are, who wants to know holds an estimate back for MEASURED_LATE_NS.
 *
 * Invariants
 *  1. What a program tells is of its own process alone, the one that connected: nothing of another changes.
 *  2. Time is measured only if nothing of it is missing: records that were lost make it time that was not.
 *  3. Memory is bounded: MEASURED_PROCESSES connections, of each the newest MEASURED_TIMES times; names by
 *     user (base/user_shares.h). What does not fit is counted.
 *
 * One thread owns it: the one that drains the ring.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/macro.h"
#include "model/gpu_work.h"
#include "pipeline/work_sink.h"

enum { MEASURED_PROCESSES = 512, MEASURED_TIMES = 32, MEASURED_RESTS = MEASURED_TIMES + 1 };

/*
 * CUPTI gives what it has every half second, and at the end of a slice after 0.2 s; what is full may take a
 * second, and who receives and who draws look once a second.
 */
#define MEASURED_LATE_NS (4 * (uint64_t)NSEC_PER_SEC)

struct measured;

struct measured_config {
	/* Whether the node has a device; else it is not told. NULL: all are taken. */
	bool (*has_device)(const char *uuid, void *userdata);
	/* @busy_ns of the time @part the device worked for the process. May be NULL. */
	void (*busy)(uint32_t pid, uint64_t since_boot_ns, const char *uuid, struct time_part part,
		     uint64_t busy_ns, void *userdata);
	void *userdata;
	bool expects; /* all programs are asked to measure: one that has said nothing yet is taken to do so */
};

/* -ENOMEM. */
int measured_new(const struct measured_config *config, struct measured **ret_measured);
void measured_free(struct measured *measured);
DEFINE_CLEANUP(struct measured *, measured_free, measured_freep)

struct work_sinks *measured_sinks(struct measured *measured);
void measured_take(struct measured *measured, const struct gpu_works *works, uint64_t now_ns);
/* What its plugin tells may come, or has just come. */
bool measured_has(const struct measured *measured, uint32_t pid);
/* CUPTI is on, as it was told last: its launches will have true times. */
bool measured_is_on(const struct measured *measured, uint32_t pid);
/* The parts of a time that were not measured: how many. */
uint32_t measured_rest(const struct measured *measured, uint32_t pid, struct time_part time,
		       struct time_part rest[static MEASURED_RESTS]);
/* Records for which there was no room here. */
uint64_t measured_dropped(const struct measured *measured);
