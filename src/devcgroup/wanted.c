// SPDX-License-Identifier: Apache-2.0
/*
 * Which devices a place is to be allowed. What it was given is told by the nodes in the /dev of its
 * processes, as far as these cannot have made them: a runtime allows containers to make any node, and by
 * default they have CAP_MKNOD. That a cgroup denies it now does not say that it has always done so. A node
 * proves something if it is the very one of our /dev: NVIDIA's hook mounts that, which a container cannot
 * do, and a container that sees this machine's /dev has it.
 */
#include "devcgroup/devcgroup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cursor.h"

#define OPTION "--devices"
#define ALL "all"
#define UVM "nvidia-uvm"
enum {
	MAJOR_NVIDIA = 195,
	MINOR_MODESET = 254,
	MINOR_CONTROL = 255,
	PROCESSES_MAX = 64, /* of a cgroup that was named, of which so many have their /dev looked at: */
	LOOKED_AT_MAX = 8,
};

bool wanted_has(const struct wanted_devices *wanted, uint32_t major, uint32_t minor)
{
	for (unsigned i = 0; i < wanted->n; i++)
		if (wanted->list[i].major == major &&
		    (wanted->list[i].minor == UINT32_MAX || wanted->list[i].minor == minor))
			return true;
	return false;
}

int wanted_add(struct wanted_devices *wanted, uint32_t major, uint32_t minor)
{
	if (wanted_has(wanted, major, minor))
		return 0;
	if (wanted->n == WANTED_MAX)
		return -E2BIG;
	wanted->list[wanted->n++] = (struct wanted_device){ major, minor };
	return 0;
}

void wanted_all(const struct drivers *drivers, struct wanted_devices *ret_wanted)
{
	uint32_t majors[DRIVERS_MAX];
	unsigned n = drivers_majors(drivers, majors);

	memset(ret_wanted, 0, sizeof(*ret_wanted));
	for (unsigned i = 0; i < n; i++)
		wanted_add(ret_wanted, majors[i], UINT32_MAX);
}

/* Of no GPU: NVIDIA's README, "Creating the device files"; nvidia-uvm-tools is minor 1. */
static int add_control(const struct drivers *drivers, struct wanted_devices *wanted)
{
	int r = 0;

	for (unsigned i = 0; r == 0 && i < drivers->n; i++) {
		uint32_t major = drivers->list[i].major;
		bool uvm = STRV_EQ(drivers->list[i].name, UVM);

		if (!uvm && major != MAJOR_NVIDIA)
			continue;
		r = wanted_add(wanted, major, uvm ? 0 : MINOR_CONTROL);
		if (r == 0)
			r = wanted_add(wanted, major, uvm ? 1 : MINOR_MODESET);
	}
	return r;
}

static int too_many(int r, struct devcgroup_why *why)
{
	if (r == -E2BIG)
		devcgroup_because(
			why,
			"there are more than %d devices, which is all that is allowed one by one: " OPTION
			" " ALL " allows NVIDIA's majors as a whole",
			WANTED_MAX);
	return r;
}

/* ---- named ---- */

/* Names are ours or the driver's, never those that a process's /dev has. */
static const struct node *find_node(const struct nodes *nodes, struct cursor name)
{
	cursor_literal(&name, "/dev/");
	for (unsigned i = 0; i < nodes->n; i++)
		if ((nodes->list[i].here || nodes->list[i].wanted) && nodes->list[i].name[0] &&
		    cursor_equals(&name, nodes->list[i].name))
			return &nodes->list[i];
	return NULL;
}

int wanted_named(const char *text, const struct drivers *drivers, const struct nodes *nodes,
		 struct wanted_devices *ret_wanted, struct devcgroup_why *why)
{
	struct cursor c = cursor_over(text, strlen(text)), word;
	struct wanted_devices wanted = { .n = 0 };
	int r = 0;

	if (STRV_EQ(text, ALL)) {
		wanted_all(drivers, ret_wanted);
		return 0;
	}
	do {
		const struct node *node;

		word = c;
		if (cursor_until(&c, ',', &word) < 0)
			c.p = c.end;
		node = find_node(nodes, word);
		if (!node) {
			devcgroup_because(why,
					  OPTION
					  ": there is no node \"%.*s\" of NVIDIA in /dev: name nodes that "
					  "are there, separated by commas (nvidia0,nvidia1), or \"" ALL "\"",
					  (int)MIN(cursor_left(&word), (size_t)NODE_NAME), word.p);
			return -ENOENT;
		}
		r = wanted_add(&wanted, node->major, node->minor);
	} while (r == 0 && !cursor_eof(&c));
	if (r == 0)
		r = add_control(drivers, &wanted);
	if (r == 0)
		*ret_wanted = wanted;
	return too_many(r, why);
}

/* ---- given ---- */

/*
 * What a runtime runs in the cgroup before it enters the container's file system, and for each "exec": it
 * sees this machine's /dev still.
 */
static const char *const runtimes[] = { "runc", "crun", "youki", "lxc-start", "systemd", "systemd-executor" };

static bool is_of_runtime(const struct devcgroup_host *host, uint32_t pid)
{
	char path[PATH_MAX], program[PATH_MAX];
	const char *name;
	ssize_t n;

	snprintf(path, sizeof(path), "%s/%u/exe", host->proc, pid);
	n = readlink(path, program, sizeof(program) - 1);
	program[MAX(n, 0)] = 0;
	name = strrchr(program, '/');
	name = name ? name + 1 : program;
	/* runc and crun run copies of themselves: "/memfd:runc_cloned:/proc/self/exe (deleted)". */
	if (strncmp(program, "/memfd:", strlen("/memfd:")) == 0)
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(runtimes); i++) {
		size_t length = strlen(runtimes[i]);

		/* Not systemd-run, but "runc (deleted)". */
		if (strncmp(name, runtimes[i], length) == 0 && name[length] != '-' &&
		    !(name[length] >= 'a' && name[length] <= 'z'))
			return true;
	}
	return false;
}

/* One process for each mount namespace. */
static unsigned distinct_processes(const struct devcgroup_host *host, const struct place *place,
				   uint32_t ret_pids[static LOOKED_AT_MAX])
{
	char seen[LOOKED_AT_MAX][64], path[PATH_MAX], link[64];
	uint32_t pids[PROCESSES_MAX];
	unsigned all = place_processes(place, pids, PROCESSES_MAX), n = 0;

	for (unsigned i = 0; i < all && n < LOOKED_AT_MAX; i++) {
		bool is_new = true;
		ssize_t length;

		snprintf(path, sizeof(path), "%s/%u/ns/mnt", host->proc, pids[i]);
		length = readlink(path, link, sizeof(link) - 1);
		if (length < 0 || is_of_runtime(host, pids[i]))
			continue; /* or it has ended */
		link[length] = 0;
		for (unsigned j = 0; j < n; j++)
			is_new &= !STRV_EQ(seen[j], link);
		if (!is_new)
			continue;
		strcpy(seen[n], link);
		ret_pids[n++] = pids[i];
	}
	return n;
}

/* Of several processes what all were given, since one may have come from outside. */
static void read_each(const struct devcgroup_host *host, const struct drivers *drivers, const uint32_t *pids,
		      unsigned n, struct nodes *nodes)
{
	_cleanup_free_ struct nodes *ours = malloc(sizeof(*ours)), *one = malloc(sizeof(*one));

	if (!ours || !one)
		return;
	*ours = *nodes;
	for (unsigned i = 0; i < n; i++) {
		*one = *ours;
		nodes_add_process(host, drivers, pids[i], one);
		if (i == 0)
			*nodes = *one;
		/* Only nodes of our /dev are given, which both have in the same order. */
		for (unsigned j = 0; j < ours->n; j++)
			nodes->list[j].given &= one->list[j].given;
		nodes->there_known &= one->there_known;
	}
}

static int read_processes(const struct devcgroup_host *host, const struct place *place,
			  const struct drivers *drivers, struct nodes *nodes, struct devcgroup_why *why)
{
	uint32_t pids[LOOKED_AT_MAX] = { place->pid };
	unsigned n = place->pid ? 1 : distinct_processes(host, place, pids);

	read_each(host, drivers, pids, n, nodes);
	if (n == 0)
		devcgroup_because(
			why,
			"no process of its own is in cgroup %s, so which devices it was given cannot be "
			"known: name a PID of a process below it, or devices (" OPTION " nvidia0, " OPTION
			" " ALL ")",
			place->at[place->at[HIERARCHY_V2].fd >= 0 ? HIERARCHY_V2 : HIERARCHY_V1].path);
	else if (!nodes->there_known)
		devcgroup_because(
			why,
			"the /dev of PID %u, or of others there, cannot be read, so which devices it was "
			"given cannot be known: run as root, or name devices (" OPTION " nvidia0, " OPTION
			" " ALL ")",
			pids[0]);
	return n > 0 && nodes->there_known ? 0 : -ENODATA;
}

static int nothing_given(const struct wanted_devices *wanted, const struct node *unproven,
			 struct devcgroup_why *why)
{
	if (unproven)
		devcgroup_because(
			why,
			"its /dev has %s, but its processes may have made that themselves, since it is "
			"not this machine's own node and their cgroup lets them make it: if it was given "
			"to them, name it (" OPTION " nvidia0,...; %u such nodes)",
			unproven->name, wanted->unproven);
	else
		devcgroup_because(
			why, "its /dev has no node of NVIDIA, so it was given no device: start it again with "
			     "its GPUs, or name devices (" OPTION " nvidia0, " OPTION " " ALL ")");
	return -ENODATA;
}

static int take_given(const struct drivers *drivers, const struct nodes *nodes, struct wanted_devices *wanted,
		      struct devcgroup_why *why)
{
	const struct node *unproven = NULL;
	int r = 0;

	memset(wanted, 0, sizeof(*wanted));
	for (unsigned i = 0; r == 0 && i < nodes->n; i++) {
		const struct node *node = &nodes->list[i];

		if (!node->there)
			continue;
		if (node->given) {
			r = wanted_add(wanted, node->major, node->minor);
		} else {
			unproven = unproven ? unproven : node;
			wanted->unproven++;
		}
	}
	if (r == 0 && wanted->n == 0)
		return nothing_given(wanted, unproven, why);
	return too_many(r == 0 ? add_control(drivers, wanted) : r, why);
}

int wanted_given(const struct devcgroup_host *host, const struct place *place, const struct drivers *drivers,
		 struct nodes *nodes, struct wanted_devices *ret_wanted, struct devcgroup_why *why)
{
	int r = read_processes(host, place, drivers, nodes, why);

	return r == 0 ? take_given(drivers, nodes, ret_wanted, why) : r;
}
