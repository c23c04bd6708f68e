// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * The interface between the simulated CUDA and the simulated NVML: each process that uses the simulated
 * libcuda keeps a small mapped file, named by its PID, in the folder that GPUSONDE_SIM_CUDA_DIR names; the
 * simulated libnvidia-ml reads them. Only its process writes a file; numbers are single words, so that
 * readers see no partial values. Its PID and start time show whether its process still runs.
 */
enum {
	LIVE_MAGIC = 0x4c505347,
	LIVE_DEVICES = 16,
	LIVE_PERIODS = 64, /* seconds, past and future, for which work is stored */
	LIVE_MAX = 1024, /* processes; others are ignored */
};

struct live_period {
	uint64_t second; /* since boot */
	uint64_t busy_ns; /* in that second */
};

struct live_device {
	int32_t gpu, instance; /* in the scenario; instance negative: the whole GPU */
	uint32_t contexts; /* 0: the process is not on this device */
	uint32_t reserved;
	uint64_t live_bytes;
	uint64_t busy_ns; /* all work so far, including work that has not ended yet */
	uint64_t began_ms; /* since boot: its first context */
	struct live_period periods[LIVE_PERIODS]; /* second s at s % LIVE_PERIODS */
};

struct live_file {
	uint32_t magic, pid;
	uint64_t start_ticks;
	uint32_t device_count;
	uint32_t reserved;
	struct live_device devices[LIVE_DEVICES];
};

/* GPU memory that a context uses before any allocation. */
#define LIVE_CONTEXT_BYTES (UINT64_C(256) << 20)

/* Start time of process @pid in the kernel's ticks; 0: it does not exist. */
uint64_t live_start_ticks(uint32_t pid);

/* Creates and maps this process's file. NULL: no folder is set, or it cannot be written. */
struct live_file *live_open(void);
void live_close(struct live_file *file);

/*
 * Reads the files of running processes in the folder, at most @capacity. Reads all of them each time, so the
 * caller limits how often, and stores the result.
 */
uint32_t live_read(struct live_file *ret_files, uint32_t capacity);

/*
 * How busy a device was in one second, in percent; 0 for one that is not stored. @periods has
 * LIVE_PERIODS.
 */
uint32_t live_percent(const struct live_period *periods, uint64_t second);
