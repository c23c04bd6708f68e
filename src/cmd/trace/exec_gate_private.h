// SPDX-License-Identifier: Apache-2.0
/* The protocol between holder and gpusonde, over a SOCK_SEQPACKET pair. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cmd/trace/exec_gate.h"

/* From the holder, with the file as SCM_RIGHTS. The answer is its number. */
struct exec_gate_report {
	pid_t pid;
	uint32_t number; /* 1, 2, ... */
	bool execution; /* as in struct exec_gate_mapping */
	uint64_t address, length, offset;
	uint32_t missed; /* reports so far that were not answered in time */
	char path[PATH_MAX];
};

/* In the command's process: installs the filter. Returns the listener's descriptor, or -errno. */
int exec_gate_filter(void);

/* The holder's loop; returns when no process with the filter is left. @channel: to gpusonde. */
void exec_gate_serve(int listener, int channel);
