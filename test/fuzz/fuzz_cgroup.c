// SPDX-License-Identifier: Apache-2.0
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "proc/proc.h"

/*
 * Something recognised has a name, nothing recognised has none; both are UTF-8 and end within their arrays.
 */
int fuzz_one(const uint8_t *data, size_t size)
{
	struct proc_cgroup cgroup;

	memset(&cgroup, 0xff, sizeof(cgroup));
	proc_cgroup_parse((const char *)data, size, &cgroup);
	if (cgroup.kind > PROC_CGROUP_UNIT || !memchr(cgroup.id, 0, sizeof(cgroup.id)) ||
	    !memchr(cgroup.pod_uid, 0, sizeof(cgroup.pod_uid)))
		abort();
	if ((cgroup.kind == PROC_CGROUP_NONE) != (cgroup.id[0] == '\0') ||
	    !utf8_valid(cgroup.id, strlen(cgroup.id)))
		abort();
	if (cgroup.job.manager >= PROC_JOB_MANAGERS || !memchr(cgroup.job.id, 0, sizeof(cgroup.job.id)) ||
	    !memchr(cgroup.job.step, 0, sizeof(cgroup.job.step)) ||
	    (cgroup.job.manager == PROC_JOB_NONE) != (cgroup.job.id[0] == '\0') ||
	    !utf8_valid(cgroup.job.id, strlen(cgroup.job.id)) ||
	    !utf8_valid(cgroup.job.step, strlen(cgroup.job.step)))
		abort();
	if (cgroup.kind == PROC_CGROUP_POD && strcmp(cgroup.id, cgroup.pod_uid) != 0)
		abort();
	return 0;
}
