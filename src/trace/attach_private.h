// SPDX-License-Identifier: Apache-2.0
/*
 * Shared by the files attach*.c. A way to attach (struct attach_way) is a compiled kernel side and how probes
 * are made with it.
 */
#pragma once

#include "trace/attach.h"

#include <bpf/libbpf.h>

#include "base/process_id.h"

enum {
	/*
	 * Programs that differ in their salt: so many meanings may code have that is equal and lies at equal
	 * places of its page.
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
	/* Whether the kernel has it, once the programs are loaded. */
	int (*try)(struct attach_backend *backend, struct attach_trouble *ret_trouble);
	/* On failure, what was made already is undone by attachment_free(). */
	int (*make)(struct attachment *attachment, const struct attach_site *sites, size_t n);
};

/* A signature that is in map `sites`. */
struct attach_signature {
	struct trace_signature key;
	uint64_t site;
	uint32_t refs;
};

/* What happens to processes, by tracepoints. */
enum attach_life { ATTACH_LIFE_EXIT, ATTACH_LIFE_EXEC, ATTACH_LIFE_FORK, ATTACH_LIVES };

struct attach_backend {
	const struct attach_way *way;
	/* the first has the maps, the others are made when needed */
	struct bpf_object *programs[ATTACH_SALTS_MAX];
	struct bpf_link *lives[ATTACH_LIVES];
	struct trace_control *control;
	/* trace events */
	int tracefs; /* directory */
	struct process_id own; /* part of our events' names */
	struct attach_links *links; /* NULL until the first is let go of */
	bool ending;
	struct attach_signature *signatures;
	size_t signatures_n;
};

/* What the kernel knows of an attachment: gone with its file descriptor, but for the name. */
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
	struct trace_signature *signatures; /* that it refers to */
	size_t signatures_n;
};

extern const struct attach_way attach_way_multi, attach_way_event, attach_way_event_old;

/* As the kernel side has it: cookie, or value of map `sites`. */
uint64_t attach_site_value(const struct attach_site *site);

/* ---- attach_load.c ---- */

/* Whether BTF and capabilities are there. */
int attach_may(const struct attach_config *config, struct attach_trouble *ret_trouble);
/*
 * Why probes are trace events, in words; the kernel that has uprobe_multi may not take ours, or is not to be
 * asked.
 */
const char *attach_why_events(void);
/* @what was refused with @error, and capabilities are not why. */
void attach_say_refused(struct attach_trouble *trouble, const char *what, int error);
int attach_load(struct attach_backend *backend, const struct attach_config *config,
		struct attach_trouble *ret_trouble);
/* The programs once more, with the maps of the first and another salt. */
int attach_load_salt(struct attach_backend *backend, uint32_t salt);
/* The program that the attachment's probes run. */
int attach_program(const struct attachment *attachment, uint32_t salt);
void attach_say(struct attach_trouble *trouble, const char *format, ...) _printf_(2, 3);

/* ---- attach_signature.c ---- */

/*
 * Puts the sites' signatures into map `sites`, each with the first salt under which it has one meaning only.
 * @salts: one for each site. -ENOSPC: too many, of one signature or altogether.
 */
int attach_signatures_add(struct attachment *attachment, const struct attach_site *sites, size_t n,
			  uint8_t *salts);
void attach_signatures_remove(struct attachment *attachment);

/* ---- attach_links.c ---- */

/*
 * Takes a link on @file, to be closed in the background: when we end, together with all others. False: it
 * does not.
 */
bool attach_links_leave(struct attach_backend *backend, int fd, int file);
/*
 * Until no link on @file is left that is being let go of: a call would be counted by both it and a new one.
 */
void attach_links_wait(struct attach_backend *backend, int file);
/* Lets go of what is left, in the background if it takes longer. */
void attach_links_end(struct attach_backend *backend);

/* ---- attach_tracefs.c ---- */

int attach_tracefs_open(struct attach_backend *backend, struct attach_trouble *ret_trouble);
/* Removes the events of processes that are no more. */
int attach_tracefs_clean(struct attach_backend *backend);
/* Appends to uprobe_events. */
int attach_tracefs_write(struct attach_backend *backend, const char *text, size_t n);
int attach_tracefs_event_id(struct attach_backend *backend, const char *name, uint64_t *ret_id);
