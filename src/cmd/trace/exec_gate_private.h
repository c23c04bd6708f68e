// SPDX-License-Identifier: Apache-2.0
/* What holder and gpusonde say to each other over a SOCK_SEQPACKET pair. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cmd/trace/exec_gate.h"

/* Holder to us, with the file as SCM_RIGHTS. Our answer is its number. */
struct exec_gate_report {
	pid_t pid;
	uint32_t number; /* 1, 2, ... */
	bool execution; /* as in struct exec_gate_mapping */
	uint64_t address, length, offset;
	uint32_t missed; /* reports so far that we did not answer in time: their files were mapped unseen */
	char path[PATH_MAX];
};

/* The command's side: installs the filter. The listener's descriptor, or -errno. */
int exec_gate_filter(void);

/* The holder's loop; ends when nobody is left under the filter. @channel: to us. */
void exec_gate_serve(int listener, int channel);
int send_with_fd(int channel, const void *data, size_t n, int fd);
/* *ret_fd is -1 when none came. Bytes received, or -errno; 0: the other side has gone. */
ssize_t receive_with_fd(int channel, void *data, size_t n, int *ret_fd);
