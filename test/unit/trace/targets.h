// SPDX-License-Identifier: Apache-2.0
/*
 * What the tests of targets share: a log of what they were told, a folder of their own, a /proc that they
 * write themselves.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "trace/target_private.h"

enum told_what { TOLD_FILE, TOLD_FILE_GONE, TOLD_PROCESS, TOLD_EXEC, TOLD_GONE, TOLD };

struct fixture {
	char dir[64];
	sd_event *event;
	struct targets *targets;
	int answer; /* to the question whether a file is a target */
	int64_t reads_ns; /* so long it takes to answer */
	const char *writes_to; /* while it is read, somebody else does */
	struct {
		enum told_what what;
		pid_t pid;
		uint64_t ino;
	} told[16384];
	size_t told_n;
	pid_t mapping_of; /* by the newest record */
};

int fixture_setup(void **state);
int fixture_teardown(void **state);
/* @root NULL: the real /proc. */
void fixture_start(struct fixture *fixture, const char *root, unsigned roles, pid_t pid);
/* How often it was told; @pid, @ino 0: any. */
size_t told(const struct fixture *fixture, enum told_what what, pid_t pid, uint64_t ino);
/* Runs the loop until that has been told so often, or for half a minute, and then fails. */
void until_told(struct fixture *fixture, enum told_what what, pid_t pid, size_t times);
void until_scans(struct fixture *fixture, uint64_t scans);

/* In the fixture's folder; returns its inode. */
uint64_t make_file(struct fixture *fixture, const char *name);
/*
 * A process of the /proc that is the fixture's folder: it maps @name, which is one of its files, NULL for
 * none.
 */
void make_process(struct fixture *fixture, pid_t pid, const char *name, uint64_t start_ticks);
