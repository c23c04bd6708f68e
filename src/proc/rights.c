// SPDX-License-Identifier: Apache-2.0
#include "proc/rights.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"

enum { STATUS_MAX = 16384, AUXV_MAX = 2048, WORDS = _LINUX_CAPABILITY_U32S_3 };

#define READS_ALL (1U << CAP_DAC_READ_SEARCH | 1U << CAP_DAC_OVERRIDE)

/* ---- the process's ---- */

struct theirs {
	uint32_t user, group;
	gid_t groups[PROC_RIGHTS_GROUPS];
	size_t groups_n;
	uint64_t capabilities;
};

/* Real, effective, saved and of file systems: all the same. */
static int read_ids(const char *text, const char *name, uint32_t *ret_id)
{
	const char *at = strstr(text, name);
	uint32_t ids[4];

	if (!at || sscanf(at + strlen(name), "%" SCNu32 "%" SCNu32 "%" SCNu32 "%" SCNu32, &ids[0], &ids[1],
			  &ids[2], &ids[3]) != 4)
		return -EPERM;
	for (unsigned i = 1; i < ARRAY_SIZE(ids); i++)
		if (ids[i] != ids[0])
			return -EPERM;
	*ret_id = ids[0];
	return 0;
}

/* Those beyond the limit only lack. */
static void read_groups(const char *text, struct theirs *theirs)
{
	const char *at = strstr(text, "\nGroups:");
	char *end;

	theirs->groups_n = 0;
	for (at = at ? at + strlen("\nGroups:") : ""; theirs->groups_n < PROC_RIGHTS_GROUPS; at = end) {
		unsigned long group;

		while (*at == ' ' || *at == '\t')
			at++;
		group = strtoul(at, &end, 10);
		if (end == at)
			return;
		theirs->groups[theirs->groups_n++] = (gid_t)group;
	}
}

static bool in_our_user_namespace(const char *root, pid_t pid)
{
	struct stat ours, other;
	char path[80];

	snprintf(path, sizeof(path), "%s/%d/ns/user", root, (int)pid);
	return stat("/proc/self/ns/user", &ours) == 0 && stat(path, &other) == 0 &&
	       ours.st_dev == other.st_dev && ours.st_ino == other.st_ino;
}

/*
 * A program may execute another one with more rights after it has named a file: exec changes neither PID nor
 * start time.
 */
static int check_not_secure(const char *root, pid_t pid)
{
	union {
		char text[AUXV_MAX];
		uint64_t words[AUXV_MAX / 8];
	} auxv;
	char path[80];
	size_t n;
	int r;

	snprintf(path, sizeof(path), "%s/%d/auxv", root, (int)pid);
	r = read_file(path, auxv.text, sizeof(auxv.text), &n);
	if (r < 0)
		return r == -ESRCH || r == -ENOENT ? -ESRCH : -EPERM;
	for (size_t i = 0; i + 1 < n / 8; i += 2)
		if (auxv.words[i] == AT_SECURE)
			return auxv.words[i + 1] ? -EPERM : 0;
	return -EPERM;
}

static int read_theirs(const char *root, pid_t pid, struct theirs *theirs)
{
	char path[80], text[STATUS_MAX];
	const char *at;
	int r;

	snprintf(path, sizeof(path), "%s/%d/status", root, (int)pid);
	r = read_file(path, text, sizeof(text), NULL);
	if (r == -E2BIG)
		text[sizeof(text) - 1] = '\0';
	else if (r < 0)
		return r == -ESRCH || r == -ENOENT ? -ESRCH : -EPERM;
	r = read_ids(text, "\nUid:", &theirs->user);
	if (r == 0)
		r = read_ids(text, "\nGid:", &theirs->group);
	if (r == 0)
		r = check_not_secure(root, pid);
	if (r < 0)
		return r;
	read_groups(text, theirs);
	at = strstr(text, "\nCapEff:");
	theirs->capabilities =
		at && in_our_user_namespace(root, pid) ? strtoull(at + strlen("\nCapEff:"), NULL, 16) : 0;
	return 0;
}

/* ---- ours ---- */

static int set_effective(const uint32_t effective[2])
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct sets[WORDS];

	if (syscall(SYS_capget, &header, sets) < 0)
		return -errno;
	sets[0].effective = effective[0];
	sets[1].effective = effective[1];
	return syscall(SYS_capset, &header, sets) < 0 ? -errno : 0;
}

static int save_ours(struct proc_rights *rights)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct sets[WORDS];

	if (syscall(SYS_capget, &header, sets) < 0)
		return -errno;
	rights->effective[0] = sets[0].effective;
	rights->effective[1] = sets[1].effective;
	/* An invalid ID changes nothing and returns the current one. */
	rights->user = (uint32_t)syscall(SYS_setfsuid, UINT32_MAX);
	rights->group = (uint32_t)syscall(SYS_setfsgid, UINT32_MAX);
	rights->groups_n = (int)syscall(SYS_getgroups, PROC_RIGHTS_GROUPS, rights->groups);
	return rights->groups_n < 0 ? -errno : 0;
}

/* The system calls themselves: glibc's would change all threads. */
static int switch_user(uint32_t user, uint32_t group, const gid_t *groups, size_t groups_n)
{
	if (syscall(SYS_setgroups, groups_n, groups) < 0)
		return -errno;
	syscall(SYS_setfsgid, group);
	syscall(SYS_setfsuid, user);
	return (uint32_t)syscall(SYS_setfsuid, UINT32_MAX) == user &&
			       (uint32_t)syscall(SYS_setfsgid, UINT32_MAX) == group ?
		       0 :
		       -EPERM;
}

int proc_rights_take(const char *root, pid_t pid, struct proc_rights *rights)
{
	struct theirs theirs;
	uint32_t effective[2];
	bool may_switch;
	int r = read_theirs(root, pid, &theirs);

	if (r < 0)
		return r;
	*rights = (struct proc_rights){ 0 };
	r = save_ours(rights);
	if (r < 0)
		return r;
	/* Never to root: its processes have capabilities, or may read what all may. */
	may_switch = rights->effective[0] >> CAP_SETUID & 1 && rights->effective[0] >> CAP_SETGID & 1 &&
		     theirs.user != 0 && theirs.group != 0;
	rights->open_to_all =
		!may_switch && theirs.user != rights->user && !(theirs.capabilities & READS_ALL);
	rights->switched = may_switch;
	if (may_switch)
		r = switch_user(theirs.user, theirs.group, theirs.groups, theirs.groups_n);
	/* The change of the user may have changed them, too. */
	effective[0] = rights->effective[0] & ~READS_ALL;
	effective[1] = rights->effective[1];
	if (theirs.capabilities & READS_ALL)
		effective[0] |= rights->effective[0] & READS_ALL;
	if (r == 0)
		r = set_effective(effective);
	if (r < 0)
		proc_rights_give_back(rights);
	return r;
}

void proc_rights_give_back(const struct proc_rights *rights)
{
	/* Nothing of this needs what was given up. */
	if (rights->switched)
		(void)switch_user(rights->user, rights->group, rights->groups, (size_t)rights->groups_n);
	(void)set_effective(rights->effective);
}
