// SPDX-License-Identifier: Apache-2.0
/*
 * Probes on files, attached by the method that the running kernel offers: a uprobe_multi link (Linux 6.6 and
 * later), else one trace event with many probes and one BPF program. The method is chosen by trying, not by
 * version.
 *
 * One attachment is one group of sites of one file, for entry or return. All its probes are attached and
 * detached together. The backend loads the kernel side (bpf/) once.
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
	uint32_t threads, procs, stats; /* maximum entries of these maps; 0: the default */
	uint32_t calls; /* call numbers are below this; 0: probe_calls_max() */
	/* maximum threads in calls of layers above CUDA at once; 0: no such library is probed */
	uint32_t layered_threads;
	/* the same of PyTorch's operators, and pairs of a process and an operator */
	uint32_t nested_threads, operators;
	bool stacks; /* stacks are recorded: the tables for them have room */
	bool python; /* waits for the lock of Python are: each change of a CPU's thread is looked at */
	bool native; /* with @stacks: also of native frames */
	bool no_multi; /* use only trace events, for tests */
	bool only_empty; /* nothing is traced: attach_empty() alone is used */
};

struct attach_site {
	uint64_t offset; /* in the file */
	uint16_t call;
	/*
	 * for entry probes: the site has no return probe, even if the call's spec has one
	 * (TRACE_SITE_NO_RETURN)
	 */
	bool no_return;
	bool reduced; /* for the budget: it had one, and will have it again */
	uint32_t stack; /* bytes by which the stack pointer is below its value at the function's entry */
	uint8_t code[24]; /* the file's bytes from the site on; for trace events */
	uint8_t code_n;
};

/* Why tracing is not possible: the step that failed, the cause and the remedy. doctor prints it. */
struct attach_error {
	char text[1500];
};

/* Whether the running kernel's BTF has uprobe_multi links. Needs no capability. */
bool attach_kernel_has_multi(void);
/* Without /sys, as in some containers, the kernel's features are unknown. */
bool attach_sys_is_missing(void);
#define ATTACH_SYS_MISSING "/sys is not mounted here, so it is not known what this kernel offers"
#define ATTACH_SYS_REMEDY "mount /sys, read-only is enough, as docker and Kubernetes do by themselves"
/*
 * The capabilities that tracing needs on this kernel, a mask of proc/capabilities.h; 0 where the kernel's BTF
 * cannot be read, so that they are unknown.
 */
unsigned attach_needs(bool no_multi);

/*
 * Loads the kernel side and chooses the method. -EPERM: capabilities are missing; -ENOENT: no BTF;
 * -ENOSYS/-EOPNOTSUPP: the kernel offers no method. @ret_error has the message. Removes the trace events that
 * a killed agent left behind.
 */
int attach_backend_new(const struct attach_config *config, struct attach_backend **ret_backend,
		       struct attach_error *ret_error);
/*
 * Attachments that are freed from here on are closed together when the backend is freed. Closing may continue
 * for a moment after this process has ended.
 */
void attach_backend_end(struct attach_backend *backend);
void attach_backend_free(struct attach_backend *backend);
DEFINE_CLEANUP(struct attach_backend *, attach_backend_free, attach_backend_freep)
const char *attach_backend_name(const struct attach_backend *backend); /* "uprobe_multi" or "trace event" */

/*
 * @fd: the file, open for reading. @pid: 0 for every process. @returns: return probes. If the kernel refuses
 * a site, the attachment fails with its error. The caller must attach return probes before entry probes and
 * detach entry probes first; otherwise an entry could be seen whose return is not.
 */
int attach(struct attach_backend *backend, int fd, pid_t pid, bool returns, const struct attach_site *sites,
	   size_t n, struct attachment **ret_attachment);
void attachment_free(struct attachment *attachment);
DEFINE_CLEANUP(struct attachment *, attachment_free, attachment_freep)
/*
 * Like attachment_free(), but closes uprobe_multi links, which takes the kernel 50 to 400 ms each, in the
 * background. For files that no process maps any more: the probes may stay for a moment, and attaching to the
 * same file waits until they are gone. The file must still be open.
 */
void attachment_free_later(struct attachment *attachment);

/*
 * Sets the spec of a call. Required before its first site is attached, and when its return probe is attached
 * or detached.
 */
int attach_set_spec(struct attach_backend *backend, uint16_t call, const struct trace_spec *spec);
/* With config->python: whether each change of a CPU's thread is looked at. It is, from the start. */
int attach_watch_switches(struct attach_backend *backend, bool watch);
/* The call's probes were detached: returns of calls that are in progress will not be seen. */
int attach_call_gone(struct attach_backend *backend, uint16_t call);

/* ---- maps, for trace/ only ---- */

struct trace_control *attach_control(struct attach_backend *backend); /* mmapped, live */
/*
 * From here on only @pid and its descendants are traced. To be called before the first site is attached.
 * -ENOTSUP: this process is in a PID namespace, whose PIDs are not those that the kernel side sees.
 */
int attach_follow(struct attach_backend *backend, pid_t pid, uint64_t start_boot_ns);
/* @name: of bpf/event.h: "stats", "errors", "procs", "events" (the ring), ... */
int attach_map_fd(const struct attach_backend *backend, const char *name);
/* Runs program entry_free. */
void attach_entry_free(const struct attach_backend *backend, const uint64_t args[TRACE_FREE_ARGS]);
/* The sum over all CPUs and, if @per_cpu is not NULL, the counters of the first @cpus_n CPUs. */
int attach_counters(struct attach_backend *backend, struct trace_counters *ret_sum,
		    struct trace_counters *per_cpu, size_t cpus_n);
/* Attaches an empty program, for measurements: kernel_sites and bench only. */
int attach_empty(struct attach_backend *backend, int fd, pid_t pid, bool returns,
		 const struct attach_site *sites, size_t n, struct attachment **ret_attachment);
