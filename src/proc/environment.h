// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Copies the variables of the process's initial environment that select its devices: CUDA_* and
 * NVIDIA_VISIBLE_DEVICES, each as NAME=VALUE with a NUL. It lies in the process's memory, so reading it may
 * wait for as long as the process likes. -ESRCH: it has ended; -E2BIG: they do not fit, or are more than
 * 256 KiB.
 */
int proc_environment(const char *root, uint32_t pid, char *buf, size_t size, size_t *ret_n);
