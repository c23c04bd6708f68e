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

int capabilities_lower(void)
{
	bool changed;
	int r = 0;

	/* The kernel sets it for a program whose file has capabilities, see capabilities(7). */
	if (getauxval(AT_SECURE))
		r = set_effective(false, &changed);
	lowered = getauxval(AT_SECURE) && r == 0;
	return r;
}

bool capabilities_lowered(void)
{
	return lowered;
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
