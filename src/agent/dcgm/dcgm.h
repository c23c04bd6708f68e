// SPDX-License-Identifier: Apache-2.0
/*
 * The source DCGM: what pages of DCGM exporters say, which a process of its own reads (src/dcgm). It runs
 * only where exporters are configured (dcgm.host) or found (dcgm_set_targets()). All rows go to the model as
 * they are (model_set_scraped()), those of this node's GPUs also as a reading. Belongs to the thread of the
 * event loop.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include <systemd/sd-event.h>

#include "model/model.h"
#include "view/dcgm/fields.h"

struct dcgm;

enum {
	DCGM_TARGETS_MAX = 512, /* exporters */
	DCGM_ADDRESS_MAX = 256,
};

/* An exporter that somebody has found. */
struct dcgm_target {
	/*
	 * An IPv4 or IPv6 address, or a name; without brackets, port and path, which are those of the options
	 * dcgm.port and dcgm.path. "": it has none yet, and is left out.
	 */
	char address[DCGM_ADDRESS_MAX];
	char node[NODE_NAME_MAX]; /* that it runs on; "": as its page says */
};

struct dcgm_config {
	const char *program; /* NULL: gpusonde-dcgm */
	const char *host; /* the one exporter: a name, an address or a URL; "": those of dcgm_set_targets() */
	unsigned port;
	const char *path; /* begins with a slash */
	const char *ca_file; /* to verify https:// with; "": the system's certificates */
	const char *node; /* this node's name in its cluster; "": the host's */
	int64_t refresh_ns;
	bool strict;
	/* What pages are read for; NULL: all that has a name in DCGM. Used by dcgm_new() only. */
	const struct dcgm_fields *fields;
};

/* Copies @config. Starts no process: that is dcgm_tick()'s. @model must live for longer. */
int dcgm_new(sd_event *event, struct model *model, const struct dcgm_config *config, struct dcgm **ret_dcgm);
void dcgm_free(struct dcgm *dcgm);
DEFINE_CLEANUP(struct dcgm *, dcgm_free, dcgm_freep)
/*
 * The exporters that there are now, in place of those of the last call; copied. What is said of one that
 * stays stays. 0 are none: then the table of scraped rows is empty. Further ones than DCGM_TARGETS_MAX are
 * left out and counted. Has no effect with a host that is configured.
 */
void dcgm_set_targets(struct dcgm *dcgm, const struct dcgm_target *list, uint32_t n);
/* Asks when it is time. */
void dcgm_tick(struct dcgm *dcgm);
/* Of its process; 0: none runs. */
pid_t dcgm_pid(const struct dcgm *dcgm);
