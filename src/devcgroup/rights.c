// SPDX-License-Identifier: Apache-2.0
#include "devcgroup/policy.h"

#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* PROC_USER_INIT_INO of the kernel's <linux/proc_ns.h>: its number never changes. */
#define USER_NAMESPACE_FIRST 0xEFFFFFFDu

bool is_administrator(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = { 0 };
	struct stat st;

	if (syscall(SYS_capget, &header, sets) < 0 || !(sets[0].effective & 1U << CAP_SYS_ADMIN))
		return false;
	return stat("/proc/self/ns/user", &st) < 0 || st.st_ino == USER_NAMESPACE_FIRST;
}
