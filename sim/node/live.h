// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Where the simulated CUDA and the simulated NVML meet: each process that uses the simulated libcuda keeps a
 * small mapped file, named by its PID, in the folder that GPUSONDE_SIM_CUDA_DIR names; the simulated
 * libnvidia-ml reads them. Only its process writes a file; numbers are single words, so that no reader
 * sees half of one. The file of a process that is gone says so by its PID and start time.
 */
enum {
	LIVE_MAGIC = 0x4c505347,
	LIVE_DEVICES = 16,
	LIVE_PERIODS = 64, /* seconds of which the work is remembered, and foreseen */
	LIVE_MAX = 1024, /* processes; more are not seen */
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
	uint64_t busy_ns; /* work given to it so far, whatever of it is still to be done included */
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

/* What a context takes of a GPU's memory before anything is allocated. */
#define LIVE_CONTEXT_BYTES (UINT64_C(256) << 20)

/* When process @pid began, in the kernel's ticks; 0: there is none. */
uint64_t live_start_ticks(uint32_t pid);

/* Makes and maps our own file. NULL: no folder is named, or it cannot be written. */
struct live_file *live_open(void);
void live_close(struct live_file *file);

/*
 * Reads all files of the folder, at most @room of them: the processes that are alive. Called at most every so
 * often by the caller, who keeps the result.
 */
uint32_t live_read(struct live_file *ret_files, uint32_t room);

/*
 * How busy a device was in one second, in percent; 0 for one that is not remembered. @periods has
 * LIVE_PERIODS.
 */
uint32_t live_percent(const struct live_period *periods, uint64_t second);
