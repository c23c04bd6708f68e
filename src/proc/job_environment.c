// SPDX-License-Identifier: Apache-2.0
#include "proc/job.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cursor.h"
#include "base/fd.h"
#include "base/macro.h"
#include "proc/job_ad.h"
#include "proc/mapped.h"

enum {
	READ_BYTES = 1 << 18, /* of the environment; what is behind is not found */
	AD_BYTES = 1 << 18, /* a job's ad has 5 to 20 KiB */
};

static const char *const variables[] = {
	"SLURM_JOB_ID",
	"SLURM_JOBID",
	"SLURM_JOB_NAME",
	"SLURM_JOB_USER",
	"SLURM_STEP_ID",
	"SLURM_STEPID",
	"SLURM_JOB_GPUS",
	"SLURM_STEP_GPUS",
	"SLURM_PROCID",
	"SLURM_LOCALID",
	"SLURM_NTASKS",
	"PBS_JOBID",
	"PBS_JOBNAME",
	"PBS_O_LOGNAME",
	"LSB_JOBID",
	"LSB_JOBINDEX",
	"LSB_JOBNAME",
	"LSFUSER",
	"LOGNAME",
	"RANK",
	"LOCAL_RANK",
	"WORLD_SIZE",
	"OMPI_COMM_WORLD_RANK",
	"OMPI_COMM_WORLD_LOCAL_RANK",
	"OMPI_COMM_WORLD_SIZE",
	"MV2_COMM_WORLD_RANK",
	"MV2_COMM_WORLD_LOCAL_RANK",
	"MV2_COMM_WORLD_SIZE",
	"PMIX_RANK",
	"PMIX_LOCAL_RANK",
	"PMIX_SIZE",
	"PMI_RANK",
	"MPI_LOCALRANKID",
	"PMI_SIZE",
};

struct found {
	char *buf;
	size_t size, n;
};

/* What does not fit is left out: variables are put in the order of their use. */
static void put_variable(struct found *found, const char *prefix, struct cursor name, struct cursor value)
{
	size_t prefix_n = strlen(prefix), name_n = cursor_left(&name);
	size_t value_n = MIN(cursor_left(&value), (size_t)PROC_JOB_VALUE_MAX);
	char *at = found->buf + found->n;

	if (prefix_n + name_n + value_n + 2 > found->size - found->n)
		return;
	memcpy(at, prefix, prefix_n);
	memcpy(at + prefix_n, name.p, name_n);
	at[prefix_n + name_n] = '=';
	memcpy(at + prefix_n + name_n + 1, value.p, value_n);
	at[prefix_n + name_n + 1 + value_n] = '\0';
	found->n += prefix_n + name_n + value_n + 2;
}

static bool is_variable(struct cursor name, const char *text)
{
	return cursor_equals(&name, text);
}

static bool is_wanted(struct cursor name, const char *more)
{
	struct cursor rest = cursor_over(more, strlen(more)), one;

	for (size_t i = 0; i < ARRAY_SIZE(variables); i++)
		if (is_variable(name, variables[i]))
			return true;
	while (!cursor_eof(&rest)) {
		if (cursor_until(&rest, ',', &one) < 0) {
			one = rest;
			rest.p = rest.end;
		}
		if (cursor_left(&one) == cursor_left(&name) && !cursor_eof(&one) &&
		    memcmp(one.p, name.p, cursor_left(&one)) == 0)
			return true;
	}
	return false;
}

/* ---- HTCondor's file ---- */

static void put_attribute(struct cursor name, const char *value, void *userdata)
{
	put_variable(userdata, "condor:", name, cursor_over(value, strlen(value)));
}

/* The whole file, or its first part. */
static ssize_t read_some(int fd, char *buf, size_t size)
{
	size_t n = 0;

	while (n < size) {
		ssize_t got = read(fd, buf + n, size - n);

		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		n += (size_t)got;
	}
	return (ssize_t)n;
}

static void put_ad(const char *root, uint32_t pid, const char *path, struct found *found)
{
	_cleanup_free_ char *text = malloc(AD_BYTES);
	_cleanup_close_ int fd = -1;
	struct stat st;
	ssize_t n;

	if (!text || proc_file_open(root, (pid_t)pid, path, &fd, &st) < 0 || !S_ISREG(st.st_mode))
		return;
	n = read_some(fd, text, AD_BYTES);
	if (n > 0)
		job_ad_read(text, (size_t)n, put_attribute, found);
}

static bool set_path(char path[static PATH_MAX], struct cursor value, const char *file)
{
	size_t n = cursor_left(&value), file_n = strlen(file);

	if (n == 0 || n + file_n >= PATH_MAX)
		return false;
	memcpy(path, value.p, n);
	memcpy(path + n, file, file_n + 1);
	return true;
}

/* ---- the environment ---- */

/* All of it, or its first part. */
static int read_initial(const char *root, uint32_t pid, char *buf, size_t size, size_t *ret_n)
{
	_cleanup_close_ int fd = -1;
	char path[80];
	ssize_t n;

	snprintf(path, sizeof(path), "%s/%u/environ", root, pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : errno == EACCES ? -EPERM : -errno;
	n = read_some(fd, buf, size);
	if (n < 0)
		return (int)n;
	*ret_n = (size_t)n;
	return 0;
}

int proc_job_environment(const char *root, uint32_t pid, const char *more, char *buf, size_t size,
			 size_t *ret_n)
{
	_cleanup_free_ char *text = malloc(READ_BYTES);
	struct found found = { .buf = buf, .size = size };
	char ad[PATH_MAX] = "";
	struct cursor all, one, name;
	size_t n = 0;
	int r = text ? read_initial(root, pid, text, READ_BYTES, &n) : -ENOMEM;

	if (r < 0)
		return r;
	all = cursor_over(text, n);
	while (cursor_until(&all, 0, &one) == 0) {
		if (cursor_until(&one, '=', &name) < 0)
			continue;
		if (is_variable(name, "_CONDOR_JOB_AD"))
			set_path(ad, one, "");
		else if (is_variable(name, "_CONDOR_SCRATCH_DIR") && !ad[0])
			set_path(ad, one, "/.job.ad");
		else if (is_wanted(name, more))
			put_variable(&found, "", name, one);
	}
	if (ad[0])
		put_ad(root, pid, ad, &found);
	*ret_n = found.n;
	return 0;
}
