// SPDX-License-Identifier: Apache-2.0
/*
 * The helper that reads for the agent what src/unwind needs of files that users choose: which files a process
 * maps, their rules, and the names of their functions. The protocol, which both ends know. One question at
 * a time; its answer is a row of messages, of which the last one is an UNWIND_TOLD_END.
 */
#pragma once

#include <linux/capability.h>
#include <stdint.h>

#include "bpf/unwind.h"
#include "helper/message.h"
#include "unwind/names.h"

enum unwind_op {
	UNWIND_ASK_LIST, /* what is executable in a process's memory */
	UNWIND_ASK_FILE, /* rules of a file that it maps */
	UNWIND_ASK_NAMES, /* of addresses in a file that is sent along, or in code that the process made */
};

enum {
	UNWIND_ASKED_NAMES = 2048, /* in one question */
	UNWIND_TOLD_BYTES = 64 << 10, /* of a message, at most */
	UNWIND_FILE_NAME = 256,
};

struct unwind_question {
	char version[QUESTION_VERSION_BYTES];
	uint32_t op; /* enum unwind_op */
	int32_t pid;
	uint64_t dev, ino, stamp; /* UNWIND_ASK_FILE: as in struct unwind_told_area */
	uint32_t names; /* UNWIND_ASK_NAMES: so many */
	uint32_t pad;
	uint64_t addresses[UNWIND_ASKED_NAMES]; /* as linked; of made code: in the process */
};

enum unwind_told {
	UNWIND_TOLD_ALIVE, /* it takes longer */
	UNWIND_TOLD_AREAS, /* @n struct unwind_told_area, by address */
	UNWIND_TOLD_FILE, /* one struct unwind_told_file, with the file */
	UNWIND_TOLD_RULES, /* @n struct unwind_rule; the first one of all is UNWIND_NONE */
	UNWIND_TOLD_ROWS, /* @n struct unwind_row, by address, whose rules are numbers of the file's own */
	UNWIND_TOLD_NAME, /* of the address with index @n, NUL-terminated; those without one are left out */
	UNWIND_TOLD_END, /* @error: 0, or why there is no more */
};

/* What each message of an answer begins with. */
struct unwind_told_head {
	uint32_t kind; /* enum unwind_told */
	int32_t error;
	uint32_t n;
	uint32_t pad;
};

struct unwind_told_area {
	uint64_t start, end;
	uint64_t bias; /* what is added to addresses as linked */
	uint64_t dev, ino; /* as in maps; ino 0: code of no file, dev 1: which the process has made */
	uint64_t stamp; /* changes with the file */
	uint32_t none; /* enum trace_native_stop; 0: the file may have rules */
	uint32_t pad;
};

struct unwind_told_file {
	uint64_t base; /* of its rows */
	uint32_t rows, rules; /* so many follow, rules first */
	char name[UNWIND_FILE_NAME]; /* the last part of its path */
};

/* Serves until the owner closes the socket. Returns the exit status. */
int unwind_reader_serve(int channel, unwind_readable_fn *readable);
/* Other users' processes, and files closed to others, and deleted ones. */
#define UNWIND_READER_CAPABILITIES                                            \
	(UINT64_C(1) << CAP_SYS_PTRACE | UINT64_C(1) << CAP_DAC_READ_SEARCH | \
	 UINT64_C(1) << CAP_CHECKPOINT_RESTORE)
