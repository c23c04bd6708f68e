// SPDX-License-Identifier: Apache-2.0
/*
 * Shared by attach*.c. A method to attach (struct attach_way) is a compiled kernel side and functions to
 * attach it.
 */
#pragma once

#include "trace/attach.h"

#include <bpf/libbpf.h>

#include "base/process_id.h"

enum {
	/*
	 * Programs that differ only in their salt. Each can assign a different call to the same signature
	 * (equal code at the same offset in its page), so this bounds the calls with the same signature.
	 */
	ATTACH_SALTS_MAX = 8,
	ATTACH_SITES_MAX = 16384, /* signatures, of all files together */
	ATTACH_NAME_MAX = 64, /* MAX_EVENT_NAME_LEN, kernel/trace/trace.h */
	/* BPF_TRACE_UPROBE_MULTI in the kernel's include/uapi/linux/bpf.h since 6.6 */
	ATTACH_UPROBE_MULTI = 48,
};

struct attach_way {
	const char *name;
	const unsigned char *object;
	size_t object_n;
	bool multi; /* programs are loaded for uprobe_multi; else for perf events */
	/* Whether the kernel supports it. Called with the programs loaded. */
	int (*try)(struct attach_backend *backend, struct attach_error *ret_error);
	/* On failure, attachment_free() removes what was attached already. */
	int (*make)(struct attachment *attachment, const struct attach_site *sites, size_t n);
};

/* A signature that is in map `sites`. */
struct attach_signature {
	struct trace_signature key;
	uint64_t site;
	uint32_t refs;
};

/* Events in the life of processes, each a tracepoint. */
enum attach_life { ATTACH_LIFE_EXIT, ATTACH_LIFE_EXEC, ATTACH_LIFE_FORK, ATTACH_LIFE_SWITCH, ATTACH_LIVES };

struct attach_backend {
	const struct attach_way *way;
	/* by salt; the first has the maps, the others are loaded when needed */
	struct bpf_object *programs[ATTACH_SALTS_MAX];
	struct bpf_link *lives[ATTACH_LIVES];
	struct trace_control *control;
	/* trace events */
	int tracefs; /* directory */
	struct process_id own; /* of this process; part of the events' names */
	struct attach_links *links; /* NULL until the first is closed in the background */
	bool ending;
	struct attach_signature *signatures;
	size_t signatures_n;
};

/*
 * The kernel's object of an attachment. Closing its file descriptor removes it, except for a trace event's
 * definition.
 */
struct attach_part {
	int fd;
	char name[ATTACH_NAME_MAX]; /* of the trace event; empty for a link */
};

struct attachment {
	struct attach_backend *backend;
	int file;
	pid_t pid;
	bool returns, empty;
	struct attach_part parts[ATTACH_SALTS_MAX];
	size_t parts_n;
	struct trace_signature *signatures; /* that it holds references to */
	size_t signatures_n;
};

extern const struct attach_way attach_way_multi, attach_way_event, attach_way_event_old;

/* The site as the kernel side sees it: a cookie, or the value in map `sites`. */
uint64_t attach_site_value(const struct attach_site *site);

/* ---- attach_load.c ---- */

/* Checks for BTF and capabilities. */
int attach_may(const struct attach_config *config, struct attach_error *ret_error);
/*
 * Text on why probes are trace events. A kernel that has uprobe_multi may refuse the links, or no_multi may
 * be set.
 */
const char *attach_why_events(void);
/* Formats a message: @what was refused with @error although no capability is missing. */
void attach_error_refused(struct attach_error *to, const char *what, int error);
int attach_load(struct attach_backend *backend, const struct attach_config *config,
		struct attach_error *ret_error);
/* Loads the programs again with another salt, sharing the maps of the first. */
int attach_load_salt(struct attach_backend *backend, uint32_t salt);
/* The program that the attachment's probes run. */
int attach_program(const struct attachment *attachment, uint32_t salt);
void attach_error_set(struct attach_error *to, const char *format, ...) _printf_(2, 3);

/* ---- attach_signature.c ---- */

/*
 * Adds the sites' signatures to map `sites`, each with the first salt under which it stands for one call
 * only. @salts: one for each site. -ENOSPC: too many sites, with the same signature or in total.
 */
int attach_signatures_add(struct attachment *attachment, const struct attach_site *sites, size_t n,
			  uint8_t *salts);
void attach_signatures_remove(struct attachment *attachment);

/* ---- attach_links.c ---- */

/*
 * Takes ownership of @fd, a link on @file, and closes it in the background; after attach_backend_end(),
 * together with all others. False: it was not taken.
 */
bool attach_links_leave(struct attach_backend *backend, int fd, int file);
/*
 * Waits until no link on @file is being closed. Otherwise it and a new link would both count the same call.
 */
void attach_links_wait(struct attach_backend *backend, int file);
/* Closes the remaining links, in the background if it takes longer. */
void attach_links_end(struct attach_backend *backend);

/* ---- attach_tracefs.c ---- */

int attach_tracefs_open(struct attach_backend *backend, struct attach_error *ret_error);
/* Removes the events of processes that have ended. */
int attach_tracefs_clean(struct attach_backend *backend);
/* Appends to uprobe_events. */
int attach_tracefs_write(struct attach_backend *backend, const char *text, size_t n);
int attach_tracefs_event_id(struct attach_backend *backend, const char *name, uint64_t *ret_id);
