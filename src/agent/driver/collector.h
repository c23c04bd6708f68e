// SPDX-License-Identifier: Apache-2.0
/*
 * Wires sources and model together for the agent, atopgpud and commands that take their own samples. Owns the
 * model, the NVML source, the kernel log reader and the newest snapshot. All of it belongs to the thread that
 * runs the event loop; only collector_snapshot() may be called from any thread.
 */
#pragma once

#include <systemd/sd-event.h>

#include "config/options.h"
#include "model/model.h"
#include "nvml/source.h"

struct collector_config {
	bool kernel_log; /* also read XID errors from the kernel log */
	bool host_figures; /* also read the machine's own, as host.figures says */
	bool keep_state; /* save XID counts, not only load them */
	bool quiet; /* log nothing about missing sources; the caller reports them */
	/* Called with each new snapshot. May be NULL. */
	void (*published)(const struct snapshot *snapshot, void *userdata);
	void *userdata;
};

struct collector;

/* Copies the strings in @options. Publishes a first, empty snapshot; the first tick samples. */
int collector_new(sd_event *event, const struct options *options, const struct collector_config *config,
		  struct collector **ret_collector);
/* Saves the state. Does not wait for the driver's child, which ends when its socket closes. */
void collector_free(struct collector *collector);
DEFINE_CLEANUP(struct collector *, collector_free, collector_freep)

/* Requests a reading. If the previous one has not arrived, publishes the known values with their age. */
void collector_tick(struct collector *collector);
/* Publishes what has become known since the newest reading: names. */
void collector_publish(struct collector *collector);
/* Applies the options that may change at run time: period and bounds. */
void collector_configure(struct collector *collector, const struct options *options);
/* Labels of the cluster's node, which become tags of it, beside those of the configuration. */
void collector_set_label(struct collector *collector, const char *key, const char *value);
void collector_forget_labels(struct collector *collector);
void collector_release(struct collector *collector);
void collector_resume(struct collector *collector);

/* Returns a reference that the caller must unref; never NULL. */
struct snapshot *collector_snapshot(struct collector *collector);
uint64_t collector_readings(const struct collector *collector);
/* Reason, call and duration are those of the whole outage (agent/driver/outage.h). */
void collector_status(const struct collector *collector, struct nvml_status *ret_status);
/* The folder of what outlives the agent, and errno of the newest attempt to write there; 0. Any thread. */
const char *collector_state_dir(const struct collector *collector, int *ret_error);
struct model *collector_model(struct collector *collector);
