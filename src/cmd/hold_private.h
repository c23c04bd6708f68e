// SPDX-License-Identifier: Apache-2.0
/* What holder and gpusonde say to each other over a SOCK_SEQPACKET pair. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Holder to us, with the file as SCM_RIGHTS, or without one: the process is about to end, or to become another program. Our answer is its number. */
struct hold_report {
	pid_t pid;
	uint32_t number; /* 1, 2, ... */
	uint32_t missed; /* reports so far that we did not answer in time: their files were mapped unseen */
	char path[PATH_MAX];
};

/* The command's side: installs the filter. @ends: ends are reported, too, where the kernel can do that without harm. The listener's descriptor, or -errno. */
int hold_filter(bool ends);

/* The holder's loop; ends when nobody is left under the filter. @channel: to us. @ends: report execve without a file before the file. */
void hold_serve(int listener, int channel, bool ends);
int send_with_fd(int channel, const void *data, size_t n, int fd);
/* *ret_fd is -1 when none came. Bytes received, or -errno; 0: the other side has gone. */
ssize_t receive_with_fd(int channel, void *data, size_t n, int *ret_fd);
