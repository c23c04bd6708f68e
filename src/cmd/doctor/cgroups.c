// SPDX-License-Identifier: Apache-2.0
/*
 * doctor's check of device cgroups: containers and services whose processes use a GPU, and which may not open
 * NVIDIA's devices any more. That is what systemctl daemon-reload does to containers whose devices were
 * allowed behind systemd's back; running programs go on, new ones fail.
 */
#include "cmd/doctor/doctor.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "cmd/cgroup/cgroup.h"
#include "model/snapshot.h"

#define SCAN_NS (2 * NSEC_PER_SEC)
enum { CGROUPS_MAX = 64, FILES_MAX = 1024 /* descriptors of one process */ };

struct cgroups {
	struct devcgroup_host host;
	struct drivers drivers;
	struct {
		uint64_t dev[HIERARCHIES], ino[HIERARCHIES];
	} seen[CGROUPS_MAX];
	unsigned n, denied, unknown, dropped;
	unsigned unshown; /* only version 1 could hide that they are denied */
	bool forbidden;
	int64_t end_ns;
	uint32_t pid; /* of the first that is denied */
	char unit[256], path[256], why[300];
};

/* False: this pair of cgroups has been looked at. */
static bool is_new(struct cgroups *c, const struct place *place)
{
	uint64_t dev[HIERARCHIES] = { 0 }, ino[HIERARCHIES] = { 0 };

	for (int h = 0; h < HIERARCHIES; h++) {
		struct stat st;

		if (place->at[h].fd >= 0 && fstat(place->at[h].fd, &st) == 0) {
			dev[h] = st.st_dev;
			ino[h] = st.st_ino;
		}
	}
	for (unsigned i = 0; i < c->n; i++)
		if (memcmp(c->seen[i].dev, dev, sizeof(dev)) == 0 &&
		    memcmp(c->seen[i].ino, ino, sizeof(ino)) == 0)
			return false;
	if (c->n == CGROUPS_MAX) {
		c->dropped++;
		return false;
	}
	memcpy(c->seen[c->n].dev, dev, sizeof(dev));
	memcpy(c->seen[c->n].ino, ino, sizeof(ino));
	c->n++;
	return true;
}

static void judge_place(struct cgroups *c, uint32_t pid, const struct place *place)
{
	_cleanup_(policy_freep) struct policy *policy = NULL;
	_cleanup_free_ struct nodes *nodes = calloc(1, sizeof(*nodes));
	struct devcgroup_why why;
	struct access access;
	int r = nodes ? policy_read(place, &policy, &why) : -ENOMEM;

	if (r < 0) {
		c->forbidden |= r == -EPERM || r == -EACCES;
		c->unknown++;
		return;
	}
	nodes_read(&c->host, &c->drivers, pid, nodes);
	if (!policy_withholds(policy, nodes, &access))
		return;
	if (access.state == ACCESS_UNKNOWN) {
		if (access.unshown)
			c->unshown++;
		else
			c->unknown++;
		return;
	}
	if (c->denied++ > 0)
		return;
	c->pid = pid;
	snprintf(c->unit, sizeof(c->unit), "%s", place->unit);
	snprintf(c->path, sizeof(c->path), "%.*s", (int)sizeof(c->path) - 1, cgroup_name(place));
	snprintf(c->why, sizeof(c->why), "%.*s", (int)sizeof(c->why) - 1, access.why);
}

static void cgroup_of_process(struct cgroups *c, uint32_t pid)
{
	struct place place = PLACE_NONE;
	struct devcgroup_why why;
	char target[16];

	snprintf(target, sizeof(target), "%u", pid);
	if (place_find(&c->host, target, &place, &why) < 0)
		return; /* it has ended, or lies in a cgroup that is not seen from here */
	if (is_new(c, &place))
		judge_place(c, pid, &place);
	place_done(&place);
}

static bool has_device_open(const char *pid)
{
	char path[300], to[64];
	bool found = false;
	struct dirent *e;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%s/fd", pid);
	dir = opendir(path);
	for (unsigned i = 0; dir && !found && i < FILES_MAX && (e = readdir(dir)); i++) {
		ssize_t n = readlinkat(dirfd(dir), e->d_name, to, sizeof(to) - 1);

		to[MAX(n, 0)] = 0;
		found = strncmp(to, "/dev/nvidia", strlen("/dev/nvidia")) == 0;
	}
	if (dir)
		closedir(dir);
	return found;
}

/* Those that NVML knows, and those that have a device open. */
static void cgroups_in_use(struct cgroups *c, const struct doctor *d)
{
	DIR *proc = opendir("/proc");
	struct dirent *e;
	uint64_t pid;

	for (uint32_t i = 0; d->snapshot && i < d->snapshot->processes_n; i++)
		cgroup_of_process(c, d->snapshot->processes[i].id.pid);
	while (proc && clock_boot_ns() < c->end_ns && (e = readdir(proc)))
		if (parse_u64(e->d_name, &pid) == 0 && has_device_open(e->d_name))
			cgroup_of_process(c, (uint32_t)pid);
	if (proc)
		closedir(proc);
}

static void report_denied(const struct cgroups *c, struct finding *f)
{
	char path[sizeof(c->path)], why[sizeof(c->why)], more[40] = "";

	snprintf(path, sizeof(path), "%s", c->path);
	snprintf(why, sizeof(why), "%s", c->why);
	utf8_sanitize(path);
	utf8_sanitize(why);
	if (c->denied > 1)
		snprintf(more, sizeof(more), " (and %u more)", c->denied - 1);
	found(f, VERDICT_WARNING,
	      "PID %u uses a GPU, but new programs in its cgroup %s%s cannot (\"Failed to initialize NVML: "
	      "Unknown Error\"): %s; this is what systemctl daemon-reload does to containers",
	      c->pid, path, more, why);
	remedy(f,
	       "gpusonde cgroup allow %u now; then --systemd with it, so that it lasts; or start the "
	       "container again; docs/cgroups.md",
	       c->pid);
}

static void check_cgroups(const struct doctor *d, struct finding *f)
{
	_cleanup_free_ struct cgroups *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return;
	c->host = cgroup_host(&d->invocation->options);
	c->end_ns = clock_boot_ns() + SCAN_NS;
	r = drivers_read(&c->host, &c->drivers);
	if (r < 0) {
		found(f, VERDICT_NOTE, "%s: %s", c->host.devices,
		      r == -ENODEV ? "no device of NVIDIA, so there is nothing to look at" : strerror(-r));
		return;
	}
	cgroups_in_use(c, d);
	if (c->denied > 0) {
		report_denied(c, f);
	} else if (c->forbidden) {
		found(f, VERDICT_NOTE, "who may open NVIDIA's devices is not shown to this user");
		remedy(f, "sudo gpusonde doctor looks at it");
	} else if (c->unknown > 0 || c->dropped > 0) {
		found(f, VERDICT_NOTE,
		      "of %u cgroups with programs that use a GPU, %u cannot be judged, and %u "
		      "more were left out",
		      c->n, c->unknown, c->dropped);
		remedy(f, "gpusonde cgroup check PID says why");
	} else if (c->n == 0) {
		found(f, VERDICT_OK, "no program uses a GPU");
	} else if (c->unshown > 0) {
		found(f, VERDICT_OK,
		      "nothing is known to deny NVIDIA's devices where programs use a GPU (%u cgroups); "
		      "of %u of them version 1's list does not show what it denies as an exception",
		      c->n, c->unshown);
	} else {
		found(f, VERDICT_OK,
		      "new programs can open NVIDIA's devices wherever programs use a GPU (%u cgroups)",
		      c->n);
	}
}

const struct check cgroup_checks[] = {
	{ "device-cgroups", check_cgroups },
	{ 0 },
};
