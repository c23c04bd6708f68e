// SPDX-License-Identifier: Apache-2.0
/*
 * gpusonde cgroup check|allow: whether a cgroup lets NVIDIA's devices be opened, and that it does. check
 * only looks; allow changes the policy of that one cgroup, with the rights of its caller alone,
 * since capabilities of gpusonde's file are not raised for it.
 */
#pragma once

#include "base/strbuf.h"
#include "cmd/cmd.h"
#include "devcgroup/devcgroup.h"

struct cgroup_run {
	const struct invocation *invocation;
	const char *target;
	struct devcgroup_host host;
	struct drivers drivers;
	struct place place;
	struct nodes nodes;
	struct wanted_devices wanted; /* of allow, where it is known before it begins */
	struct change change;
	struct devcgroup_why why;
};

struct devcgroup_host cgroup_host(const struct options *options);
/* Prints @why, cleaned, and returns EXIT_FAILURE. */
int cgroup_failed(const struct devcgroup_why *why);
int cgroup_check(struct cgroup_run *run);
/* "/system.slice/a.service": of version 2, else of version 1. */
const char *cgroup_name(const struct place *place);
