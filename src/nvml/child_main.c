// SPDX-License-Identifier: Apache-2.0
/*
 * gpusonde-nvml: the process that holds the driver's library. Started by the agent only.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "nvml/child.h"

/*
 * Makes the child exit when the agent does, for whatever reason; it ignores signals to the agent's process
 * group.
 */
static int live_and_die_with(pid_t agent)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return -1;
	if (getppid() != agent)
		return -1; /* it died before */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_NAME, "gpusonde-nvml");
	return 0;
}

static struct nvml_shared *map(int fd, int *ret_status)
{
	struct nvml_shared *shared;
	struct stat st;

	*ret_status = NVML_CHILD_FOREIGN;
	if (fstat(fd, &st) < 0 || (size_t)st.st_size != sizeof(*shared))
		return NULL;
	*ret_status = NVML_CHILD_SYSTEM;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (shared == MAP_FAILED)
		return NULL;
	*ret_status = NVML_CHILD_FOREIGN;
	if (shared->magic != NVML_SHARED_MAGIC || shared->version != NVML_SHARED_VERSION ||
	    shared->size != sizeof(*shared))
		return NULL;
	return shared;
}

int main(int argc, char **argv)
{
	struct nvml_shared *shared;
	int status;

	if (argc != 5) {
		fprintf(stderr, "gpusonde-nvml is started by gpusonde: run gpusonde agent instead\n");
		return NVML_CHILD_USAGE;
	}
	if (live_and_die_with((pid_t)atoi(argv[1])) < 0)
		return NVML_CHILD_SYSTEM;
	shared = map(atoi(argv[2]), &status);
	if (!shared)
		return status;
	return child_serve(shared, atoi(argv[3]), argv[4][0] ? argv[4] : NULL);
}
