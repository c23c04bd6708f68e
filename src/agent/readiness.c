// SPDX-License-Identifier: Apache-2.0
#include "agent/readiness.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/macro.h"

enum {
	LOOP_GRACE_S = 30, /* the same as the watchdog's delay in gpusonde.service */
};

static void closedirp(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

/* PCI class 0x03xxxx is a display controller, 0x12xxxx a processing accelerator; 0x10de is NVIDIA. */
static bool is_gpu(const char *root, const char *name)
{
	char path[512], vendor[16], class[16];

	snprintf(path, sizeof(path), "%s/%s/vendor", root, name);
	if (read_file(path, vendor, sizeof(vendor), NULL) < 0 || strncmp(vendor, "0x10de", 6) != 0)
		return false;
	snprintf(path, sizeof(path), "%s/%s/class", root, name);
	if (read_file(path, class, sizeof(class), NULL) < 0)
		return false;
	return strncmp(class, "0x03", 4) == 0 || strncmp(class, "0x12", 4) == 0;
}

int pci_gpus(const char *root)
{
	_cleanup_(closedirp) DIR *dir = opendir(root);
	const struct dirent *entry;
	int n = 0;

	if (!dir)
		return -errno;
	while ((entry = readdir(dir)))
		n += entry->d_name[0] != '.' && is_gpu(root, entry->d_name);
	return n;
}

static int64_t grace_ns(const struct snapshot *s)
{
	return LOOP_GRACE_S * NSEC_PER_SEC + 3 * s->period_ns;
}

bool liveness(const struct snapshot *s, int64_t now_boot_ns)
{
	return now_boot_ns - s->boot_ns <= grace_ns(s);
}

bool readiness(const struct snapshot *s, int64_t now_boot_ns, char *why, size_t size)
{
	const struct source *driver = snapshot_driver(s);
	char unidentified[64] = "";
	unsigned gpus = 0;

	if (!liveness(s, now_boot_ns)) {
		snprintf(why, size, "the agent's main loop has stopped; restart the agent and report this");
		return false;
	}
	if (!s->fresh) {
		snprintf(why, size, "%s", s->not_fresh_reason);
		return false;
	}
	if (s->trace_stale) {
		snprintf(why, size,
			 "tracing has given nothing for %lld s: its thread hangs in the kernel, or the "
			 "machine is overloaded; restart the agent if this lasts",
			 (long long)((now_boot_ns - s->trace->boot_ns) / (int64_t)NSEC_PER_SEC));
		return false;
	}
	if (driver->state != READING_OK) {
		snprintf(why, size, "no GPU on this node%s%s", driver->error[0] ? ": " : "", driver->error);
		return true;
	}
	for (uint32_t i = 0; i < s->entities_n; i++)
		gpus += s->entities[i].id.parent == READING_NONE && s->entities[i].present;
	if (s->gpus_unidentified > 0)
		snprintf(unidentified, sizeof(unidentified), " and %u that the driver does not identify",
			 s->gpus_unidentified);
	snprintf(why, size, "%u GPU%s%s, %u process%s on them%s", gpus, gpus == 1 ? "" : "s", unidentified,
		 s->processes_n, s->processes_n == 1 ? "" : "es", s->simulated ? ", all simulated" : "");
	return true;
}
