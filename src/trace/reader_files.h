// SPDX-License-Identifier: Apache-2.0
/*
 * The helper that touches what users chose: it reads which files a process maps, judges them (proc/trust.h)
 * and opens them. It parses nothing but /proc. It may hang in either, and is then replaced.
 */
#pragma once

#include <linux/capability.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "proc/mounts.h"
#include "trace/library.h"

enum files_op {
	FILES_SET_UP, /* first: what is trusted, and the user's probes; no answer */
	FILES_LOOK, /* the candidates that a process maps */
	FILES_OPEN, /* a mapped file */
	FILES_EXPECT, /* a file by its path, before any process maps it */
};

struct files_question {
	char version[32]; /* of gpusonde: both sides must be of one build */
	uint32_t op; /* enum files_op */
	int32_t pid;
	uint32_t user; /* FILES_OPEN: of the process */
	uint32_t roles; /* FILES_LOOK: mask of LIBRARY_BIT() */
	uint64_t start, end, dev, ino; /* FILES_OPEN: as in /proc/PID/maps */
	char text[4096]; /* path; FILES_SET_UP: trace.trust */
	struct user_probes user_probes; /* FILES_SET_UP */
};

/* FILES_LOOK: a header, then so many areas, each followed by its path. */
struct files_areas {
	int32_t error;
	uint32_t n;
	uint32_t more; /* areas that did not fit */
};
struct files_area {
	uint64_t start, end, dev, ino;
	uint32_t path_n; /* bytes that follow, not NUL-terminated */
	uint32_t reserved;
};

/* FILES_OPEN, FILES_EXPECT: with the file as descriptor where error is 0 and it is allowed. */
struct files_opened {
	int32_t error;
	uint8_t allowed;
	uint8_t by_users; /* a user can write to it: not root's, or writable by others */
	uint8_t remote; /* allowed, though a server or a program can withhold its pages */
	uint8_t reserved;
	uint64_t dev, ino; /* as in /proc/PID/maps */
	int64_t changed_s, changed_ns; /* ctime */
	uint64_t size;
	char type[64]; /* of its file system, where it is not allowed */
};

/*
 * Other users' processes (SYS_PTRACE), files closed to others (DAC_READ_SEARCH) and deleted ones
 * (CHECKPOINT_RESTORE).
 */
#define READER_FILES_CAPABILITIES                                             \
	(UINT64_C(1) << CAP_SYS_PTRACE | UINT64_C(1) << CAP_DAC_READ_SEARCH | \
	 UINT64_C(1) << CAP_CHECKPOINT_RESTORE)

/* Serves until the owner closes the socket. Returns the exit status. */
int reader_files_serve(int channel);

/* Areas that did not fit into an answer; @message may be NULL. */
uint32_t files_areas_left_out(const void *message, size_t n);
/* Goes through the areas of an answer; false: no more, or it is invalid. *at: 0 at first. */
bool files_areas_next(const void *message, size_t n, size_t *at, struct files_area *ret_area,
		      const char **ret_path);
