// SPDX-License-Identifier: Apache-2.0
#include "base/raised.h"

#include <errno.h>
#include <linux/capability.h>
#include <stddef.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { WORDS = _LINUX_CAPABILITY_U32S_3 };

static bool lowered; /* written before there are threads */

/* Sets *ret_changed if that changed anything. */
static int set_effective(bool all, bool *ret_changed)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct sets[WORDS];

	*ret_changed = false;
	if (syscall(SYS_capget, &header, sets) < 0)
		return -errno;
	for (size_t i = 0; i < WORDS; i++) {
		unsigned wanted = all ? sets[i].permitted : 0;

		*ret_changed |= sets[i].effective != wanted;
		sets[i].effective = wanted;
	}
	return *ret_changed && syscall(SYS_capset, &header, sets) < 0 ? -errno : 0;
}

/* A unit's: the kernel clears them for a program whose file has capabilities. */
static bool has_ambient(void)
{
	for (unsigned long cap = 0; cap <= CAP_LAST_CAP; cap++)
		if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, cap, 0, 0) == 1)
			return true;
	return false;
}

int capabilities_lower(void)
{
	bool changed;
	int r;

	/*
	 * The kernel sets AT_SECURE for a program whose file has capabilities, see capabilities(7), and for
	 * one that a security module gives another domain.
	 */
	if (!getauxval(AT_SECURE) || geteuid() == 0 || has_ambient())
		return 0;
	r = set_effective(false, &changed);
	lowered = r == 0;
	return r;
}

bool capabilities_lowered(void)
{
	return lowered;
}

int capabilities_lower_thread(void)
{
	bool changed;

	return lowered ? set_effective(false, &changed) : 0;
}

int capabilities_drop(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	const struct __user_cap_data_struct none[WORDS] = { 0 };

	if (!lowered)
		return 0;
	if (syscall(SYS_capset, &header, none) < 0 || prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
		return -errno;
	return 0;
}

struct raised raised_begin(void)
{
	struct raised raised = { .by_us = false };
	int saved = errno;

	/* A failure shows as what the kernel then refuses. */
	if (lowered && set_effective(true, &raised.by_us) < 0)
		raised.by_us = false;
	errno = saved;
	return raised;
}

void raised_end(struct raised *raised)
{
	int saved = errno;
	bool changed;

	if (raised->by_us && set_effective(false, &changed) < 0)
		_exit(1); /* never on with capabilities that may not be used; cannot happen, see capset(2) */
	errno = saved;
}

struct raised user_begin(void)
{
	struct raised user = { .by_us = false };

	if (lowered && set_effective(false, &user.by_us) < 0)
		_exit(1);
	return user;
}

void user_end(struct raised *user)
{
	int saved = errno;
	bool changed;

	/* A failure shows as what the kernel then refuses. */
	if (user->by_us)
		set_effective(true, &changed);
	errno = saved;
}
