// SPDX-License-Identifier: Apache-2.0
#include "devcgroup/devcgroup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "devcgroup/policy.h"

/* Stands for the minors that have no node: none of NVIDIA's drivers gives it away early. */
enum { MINOR_SOME = 250 };

static const unsigned each_access[] = { ACCESS_READ, ACCESS_WRITE, ACCESS_MKNOD };

/* ---- reading ---- */

static int read_programs(const struct cgroup_at *at, struct policy *policy, struct devcgroup_why *why)
{
	int r = attached_read(at->fd, at->path, &policy->attached);

	if (r == -EPERM || r == -EACCES)
		devcgroup_because(why,
				  "the kernel does not show the BPF programs of cgroup %s to this user: run "
				  "as root (CAP_SYS_ADMIN)",
				  at->path);
	else if (r == -EINVAL || r == -EOPNOTSUPP)
		r = 0; /* CONFIG_CGROUP_BPF is off: version 2 denies nothing */
	else if (r < 0)
		devcgroup_because(why, "the BPF programs of cgroup %s cannot be read: %s", at->path,
				  strerror(-r));
	snprintf(policy->v2_path, sizeof(policy->v2_path), "%s", at->path);
	policy->v2 = true;
	return r;
}

static int read_rules(const struct cgroup_at *at, struct policy *policy, struct devcgroup_why *why)
{
	int r = rules_read(at->fd, policy->list, sizeof(policy->list));

	if (r < 0)
		devcgroup_because(why, "devices.list of cgroup %s cannot be read: %s; run as root", at->path,
				  strerror(-r));
	snprintf(policy->v1_path, sizeof(policy->v1_path), "%s", at->path);
	policy->v1 = true;
	return r;
}

int policy_read(const struct place *place, struct policy **ret_policy, struct devcgroup_why *why)
{
	_cleanup_(policy_freep) struct policy *policy = calloc(1, sizeof(*policy));
	int r = 0;

	if (!policy) {
		devcgroup_because(why, "out of memory");
		return -ENOMEM;
	}
	if (place->at[HIERARCHY_V1].fd >= 0)
		r = read_rules(&place->at[HIERARCHY_V1], policy, why);
	if (r == 0 && place->at[HIERARCHY_V2].fd >= 0)
		r = read_programs(&place->at[HIERARCHY_V2], policy, why);
	if (r < 0)
		return r;
	*ret_policy = TAKE_PTR(policy);
	return 0;
}

void policy_free(struct policy *policy)
{
	if (!policy)
		return;
	attached_done(&policy->attached);
	free(policy);
}

/* ---- asking ---- */

void policy_program_text(const struct attached *a, char *buf, size_t size)
{
	snprintf(buf, size, "program %u%s%s%s of %s", a->id, a->name[0] ? " (" : "", a->name,
		 a->name[0] ? ")" : "", a->cgroup[0] ? a->cgroup : "a cgroup above");
}

int policy_program_ask(const struct attached *a, uint32_t major, uint32_t minor, unsigned access)
{
	const struct bpf_cgroup_dev_ctx ctx = {
		.access_type = access << 16 | BPF_DEVCG_DEV_CHAR,
		.major = major,
		.minor = minor == UINT32_MAX ? MINOR_SOME : minor,
	};

	return a->unusable ? -ENOTSUP : program_ask(a->insns, a->n, &ctx);
}

static void say_program(const struct attached *a, int answer, struct access *access)
{
	char which[PATH_MAX + 64];

	policy_program_text(a, which, sizeof(which));
	if (answer == 0)
		snprintf(access->why, sizeof(access->why), "%s denies it", which);
	else
		snprintf(access->why, sizeof(access->why), "%s cannot be interpreted: %s", which,
			 a->unusable ? a->unusable : "it has an instruction that is not known");
}

void policy_ask_programs(const struct policy *policy, uint32_t major, uint32_t minor,
			 struct access *ret_access)
{
	const struct attached_list *list = &policy->attached;
	struct access access = { .granted = ACCESS_READ | ACCESS_WRITE | ACCESS_MKNOD };

	for (unsigned i = 0; i < list->n; i++) {
		int answer = policy_program_ask(&list->list[i], major, minor, ACCESS_OPEN);

		for (size_t j = 0; j < ARRAY_SIZE(each_access); j++)
			if (policy_program_ask(&list->list[i], major, minor, each_access[j]) != 1)
				access.granted &= ~each_access[j];
		if (answer == 1 || access.state == ACCESS_DENIED)
			continue;
		/* One that denies is said before one that is unknown. */
		if (answer == 0 || access.state == ACCESS_ALLOWED)
			say_program(&list->list[i], answer, &access);
		access.state = answer == 0 ? ACCESS_DENIED : ACCESS_UNKNOWN;
	}
	if (list->incomplete && access.state == ACCESS_ALLOWED) {
		access.state = ACCESS_UNKNOWN;
		snprintf(access.why, sizeof(access.why), "more than %d programs decide", EFFECTIVE_MAX);
	}
	*ret_access = access;
}

void policy_ask_rules(const struct policy *policy, uint32_t major, uint32_t minor, struct access *ret_access)
{
	struct access access = { 0 };

	if (rules_allow_all(policy->list)) {
		access.state = ACCESS_UNKNOWN;
		access.unshown = true;
		snprintf(access.why, sizeof(access.why),
			 "devices.list of %s allows all by default, and does not show what is denied as an "
			 "exception",
			 policy->v1_path);
		*ret_access = access;
		return;
	}
	for (size_t j = 0; j < ARRAY_SIZE(each_access); j++)
		if (rules_allow(policy->list, major, minor, each_access[j]))
			access.granted |= each_access[j];
	if (!rules_allow(policy->list, major, minor, ACCESS_OPEN)) {
		access.state = ACCESS_DENIED;
		snprintf(access.why, sizeof(access.why), "devices.list of %s has no rule for it",
			 policy->v1_path);
	}
	*ret_access = access;
}

void policy_ask(const struct policy *policy, uint32_t major, uint32_t minor, struct access *ret_access)
{
	struct access access = { .granted = ACCESS_READ | ACCESS_WRITE | ACCESS_MKNOD }, rules;

	if (policy->v2)
		policy_ask_programs(policy, major, minor, &access);
	if (policy->v1) {
		policy_ask_rules(policy, major, minor, &rules);
		access.granted &= rules.granted;
		/* What denies it is said before what is unknown. */
		if ((rules.state == ACCESS_DENIED && access.state != ACCESS_DENIED) ||
		    (rules.state == ACCESS_UNKNOWN && access.state == ACCESS_ALLOWED)) {
			access.state = rules.state;
			access.unshown = rules.unshown;
			strcpy(access.why, rules.why);
		}
	}
	*ret_access = access;
}

/* What is denied is told before what is unknown, and that before what only version 1 could hide. */
static unsigned gravity(const struct access *access)
{
	if (access->state == ACCESS_UNKNOWN)
		return access->unshown ? 1 : 2;
	return access->state == ACCESS_DENIED ? 3 : 0;
}

static void take_worst(const struct policy *policy, uint32_t major, uint32_t minor, struct access *worst)
{
	struct access access;

	policy_ask(policy, major, minor, &access);
	if (gravity(&access) > gravity(worst))
		*worst = access;
}

bool policy_withholds(const struct policy *policy, const struct nodes *nodes, struct access *ret_access)
{
	*ret_access = (struct access){ .state = ACCESS_ALLOWED };
	for (unsigned i = 0; i < nodes->n; i++)
		if (node_matters(nodes, &nodes->list[i]))
			take_worst(policy, nodes->list[i].major, nodes->list[i].minor, ret_access);
	return ret_access->state != ACCESS_ALLOWED;
}

bool policy_withholds_wanted(const struct policy *policy, const struct wanted_devices *wanted,
			     struct access *ret_access)
{
	*ret_access = (struct access){ .state = ACCESS_ALLOWED };
	for (unsigned i = 0; i < wanted->n; i++)
		take_worst(policy, wanted->list[i].major, wanted->list[i].minor, ret_access);
	return ret_access->state != ACCESS_ALLOWED;
}
