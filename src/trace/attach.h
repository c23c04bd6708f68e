// SPDX-License-Identifier: Apache-2.0
/*
 * Probes on files, in the way that the running kernel offers: a uprobe_multi link (6.6 and later), else one
 * trace event with many probes and one BPF program. Which one is found out by trying, never from a version.
 *
 * One attachment is one group of sites of one file, entry or return: it is made at once and goes away at
 * once. The kernel side (bpf/) is loaded once, by the backend.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/macro.h"
#include "bpf/event.h"
#include "bpf/shared.h"

struct attach_backend;
struct attachment;

struct attach_config {
	uint32_t ring_bytes; /* power of two, at least a page */
	uint32_t threads, procs, stats; /* most entries of the maps; 0: their defaults */
	uint32_t calls; /* call numbers are below this; 0: the rows of the table of probes */
	/* threads that may be in calls of layers above CUDA's at once; 0: no such library is probed */
	uint32_t layered_threads;
	bool no_multi; /* only trace events, for tests */
};

struct attach_site {
	uint64_t offset; /* in the file */
	uint16_t call;
	/*
	 * entry probes: this site has no return probe, whatever the call's spec says (TRACE_SITE_NO_RETURN)
	 */
	bool no_return;
	uint32_t stack; /* bytes that the stack pointer lies below where it was at the function's entry */
	uint8_t code[24]; /* the file's bytes from the site on; perf path */
	uint8_t code_n;
};

/* Why tracing cannot be, for doctor: which step failed, the cause and the remedy, in words. */
struct attach_trouble {
	char text[640];
};

/* Whether the running kernel's own description knows uprobe_multi links. Good without any capability. */
bool attach_kernel_has_multi(void);
/* Without /sys, as in some containers, nothing is known of what the kernel offers. */
bool attach_sys_is_missing(void);
#define ATTACH_SYS_MISSING "/sys is not mounted here, so it is not known what this kernel offers"
#define ATTACH_SYS_REMEDY "mount /sys, read-only is enough, as docker and Kubernetes do by themselves"
/*
 * What of proc/capabilities.h tracing needs on this kernel: a mask; 0 where the kernel's own description
 * cannot be read, which tells.
 */
unsigned attach_needs(bool no_multi);

/*
 * Loads the kernel side and chooses the way. -EPERM capabilities are missing, -ENOENT no BTF,
 * -ENOSYS/-EOPNOTSUPP the kernel offers no way; @ret_trouble says it in words. Removes what a killed agent
 * has left in tracefs.
 */
int attach_backend_new(const struct attach_config *config, struct attach_backend **ret_backend,
		       struct attach_trouble *ret_trouble);
/*
 * What is let go of from here on goes when the backend goes, all at the same time, which may outlive us by a
 * moment.
 */
void attach_backend_end(struct attach_backend *backend);
void attach_backend_free(struct attach_backend *backend);
DEFINE_CLEANUP(struct attach_backend *, attach_backend_free, attach_backend_freep)
const char *attach_backend_name(const struct attach_backend *backend); /* "uprobe_multi" or "trace event" */

/*
 * @fd: the file, open for reading. @pid: 0 for every process. @returns: return probes. Sites that the kernel
 * refuses make the whole attachment fail with its error. Before return probes on calls are attached, nothing
 * of theirs is counted twice: attach returns first, then entries; detach entries first.
 */
int attach(struct attach_backend *backend, int fd, pid_t pid, bool returns, const struct attach_site *sites,
	   size_t n, struct attachment **ret_attachment);
void attachment_free(struct attachment *attachment);
DEFINE_CLEANUP(struct attachment *, attachment_free, attachment_freep)
/*
 * The same without waiting, where the kernel lets go of all at once with a descriptor (uprobe_multi): that
 * takes it 50 to 400 ms for each. For files that nobody maps any more: the probes may stay a moment;
 * attaching to the same file waits for them to be gone. The file must still be open.
 */
void attachment_free_later(struct attachment *attachment);

/* The spec of a call; before its first site is attached, and when its return probe comes or goes. */
int attach_set_spec(struct attach_backend *backend, uint16_t call, const struct trace_spec *spec);
/* Its probes were taken away: who is in the call now is not waited for. */
int attach_call_gone(struct attach_backend *backend, uint16_t call);

/* ---- maps, for trace/ only ---- */

struct trace_control *attach_control(struct attach_backend *backend); /* mmapped, live */
/*
 * From here on only @pid and what it makes are traced; before its first site is attached. -ENOTSUP: we are in
 * a PID namespace, where the kernel side's numbers are others.
 */
int attach_follow(struct attach_backend *backend, pid_t pid, uint64_t start_boot_ns);
int attach_map_fd(
	const struct attach_backend *backend,
	const char *name); /* of bpf/event.h: "stats", "errors", "procs", "events" (the ring), ... */
/* Sums over CPUs, and each of @cpus_n CPUs' when @per_cpu is not NULL. */
int attach_counters(struct attach_backend *backend, struct trace_counters *ret_sum,
		    struct trace_counters *per_cpu, size_t cpus_n);
/* An empty program instead of ours, for measurements: kernel_sites and bench only. */
int attach_empty(struct attach_backend *backend, int fd, pid_t pid, bool returns,
		 const struct attach_site *sites, size_t n, struct attachment **ret_attachment);
