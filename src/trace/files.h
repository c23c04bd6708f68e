// SPDX-License-Identifier: Apache-2.0
/*
 * The probes on one file: which of its functions are probed and where, in groups that are attached and given
 * up together.
 *
 * Entry probes of a group go first and come last, so that no return is ever met without its entry having been
 * seen. What the kernel refuses as a whole is taken apart until the sites that it refuses are found (a
 * bounded number of tries).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "trace/attach.h"
#include "trace/budget.h"
#include "trace/engine.h"

struct file_group {
	struct attach_site *sites;
	uint32_t sites_n;
	struct attachment *entries, *returns;
	struct budget_backoff budget;
};

struct file_probes {
	struct file_group groups[PROBE_GROUPS];
	uint32_t refused; /* entry points without a probe: no harmless site, or the kernel would not */
	/* some have none because the driver's have: what the runtime does by itself is not seen */
	bool left_to_driver;
	uint32_t no_returns; /* probed at their entry only, though a return probe was wanted */
	bool only_companions; /* no function but of companions (struct library) */
	uint64_t attached_ns; /* CLOCK_MONOTONIC, when all probes were in */
	int64_t attached_boot_ns;
};

struct files_config {
	struct attach_backend *backend;
	const struct site_rules *rules;
	bool libraries[PROBE_LIBRARIES];
	bool returns; /* config.return_probes */
	pid_t pid;
	uint32_t *hit_ns; /* by call: what a hit costs; raised to the dearest site */
};

/* Finds the sites of a file and attaches all groups. -ENOENT: it has none of the functions. */
int files_attach(const struct files_config *config, int fd, const char *path,
		 struct file_probes **ret_probes);
void files_free(struct file_probes *file);
DEFINE_CLEANUP(struct file_probes *, files_free, files_freep)
/* Of a file that nobody maps any more: without waiting for the kernel to let go of it. */
void files_free_later(struct file_probes *file);

void files_give_up(const struct files_config *config, struct file_probes *file, enum probe_group group,
		   int64_t now_ns);
int files_take_back(const struct files_config *config, struct file_probes *file, int fd,
		    enum probe_group group, int64_t now_ns);

uint32_t files_attached(const struct file_probes *file); /* sites that are probed now */
uint32_t files_given_up(const struct file_probes *file); /* and that were, and are given up */
unsigned files_groups_given_up(const struct file_probes *file); /* bits */
