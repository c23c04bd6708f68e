// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>
#include <stdint.h>

/* How the variables that select devices are, compared with those that the process was started with. */
enum proc_environment {
	PROC_ENVIRONMENT_KEPT,
	PROC_ENVIRONMENT_CHANGED,
	PROC_ENVIRONMENT_UNKNOWN, /* what they are now could not be read: those that it was started with */
};

/*
 * Copies the variables of a process that select its devices, each as NAME=VALUE with a NUL:
 * NVIDIA_VISIBLE_DEVICES as it was started with, enum trace_variable as they are now. They lie in the
 * process's memory, so reading them may wait for as long as the process likes. Returns enum proc_environment;
 * -ESRCH: it has ended; -E2BIG: they do not fit, or the environment that it was started with is larger than
 * 256 KiB.
 */
int proc_environment(const char *root, uint32_t pid, char *buf, size_t size, size_t *ret_n);
