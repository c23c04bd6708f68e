// SPDX-License-Identifier: Apache-2.0
#include "proc/account.h"

#include <string.h>

#include "base/hashmap.h"
#include "proc/proc.h"
#include "proc/user.h"

uint64_t proc_account(const char *root, uint32_t pid)
{
	struct proc_identity identity;
	const struct proc_cgroup *cgroup = &identity.cgroup;
	uint32_t user;

	if (proc_user(root, pid, &user) < 0)
		return PROC_ACCOUNT_UNKNOWN;
	/* Other users may name their own control groups as they like. */
	if (user == 0 && proc_identify(root, pid, &identity) == 0 &&
	    (cgroup->kind == PROC_CGROUP_CONTAINER || cgroup->kind == PROC_CGROUP_POD))
		return hash_bytes(cgroup->id, strlen(cgroup->id)) | UINT64_C(1) << 63;
	return user;
}
