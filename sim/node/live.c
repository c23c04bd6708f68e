// SPDX-License-Identifier: Apache-2.0
#include "sim/node/live.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/process_id.h"
#include "base/text.h"

static const char *live_folder(void)
{
	const char *folder = getenv("GPUSONDE_SIM_CUDA_DIR");

	return folder && *folder ? folder : NULL;
}

uint64_t live_start_ticks(uint32_t pid)
{
	struct process_stat stat = { 0 };
	char path[32], text[1024];
	size_t length;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/stat", pid);
	if (read_file(path, text, sizeof(text), &length) == 0)
		(void)process_stat_parse(text, length, &stat);
	return stat.start_ticks;
}

struct live_file *live_open(void)
{
	const char *folder = live_folder();
	_cleanup_close_ int fd = -1;
	struct live_file *file;
	char path[4096];

	if (!folder)
		return NULL;
	snprintf(path, sizeof(path), "%s/%d", folder, (int)getpid());
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 || ftruncate(fd, sizeof(*file)) < 0) {
		fprintf(stderr, "gpusonde-sim: %s cannot be written; is GPUSONDE_SIM_CUDA_DIR a folder?\n",
			path);
		return NULL;
	}
	file = mmap(NULL, sizeof(*file), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (file == MAP_FAILED)
		return NULL;
	file->pid = (uint32_t)getpid();
	file->start_ticks = live_start_ticks(file->pid);
	__atomic_store_n(&file->magic, LIVE_MAGIC, __ATOMIC_RELEASE);
	return file;
}

void live_close(struct live_file *file)
{
	const char *folder = live_folder();
	char path[4096];

	if (!file)
		return;
	if (folder && file->pid == (uint32_t)getpid()) {
		snprintf(path, sizeof(path), "%s/%d", folder, (int)getpid());
		unlink(path);
	}
	munmap(file, sizeof(*file));
}

/* Whether it is complete and its process is running. */
static bool read_one(int folder, const char *name, struct live_file *ret_file)
{
	_cleanup_close_ int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, ret_file, sizeof(*ret_file)) != (ssize_t)sizeof(*ret_file))
		return false;
	return ret_file->magic == LIVE_MAGIC && ret_file->device_count <= LIVE_DEVICES &&
	       ret_file->start_ticks != 0 && live_start_ticks(ret_file->pid) == ret_file->start_ticks;
}

uint32_t live_read(struct live_file *ret_files, uint32_t capacity)
{
	const char *folder = live_folder();
	DIR *dir = folder ? opendir(folder) : NULL;
	struct dirent *entry;
	uint32_t count = 0;
	uint64_t pid;

	if (!dir)
		return 0;
	while (count < capacity && (entry = readdir(dir))) {
		if (parse_u64(entry->d_name, &pid) == 0 &&
		    read_one(dirfd(dir), entry->d_name, &ret_files[count]))
			count++;
	}
	closedir(dir);
	return count;
}

uint32_t live_percent(const struct live_period *periods, uint64_t second)
{
	const struct live_period *period = &periods[second % LIVE_PERIODS];

	if (period->second != second)
		return 0;
	return (uint32_t)MIN(period->busy_ns * 100 / (uint64_t)NSEC_PER_SEC, UINT64_C(100));
}
