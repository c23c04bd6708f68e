// SPDX-License-Identifier: Apache-2.0
#include "base/as_user.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stddef.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { WORDS = _LINUX_CAPABILITY_U32S_3 };

static int call(long number, struct __user_cap_data_struct sets[static WORDS])
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };

	return syscall(number, &header, sets) < 0 ? -errno : 0;
}

int as_user_begin(struct as_user *as_user)
{
	struct __user_cap_data_struct sets[WORDS];
	int r;

	*as_user = (struct as_user){ .lowered = false };
	/* The kernel sets it for a program whose file has capabilities, see capabilities(7). */
	if (!getauxval(AT_SECURE))
		return 0;
	r = call(SYS_capget, sets);
	for (size_t i = 0; r == 0 && i < WORDS; i++) {
		as_user->effective[i] = sets[i].effective;
		sets[i].effective = 0;
	}
	if (r == 0)
		r = call(SYS_capset, sets);
	as_user->lowered = r == 0;
	return r;
}

void as_user_end(const struct as_user *as_user)
{
	struct __user_cap_data_struct sets[WORDS];
	int saved = errno;

	if (as_user->lowered && call(SYS_capget, sets) == 0) {
		for (size_t i = 0; i < WORDS; i++)
			sets[i].effective = as_user->effective[i] & sets[i].permitted;
		call(SYS_capset, sets);
	}
	errno = saved;
}

int open_as_user(const char *path, int flags, mode_t mode)
{
	struct as_user as_user;
	int fd, r = as_user_begin(&as_user);

	if (r < 0) {
		errno = -r;
		return -1;
	}
	fd = open(path, flags, mode);
	as_user_end(&as_user);
	return fd;
}
