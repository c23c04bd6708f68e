// SPDX-License-Identifier: Apache-2.0
/*
 * Stands in for gpusonde-nvml in tests of the agent's half: where the agent names the library, the test says
 * how to behave.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/macro.h"
#include "nvml/library.h"
#include "nvml/shared.h"

static struct nvml_shared *shared;

static void say(const char *bytes)
{
	if (write(4, bytes, strlen(bytes)) < 0)
		_exit(1);
}

static void hang(void)
{
	for (;;)
		pause();
}

static void fill(uint32_t entities)
{
	struct reading *reading = &shared->reading;

	reading->entities_n = entities;
	reading->attach = ++shared->attach;
	reading->cuda_version = (uint32_t)getppid();
	for (uint32_t i = 0; i < entities && i < READING_ENTITIES_MAX; i++) {
		snprintf(reading->entities[i].uuid, sizeof(reading->entities[i].uuid), "GPU-%u", i);
		reading->entities[i].parent = READING_NONE;
	}
	/* What survives: the test looks for it in the next child's first reading. */
	snprintf(reading->driver_version, sizeof(reading->driver_version), "%.16s", shared->states[0].uuid);
	snprintf(shared->states[0].uuid, sizeof(shared->states[0].uuid), "kept");
}

/*
 * One answer in the given manner; the first reading of each child is "good" where the manner is "then-...".
 */
static void answer(const char *how, unsigned nth)
{
	if (strncmp(how, "then-", 5) == 0)
		how = nth == 1 ? "good" : how + 5;
	atomic_store(&shared->function, NVML_FUNCTION_nvmlDeviceGetPowerUsage);
	if (STRV_EQ(how, "hang-since-ever")) {
		atomic_store(&shared->since_ns, INT64_MIN);
		hang();
	}
	if (STRV_EQ(how, "hang"))
		hang();
	if (STRV_EQ(how, "crash")) {
		signal(SIGSEGV, SIG_DFL); /* sanitizers make an exit of it */
		raise(SIGSEGV);
	}
	if (STRV_EQ(how, "exit"))
		_exit(7);
	if (STRV_EQ(how, "foreign"))
		_exit(NVML_CHILD_FOREIGN);
	if (STRV_EQ(how, "close")) {
		close(4);
		hang();
	}
	if (STRV_EQ(how, "scribble"))
		memset(&shared->reading, 0xff, sizeof(shared->reading));
	else if (STRV_EQ(how, "many"))
		fill(READING_ENTITIES_MAX + 1);
	else
		fill(1);
	atomic_store(&shared->function, NVML_FUNCTION_NONE);
	if (STRV_EQ(how, "garbage"))
		say("no");
	else if (STRV_EQ(how, "twice"))
		say("..");
	else
		say(".");
	if (STRV_EQ(how, "dies-idle"))
		_exit(0);
}

int main(int argc, char **argv)
{
	const char *how = argc == 5 ? argv[4] : "";
	char command;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, 3, 0);
	if (shared == MAP_FAILED)
		return 1;
	if (STRV_EQ(how, "shrink") && ftruncate(3, 0) == 0)
		return 0; /* the seals should have refused it: this ends the test's wait for a good reading */
	if (STRV_EQ(how, "unasked"))
		say(".");
	for (unsigned nth = 1; read(4, &command, 1) == 1; nth++)
		answer(how, nth);
	if (STRV_EQ(how, "stays"))
		hang(); /* asked to end, it does not */
	return 0;
}
