// SPDX-License-Identifier: Apache-2.0
/*
 * The probes on one file: the sites of its probed functions, in groups that are attached and given up
 * together.
 *
 * Entry probes of a group are attached last and detached first, so that no entry is seen without its return
 * probe. If the kernel refuses a group, it is divided until the refused sites are found, in a bounded number
 * of tries.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "trace/attach.h"
#include "trace/budget.h"
#include "trace/engine.h"
#include "trace/site_list.h"

struct file_group {
	struct attach_site *sites;
	uint32_t sites_n;
	struct attachment *entries, *returns;
	struct budget_backoff budget;
};

struct file_probes {
	struct file_group groups[PROBE_GROUPS];
	uint32_t refused; /* entry points without a probe: no safe site, or refused by the kernel */
	/* some have none because the driver's are probed instead (trace_listing.left_to_driver) */
	bool left_to_driver;
	uint32_t no_returns; /* probed only at entry, although a return probe was wanted */
	bool only_companions; /* has only functions of companions (struct library) */
	uint64_t attached_ns; /* CLOCK_MONOTONIC, when all probes were attached */
	int64_t attached_boot_ns;
};

struct files_config {
	struct attach_backend *backend;
	const struct site_query *query; /* what is listed */
	bool returns; /* config.return_probes */
	pid_t pid;
	uint32_t *hit_ns; /* by call: cost of a hit; raised to that of its most expensive site */
};

/* Attaches the sites of a file, in groups. -ENOENT: it has no probed function. */
int files_attach(const struct files_config *config, int fd, const struct site_list *sites,
		 struct file_probes **ret_probes);
void files_free(struct file_probes *file);
DEFINE_CLEANUP(struct file_probes *, files_free, files_freep)
/* For a file that no process maps any more: detaches without waiting for the kernel. */
void files_free_later(struct file_probes *file);

void files_give_up(const struct files_config *config, struct file_probes *file, enum probe_group group,
		   int64_t now_ns);
int files_take_back(const struct files_config *config, struct file_probes *file, int fd,
		    enum probe_group group, int64_t now_ns);

uint32_t files_attached(const struct file_probes *file); /* number of sites that are attached now */
uint32_t files_given_up(const struct file_probes *file); /* number of sites that are given up now */
unsigned files_groups_given_up(const struct file_probes *file); /* a bit for each group */
