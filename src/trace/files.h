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
	struct budget_backoff budget; /* given up */
	struct budget_backoff reduced; /* probed at entry only */
};

struct file_probes {
	struct file_group groups[PROBE_GROUPS];
	uint32_t refused; /* entry points without a probe: no safe site, or refused by the kernel */
	/* some have none because the driver's are probed instead (trace_listing.left_to_driver) */
	bool left_to_driver;
	uint32_t no_returns; /* probed only at entry, although a return probe was wanted */
	bool apart; /* none but the user's probes and patterns': it says nothing of CUDA */
	/*
	 * the same figures of the user's probes, which the figures above leave out, since no figure of CUDA
	 * becomes incomplete by them
	 */
	struct {
		uint32_t matched; /* functions */
		uint32_t refused; /* of them, no safe site, or refused by the kernel */
		uint32_t no_returns;
		uint32_t more; /* further ones, for which there is no room */
	} user;
	/* the same of functions that patterns find; none may have a return probe */
	struct {
		uint32_t matched, refused, more;
	} patterns;
	uint64_t attached_ns; /* CLOCK_MONOTONIC, when all probes were attached */
	int64_t attached_boot_ns;
};

struct files_config {
	struct attach_backend *backend;
	const struct site_query *query; /* what is listed */
	bool returns; /* config.return_probes */
	bool no_launch_returns;
	pid_t pid;
	/*
	 * makes the row of a function that one of the user's probes or a pattern matches, both from 1, the
	 * other is 0
	 */
	int (*added_row)(unsigned user, uint8_t pattern, const char *symbol, bool of_users,
			 uint16_t *ret_call, void *userdata);
	void *userdata;
	/*
	 * by call: cost of a hit, with its return probe and without; raised to that of its most expensive
	 * site
	 */
	uint32_t *hit_ns, *entry_ns;
};

/* What of a file is attached, besides the probes of the table. */
struct files_wanted {
	unsigned users; /* LIBRARY_USER_BIT() of the user's probes that apply to it */
	bool patterns; /* functions that patterns find */
	bool of_users; /* users can write to it */
};

/* Attaches the sites of a file, in groups. -ENOENT: it has no probed function. */
int files_attach(const struct files_config *config, int fd, const struct site_list *sites,
		 const struct files_wanted *wanted, struct file_probes **ret_probes);
void files_free(struct file_probes *file);
DEFINE_CLEANUP(struct file_probes *, files_free, files_freep)
/* For a file that no process maps any more: detaches without waiting for the kernel. */
void files_free_later(struct file_probes *file);

void files_give_up(const struct files_config *config, struct file_probes *file, enum probe_group group,
		   int64_t now_ns);
int files_take_back(const struct files_config *config, struct file_probes *file, int fd,
		    enum probe_group group, int64_t now_ns);

/*
 * Takes the return probes of a group away: its calls are still counted, their results and durations
 * unknown. On an error the group is given up.
 */
int files_reduce(const struct files_config *config, struct file_probes *file, int fd, enum probe_group group,
		 int64_t now_ns);
/* Undoes it. On an error the group is given up. */
int files_restore(const struct files_config *config, struct file_probes *file, int fd, enum probe_group group,
		  int64_t now_ns);

uint32_t files_attached(const struct file_probes *file); /* number of sites that are attached now */
uint32_t files_given_up(const struct file_probes *file); /* number of sites that are given up now */
unsigned files_groups_given_up(const struct file_probes *file); /* a bit for each group */
