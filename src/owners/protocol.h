// SPDX-License-Identifier: Apache-2.0
/* Between the agent (agent/owner_files.c) and gpusonde-owners: one question, then its answer in parts. */
#pragma once

#include <limits.h>
#include <stdint.h>

#include <linux/capability.h>

#include "helper/confine.h"
#include "helper/helper.h"
#include "model/allocation.h"

/* The runtimes' files are closed to others. */
#define OWNERS_CAPABILITIES CONFINE_CAPABILITY(DAC_READ_SEARCH)

struct owners_question {
	char version[32]; /* GPUSONDE_VERSION; of another one's question nothing else is read */
	uint64_t known; /* `table` of the newest answer; 0: none */
	char root[PATH_MAX]; /* where the host's root file system is mounted */
	char job_dir[PATH_MAX]; /* below it; "": none */
};

enum { OWNERS_ROWS = 96 }; /* of one message */

/*
 * The rows at..at+n of one of two tables, of the names first; one message without rows if both are those of
 * @known, or empty.
 */
struct owners_answer {
	uint64_t table; /* differs when rows of either table differ; never 0 */
	uint32_t rows, given_rows; /* of the whole tables */
	uint32_t given; /* 1: these are rows of what containers were given */
	uint32_t at, n;
	uint64_t given_dropped; /* rows that did not fit, or mean no device */
	uint32_t dropped;
	uint32_t same; /* 1: the tables are those of @known */
	char error[128]; /* what could not be read, and why; "": nothing */
	union {
		struct owner names[OWNERS_ROWS];
		struct allocation allocations[OWNERS_ROWS];
	};
};

_Static_assert(sizeof(struct owners_answer) <= HELPER_MESSAGE_MAX, "an answer fits in a message");
