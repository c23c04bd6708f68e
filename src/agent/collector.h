// SPDX-License-Identifier: Apache-2.0
/*
 * Sources and model wired together: what the agent, atopgpud and a command that samples for itself have in
 * common. Owns the model, the NVML source, the kernel log and the newest snapshot. All of it belongs to the
 * thread that runs the event loop; collector_snapshot() alone may be called from any.
 */
#pragma once

#include <systemd/sd-event.h>

#include "config/options.h"
#include "model/model.h"
#include "nvml/source.h"

struct collector_config {
	bool kernel_log; /* read XIDs there, too */
	bool keep_state; /* save XID counts, not only load them */
	bool quiet; /* say nothing about what is missing: somebody else reports it */
	/* A new snapshot is there. May be NULL. */
	void (*published)(const struct snapshot *snapshot, void *userdata);
	void *userdata;
};

struct collector;

/* The strings in @options are copied. Publishes a first, empty snapshot. Samples at the first tick. */
int collector_new(sd_event *event, const struct options *options, const struct collector_config *config,
		  struct collector **ret_collector);
/* Saves the state; leaves the driver's child to end by itself, and waits for nothing. */
void collector_free(struct collector *collector);
DEFINE_CLEANUP(struct collector *, collector_free, collector_freep)

/* Asks for a reading; where the one before has not come, publishes what is known, older. */
void collector_tick(struct collector *collector);
/* What may change while it runs: period and bounds. */
void collector_configure(struct collector *collector, const struct options *options);
void collector_release(struct collector *collector);
void collector_resume(struct collector *collector);

/* A reference for the caller to unref; never NULL. */
struct snapshot *collector_snapshot(struct collector *collector);
uint64_t collector_readings(const struct collector *collector);
/* The reason, the call and its duration are those of the whole outage (agent/driver_outage.h). */
void collector_status(const struct collector *collector, struct nvml_status *ret_status);
struct model *collector_model(struct collector *collector);
