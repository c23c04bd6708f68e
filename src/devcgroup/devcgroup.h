// SPDX-License-Identifier: Apache-2.0
/*
 * src/devcgroup: whether a cgroup lets its processes open NVIDIA's devices, and, if asked for, that it
 * does.
 *
 * Two mechanisms decide, and each must allow: version 1's controller "devices" by lists (rules.h),
 * version 2 by BPF programs of type CGROUP_DEVICE (attached.h), of the cgroup and of all above it. On a
 * hybrid machine a process is in a cgroup of each.
 *
 * Invariants
 *  1. Looking changes nothing: no process is moved, no device is opened, no program is run in the kernel.
 *     What programs decide is found by interpreting a copy of their instructions (program.h).
 *  2. What cannot be found out is unknown, not denied and not allowed.
 *  3. Only devices of NVIDIA's majors are ever allowed, for reading and writing alone, and those that the
 *     place was given unless others are named (wanted.c). Nodes that its processes may have made themselves
 *     do not say what it was given. Of others' programs one is exchanged, atomically, by its own copy behind
 *     our rules; none is detached, so what it denied otherwise is denied still.
 *  4. What undoing needs lies with the cgroup and ends with it: version 1's added rules in an extended
 *     attribute, version 2's original in the instructions of the program that stands for it.
 *  5. A path is opened component by component below a cgroup file system: no "..", no symbolic link.
 *  6. No thread of its own, no state; any thread. Names of cgroups are bytes that others chose: the
 *     caller cleans them before it shows them.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fd.h"

/* Why something failed or was refused: cause and remedy, one sentence. */
struct devcgroup_why {
	char text[2 * PATH_MAX];
};
_printf_(2, 3) void devcgroup_because(struct devcgroup_why *why, const char *fmt, ...);

/* Where the kernel's files are; tests have others. */
struct devcgroup_host {
	const char *proc; /* "/proc" */
	const char *devices; /* "/proc/devices" */
	const char *dev; /* "/dev" */
	const char *cgroups; /* below which the host's cgroup file systems are mounted; "": wherever */
};

/* ---- NVIDIA's devices (nodes.c) ---- */

enum { DRIVERS_MAX = 32, NODES_MAX = 512, DRIVER_NAME = 40, NODE_NAME = 64 };

struct driver {
	char name[DRIVER_NAME]; /* "nvidia", "nvidia-uvm" */
	uint32_t major;
};

/* Several names may have one major: "nvidia" and "nvidiactl". */
struct drivers {
	struct driver list[DRIVERS_MAX];
	unsigned n, dropped;
};

/* The character devices of /proc/devices whose names begin with "nvidia". */
void drivers_parse(const char *text, size_t n, struct drivers *ret_drivers);
/* -ENODEV: there is none. */
int drivers_read(const struct devcgroup_host *host, struct drivers *ret_drivers);
/* NULL: not NVIDIA's. */
const char *drivers_name(const struct drivers *drivers, uint32_t major);
/* Each major once. Returns how many. */
unsigned drivers_majors(const struct drivers *drivers, uint32_t ret_majors[static DRIVERS_MAX]);

struct node {
	char name[NODE_NAME]; /* below /dev; "" for the rest of a major */
	uint32_t major, minor; /* UINT32_MAX: any that has no node */
	bool here, there; /* in our /dev, and in that of the process */
	bool given; /* there, and the very node of our /dev: by a mount, or since it sees that folder */
	bool wanted; /* the driver has this device, whether it has a node or not */
	uint64_t dev, ino; /* of the one in our /dev */
};

struct nodes {
	struct node list[NODES_MAX];
	unsigned n, dropped;
	bool there_known; /* the process's /dev was read */
	unsigned there_n, given_n; /* and has so many */
};

/*
 * What there is: nodes of our /dev, those that the driver's files in /proc ask for, and, if @pid is not 0,
 * those of that process's /dev, which is read in a child for at most a few seconds.
 */
void nodes_read(const struct devcgroup_host *host, const struct drivers *drivers, uint32_t pid,
		struct nodes *ret_nodes);

/* Adds those of another process's /dev. */
void nodes_add_process(const struct devcgroup_host *host, const struct drivers *drivers, uint32_t pid,
		       struct nodes *nodes);

/*
 * Of a process that was given nodes, these, not those that it may have made itself; else of one that has
 * nodes, these; else all.
 */
bool node_matters(const struct nodes *nodes, const struct node *node);

/* ---- cgroups (place.c) ---- */

enum hierarchy { HIERARCHY_V1, HIERARCHY_V2, HIERARCHIES };

struct cgroup_at {
	int fd; /* -1: the process is in none, or no such file system is mounted */
	char path[PATH_MAX]; /* below the file system's root, "/..." */
};

struct place {
	uint32_t pid; /* 0: a cgroup was named */
	struct cgroup_at at[HIERARCHIES];
	char unit[256]; /* the deepest systemd unit in its path; "": none */
};

/*
 * @target: a PID, "self", a path of a cgroup with or without the mount point, or the name of a systemd
 * unit. -ESRCH, -ENOENT; -EXDEV: it leaves the root of the cgroups; -EINVAL: it has another "..";
 * -ENOTUNIQ: several units have this name.
 */
int place_find(const struct devcgroup_host *host, const char *target, struct place *ret_place,
	       struct devcgroup_why *why);
void place_done(struct place *place);
/* PIDs of processes in the cgroup itself, at most @max; returns how many. */
unsigned place_processes(const struct place *place, uint32_t *ret_pids, unsigned max);
#define PLACE_NONE                                                                     \
	{                                                                              \
		.at = { [HIERARCHY_V1] = { .fd = -1 }, [HIERARCHY_V2] = { .fd = -1 } } \
	}

/* ---- access (access.c) ---- */

/* As in the kernel's struct bpf_cgroup_dev_ctx. */
enum { ACCESS_MKNOD = 1, ACCESS_READ = 2, ACCESS_WRITE = 4, ACCESS_OPEN = ACCESS_READ | ACCESS_WRITE };

enum access_state { ACCESS_ALLOWED, ACCESS_DENIED, ACCESS_UNKNOWN };

struct access {
	enum access_state state; /* of opening it for reading and writing */
	bool unshown; /* nothing is known to deny it, but a list of version 1 hides its exceptions */
	unsigned granted; /* each access by itself; those that are unknown are missing */
	char why[PATH_MAX + 256]; /* "" if allowed */
};

struct policy;

/* Reads all that decides in these cgroups. -EPERM. */
int policy_read(const struct place *place, struct policy **ret_policy, struct devcgroup_why *why);
void policy_free(struct policy *policy);
DEFINE_CLEANUP(struct policy *, policy_free, policy_freep)
void policy_ask(const struct policy *policy, uint32_t major, uint32_t minor, struct access *ret_access);
/* Whether some node that matters is not allowed, or unknown; the worst is told, of equal ones the first. */
bool policy_withholds(const struct policy *policy, const struct nodes *nodes, struct access *ret_access);

/* ---- which devices to allow (wanted.c) ---- */

enum { WANTED_MAX = 256 };

struct wanted_device {
	uint32_t major, minor; /* UINT32_MAX: all of the major */
};

struct wanted_devices {
	struct wanted_device list[WANTED_MAX];
	unsigned n;
	unsigned unproven; /* nodes that were left out, since the place may have made them itself */
};

/* Whether this list allows it. */
bool wanted_has(const struct wanted_devices *wanted, uint32_t major, uint32_t minor);
/* -E2BIG. */
int wanted_add(struct wanted_devices *wanted, uint32_t major, uint32_t minor);
/* Each of NVIDIA's majors as a whole, which includes devices to come. */
void wanted_all(const struct drivers *drivers, struct wanted_devices *ret_wanted);
/*
 * "all", or names of nodes of this machine's /dev, separated by commas, and with these the nodes that every
 * program needs: nvidiactl, nvidia-modeset, nvidia-uvm, nvidia-uvm-tools. -ENOENT: there is no such node.
 */
int wanted_named(const char *text, const struct drivers *drivers, const struct nodes *nodes,
		 struct wanted_devices *ret_wanted, struct devcgroup_why *why);
/* As policy_withholds(). */
bool policy_withholds_wanted(const struct policy *policy, const struct wanted_devices *wanted,
			     struct access *ret_access);
/*
 * What the place was given, by the /dev of its processes, which is read into @nodes, and what every program
 * needs. A node counts if it is the very one of our /dev. -ENODATA: it cannot be known.
 */
int wanted_given(const struct devcgroup_host *host, const struct place *place, const struct drivers *drivers,
		 struct nodes *nodes, struct wanted_devices *ret_wanted, struct devcgroup_why *why);

/* ---- changes (allow.c) ---- */

struct change {
	bool changed[HIERARCHIES];
	bool unsure; /* nothing denies it any more that is shown, but a list of version 1 hides exceptions */
	char done[2 * PATH_MAX + 512]; /* what was done, one sentence; "": nothing had to be */
	char note[PATH_MAX + 1024]; /* what else must be known, one sentence; "" */
};

/*
 * Lets the processes of these cgroups open these devices. -ENOTSUP: it cannot be done without harm to
 * another's policy, @why says what else would do; -EPERM. What was done before a failure stays, and is
 * said in *ret_change.
 */
int devcgroup_allow(const struct place *place, const struct wanted_devices *wanted, struct change *ret_change,
		    struct devcgroup_why *why);
/* The same for what it was given, see wanted_given(); if all devices are allowed, that is not asked. */
int devcgroup_allow_given(const struct devcgroup_host *host, const struct place *place,
			  const struct drivers *drivers, struct nodes *nodes, struct change *ret_change,
			  struct devcgroup_why *why);
/* Takes our rules away again. */
int devcgroup_undo(const struct place *place, struct change *ret_change, struct devcgroup_why *why);

/* ---- systemd (unit.c) ---- */

/* What is to be allowed, as DeviceAllow= names it. */
#define UNIT_ALL "char-nvidia*"
#define UNIT_ACCESS "rw"

struct unit_devices {
	char list[WANTED_MAX][80]; /* NODE_NAME and "/dev/" */
	unsigned n;
};

void unit_devices(const struct wanted_devices *wanted, const struct nodes *nodes,
		  struct unit_devices *ret_devices);
/*
 * Adds our rules to the DeviceAllow= of the place's unit by systemd's own SetUnitProperties, until reboot;
 * takes them away if @undo, as they are noted with the cgroup. -ENOTSUP: the unit restricts nothing, so
 * that a rule would begin to, or what to undo is not known; -EHOSTDOWN: systemd does not answer.
 */
int unit_allow(const struct place *place, const char *unit, const struct unit_devices *devices, bool undo,
	       struct change *ret_change, struct devcgroup_why *why);
/* The drop-in that does the same by hand: its path and text. */
int unit_drop_in(const char *unit, const struct unit_devices *devices, char *buf, size_t size);
