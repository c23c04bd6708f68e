// SPDX-License-Identifier: Apache-2.0
/*
 * Environment variables that select a process's devices. A command that runs for milliseconds has ended when
 * its launches are processed; "gpusonde trace" stops it while it maps its libraries and stores the few
 * relevant variables then.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cursor.h"
#include "base/fd.h"
#include "pipeline/private.h"
#include "proc/proc.h"

enum { KEPT = 64, KEPT_BYTES = 8192, READ_BYTES = 1 << 18 };

struct kept_environments {
	struct {
		uint32_t tgid; /* 0: none */
		bool contained;
		uint32_t n;
		char text[KEPT_BYTES];
	} of[KEPT];
	uint32_t next;
};

static int read_environment(uint32_t tgid, char *buf, size_t size, size_t *ret_n)
{
	_cleanup_close_ int fd = -1;
	char path[48];
	size_t n = 0;

	snprintf(path, sizeof(path), "/proc/%u/environ", tgid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (n < size) {
		ssize_t got = read(fd, buf + n, size - n);

		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		n += (size_t)got;
	}
	/* A process that has ended but has not been waited for has neither environment nor executable. */
	snprintf(path, sizeof(path), "/proc/%u/exe", tgid);
	if (n == 0 && readlink(path, (char[1]){ 0 }, 1) < 0)
		return -ESRCH;
	*ret_n = n;
	return 0;
}

/* -ESRCH: the process is gone. */
static int is_contained(uint32_t tgid, bool *ret_contained)
{
	struct proc_identity identity;
	int r = proc_identify("/proc", tgid, &identity);

	if (r < 0)
		return r;
	*ret_contained =
		identity.cgroup.kind == PROC_CGROUP_CONTAINER || identity.cgroup.kind == PROC_CGROUP_POD;
	return 0;
}

static uint32_t kept_find(const struct kept_environments *kept, uint32_t tgid)
{
	uint32_t i = 0;

	while (i < KEPT && kept->of[i].tgid != tgid)
		i++;
	return i;
}

int pipeline_environment(uint32_t tgid, char *buf, size_t size, size_t *ret_n, void *userdata)
{
	const struct kept_environments *kept = ((struct pipeline *)userdata)->kept;
	int r = read_environment(tgid, buf, size, ret_n);
	uint32_t i;

	if (r == 0 || !kept)
		return r;
	i = kept_find(kept, tgid);
	if (i == KEPT || kept->of[i].n > size)
		return r;
	memcpy(buf, kept->of[i].text, kept->of[i].n);
	*ret_n = kept->of[i].n;
	return 0;
}

int pipeline_contained(const struct pipeline *pipeline, uint32_t tgid, bool *ret_contained)
{
	int r = is_contained(tgid, ret_contained);
	uint32_t i;

	if (r == 0 || !pipeline->kept)
		return r;
	i = kept_find(pipeline->kept, tgid);
	if (i == KEPT)
		return r;
	*ret_contained = pipeline->kept->of[i].contained;
	return 0;
}

/*
 * Copies CUDA_VISIBLE_DEVICES, CUDA_DEVICE_ORDER and NVIDIA_VISIBLE_DEVICES. False: they do not fit, and none
 * is copied.
 */
static bool pick(const char *text, size_t n, char to[static KEPT_BYTES], uint32_t *ret_n)
{
	struct cursor all = cursor_over(text, n), variable;
	uint32_t used = 0;

	while (cursor_until(&all, 0, &variable) == 0) {
		struct cursor rest = variable;
		size_t bytes = cursor_left(&variable);

		if (!cursor_literal(&rest, "CUDA_") && !cursor_literal(&rest, "NVIDIA_VISIBLE_DEVICES="))
			continue;
		if (bytes >= KEPT_BYTES - used)
			return false;
		memcpy(to + used, variable.p, bytes);
		used += (uint32_t)bytes;
		to[used++] = 0;
	}
	*ret_n = used;
	return true;
}

void pipeline_keep_environment(struct pipeline *pipeline, pid_t pid)
{
	_cleanup_free_ char *text = malloc(READ_BYTES);
	bool contained;
	uint32_t i;
	size_t n;

	if (!pipeline->kept)
		pipeline->kept = calloc(1, sizeof(*pipeline->kept));
	if (!pipeline->kept || !text || read_environment((uint32_t)pid, text, READ_BYTES, &n) < 0 ||
	    is_contained((uint32_t)pid, &contained) < 0)
		return;
	i = kept_find(pipeline->kept, (uint32_t)pid);
	if (i == KEPT)
		i = pipeline->kept->next++ % KEPT;
	pipeline->kept->of[i].tgid = (uint32_t)pid;
	pipeline->kept->of[i].contained = contained;
	if (n == READ_BYTES || !pick(text, n, pipeline->kept->of[i].text, &pipeline->kept->of[i].n))
		pipeline->kept->of[i].tgid = 0;
}
