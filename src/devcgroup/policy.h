// SPDX-License-Identifier: Apache-2.0
/* What decides on devices in a place: for access.c, allow.c and unit.c. */
#pragma once

#include "devcgroup/attached.h"
#include "devcgroup/rules.h"

struct policy {
	char v1_path[PATH_MAX], v2_path[PATH_MAX];
	bool v1, v2; /* this hierarchy decides */
	char list[RULES_BYTES];
	struct attached_list attached;
};

/* "program 12 (sd_devices) of /system.slice/a.service" */
void policy_program_text(const struct attached *a, char *buf, size_t size);
/* Of one program: 1, 0, or -errno of program_ask(). @minor UINT32_MAX: see policy_ask(). */
int policy_program_ask(const struct attached *a, uint32_t major, uint32_t minor, unsigned access);
/* Of version 2 alone. */
void policy_ask_programs(const struct policy *policy, uint32_t major, uint32_t minor,
			 struct access *ret_access);
void policy_ask_rules(const struct policy *policy, uint32_t major, uint32_t minor, struct access *ret_access);
/*
 * Whether this thread has CAP_SYS_ADMIN in the first user namespace: what the kernel asks for before it
 * changes a list of devices, or shows what gpusonde noted with a cgroup (rights.c).
 */
bool is_administrator(void);
