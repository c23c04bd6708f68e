// SPDX-License-Identifier: Apache-2.0
#include "devcgroup/devcgroup.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "devcgroup/policy.h"

#define PROGRAM_NAME "gpusonde_allow"
#define SYSTEMD_NAME "sd_devices" /* of systemd 250 and later */
enum { TRIES = 3, REMEDY = 512 };

/* What else would do, for sentences that refuse. */
static const char *instead(const struct place *place, char *buf, size_t size)
{
	if (place->unit[0])
		snprintf(buf, size,
			 "\"gpusonde cgroup allow --systemd %s\" tells systemd, if it is systemd that denies",
			 place->unit);
	else
		snprintf(buf, size, "start the container or service again with these devices allowed");
	return buf;
}

static void say_done(struct change *change, enum hierarchy hierarchy, const char *fmt, ...) _printf_(3, 4);
static void say_done(struct change *change, enum hierarchy hierarchy, const char *fmt, ...)
{
	size_t n = strlen(change->done);
	va_list args;

	if (n > 0)
		snprintf(change->done + n, sizeof(change->done) - n, "; ");
	n = strlen(change->done);
	va_start(args, fmt);
	vsnprintf(change->done + n, sizeof(change->done) - n, fmt, args);
	va_end(args);
	change->changed[hierarchy] = true;
}

static int bpf_refused(const char *path, int r, struct devcgroup_why *why)
{
	if (r == -EPERM || r == -EACCES)
		devcgroup_because(
			why,
			"the BPF programs of cgroup %s cannot be exchanged by this user: run as root "
			"(CAP_SYS_ADMIN)",
			path);
	else if (r == -EINVAL)
		devcgroup_because(why,
				  "this kernel cannot exchange the BPF program of cgroup %s atomically: that "
				  "needs Linux 5.6 or later",
				  path);
	else if (!why->text[0])
		devcgroup_because(why, "the BPF program of cgroup %s cannot be exchanged: %s", path,
				  strerror(-r));
	return r;
}

/* ---- version 2 ---- */

struct exchange {
	const struct place *place;
	int cgroup;
	const char *path;
	struct attached_list attached;
	struct rules_said said;
	const struct wanted_devices *wanted;
	struct change *change;
	struct devcgroup_why *why;
};

/* The cgroup's own programs, from those that decide for it. */
static unsigned own_programs(const struct attached_list *list, const struct attached *ret_own[static 2])
{
	unsigned n = 0;

	for (unsigned i = 0; i < list->n; i++) {
		if (list->list[i].inherited)
			continue;
		if (n < 2)
			ret_own[n] = &list->list[i];
		n++;
	}
	return n;
}

/*
 * Whether a program of ours stands for nothing any more: the program's owner (say, systemd) attached its
 * next one beside ours, which it could not detach. It is the same once more, or systemd's, which has one
 * in each cgroup.
 */
static bool is_outdated(const struct attached *ours, const struct attached *other)
{
	if (ours->rules == 0 || other->rules > 0 || other->inherited || other->unusable)
		return false;
	if (STRV_EQ(other->name, SYSTEMD_NAME) &&
	    memcmp(ours->said.name, SYSTEMD_NAME, sizeof(SYSTEMD_NAME)) == 0)
		return true;
	return ours->n - ours->rules == other->n &&
	       memcmp(ours->insns + ours->rules, other->insns, other->n * sizeof(*other->insns)) == 0;
}

/* @ret_stale: one of ours that is outdated, or NULL. */
static int choose(const struct exchange *x, const struct attached **ret_program,
		  const struct attached **ret_stale)
{
	const struct attached *own[2];
	unsigned n = own_programs(&x->attached, own);
	char text[REMEDY];

	*ret_stale = NULL;
	if (n == 1) {
		*ret_program = own[0];
		return 0;
	}
	for (unsigned i = 0; n == 2 && i < 2; i++) {
		if (!is_outdated(own[i], own[1 - i]))
			continue;
		*ret_stale = own[i];
		*ret_program = own[1 - i];
		return 0;
	}
	devcgroup_because(
		x->why,
		"%u BPF programs are attached to cgroup %s, all of which must allow a device, and only "
		"one that is alone is exchanged: %s",
		n, x->path, instead(x->place, text, sizeof(text)));
	return -ENOTSUP;
}

static int is_exchangeable(const struct exchange *x, const struct attached *program)
{
	char which[PATH_MAX + 64], text[REMEDY];

	policy_program_text(program, which, sizeof(which));
	instead(x->place, text, sizeof(text));
	if (program->unusable)
		devcgroup_because(x->why, "%s cannot be copied: %s; %s", which, program->unusable, text);
	else if (!(x->attached.flags & BPF_F_ALLOW_MULTI))
		devcgroup_because(x->why,
				  "%s is attached in a way (without BPF_F_ALLOW_MULTI) in which it cannot be "
				  "exchanged safely; %s",
				  which, text);
	else
		return 0;
	return -ENOTSUP;
}

/* Which of the programs withholds something: one of a cgroup above cannot be helped here. */
static int find_denying(const struct exchange *x, bool *ret_own)
{
	char which[PATH_MAX + 64];

	*ret_own = false;
	for (unsigned i = 0; i < x->attached.n; i++) {
		const struct attached *a = &x->attached.list[i];
		bool denies = false;

		for (unsigned j = 0; j < x->wanted->n; j++)
			denies |= policy_program_ask(a, x->wanted->list[j].major, x->wanted->list[j].minor,
						     ACCESS_OPEN) != 1;
		if (!denies)
			continue;
		if (!a->inherited) {
			*ret_own = true;
			continue;
		}
		policy_program_text(a, which, sizeof(which));
		devcgroup_because(
			x->why,
			"%s, a cgroup above %s, %s it, and it decides for all that are below: allow "
			"that cgroup, or change its unit",
			which, x->path, a->unusable ? "may deny" : "denies");
		return -ENOTSUP;
	}
	return 0;
}

/* Of what was not read no program may be exchanged: one that is not seen may decide, or be outdated. */
static int is_complete(const struct exchange *x)
{
	if (!x->attached.incomplete)
		return 0;
	devcgroup_because(
		x->why,
		"more than %d BPF programs decide for cgroup %s, more than are read, so none is exchanged: "
		"the software that attached them must allow the devices, or detach some",
		EFFECTIVE_MAX, x->path);
	return -ENOTSUP;
}

/* What the new rules say: what those of @program say already, if it is ours, and what is wanted. */
static int say_rules(struct exchange *x, const struct attached *program)
{
	struct wanted_devices all = { .n = 0 };
	int r = 0;

	x->said = (struct rules_said){ .id = program->rules ? program->said.id : program->id };
	memcpy(x->said.name, program->rules ? program->said.name : program->name, sizeof(x->said.name));
	for (unsigned i = 0; r == 0 && program->rules && i < program->said.n; i++)
		r = wanted_add(&all, program->said.devices[i].major, program->said.devices[i].minor);
	for (unsigned i = 0; r == 0 && i < x->wanted->n; i++)
		r = wanted_add(&all, x->wanted->list[i].major, x->wanted->list[i].minor);
	if (r < 0) {
		devcgroup_because(
			x->why,
			"cgroup %s would be allowed more than %d devices one by one: undo that first "
			"(--undo), or allow all (--devices all)",
			x->path, WANTED_MAX);
		return -ENOTSUP;
	}
	memcpy(x->said.devices, all.list, all.n * sizeof(all.list[0]));
	x->said.n = all.n;
	return 0;
}

static int exchange_one(struct exchange *x)
{
	struct bpf_insn rules[PROGRAM_RULES_MAX];
	const struct attached *program = NULL, *stale = NULL;
	_cleanup_close_ int fd = -1;
	char which[PATH_MAX + 64];
	bool own;
	int r = is_complete(x);

	if (r == 0)
		r = find_denying(x, &own);
	if (r < 0 || !own)
		return r;
	r = choose(x, &program, &stale);
	if (r == 0)
		r = is_exchangeable(x, program);
	if (r == 0)
		r = say_rules(x, program);
	if (r < 0)
		return r;
	r = attached_load(rules, program_rules(&x->said, rules), program->insns + program->rules,
			  program->n - program->rules, PROGRAM_NAME, &fd, x->why);
	if (r == 0)
		r = attached_replace(x->cgroup, program, fd);
	if (r < 0)
		return r;
	policy_program_text(program, which, sizeof(which));
	say_done(x->change, HIERARCHY_V2, "%s was exchanged by a copy with rules for %u devices before it",
		 which, x->said.n);
	r = stale ? attached_remove(x->cgroup, stale) : 0;
	return r == -ENOENT ? 0 : r; /* somebody else has removed it */
}

static bool outdated(const struct exchange *x, const struct attached *ours)
{
	bool found = false;

	for (unsigned i = 0; i < x->attached.n; i++)
		found |= is_outdated(ours, &x->attached.list[i]);
	return found;
}

static int undo_one(struct exchange *x, const struct attached *a)
{
	char which[PATH_MAX + 64], name[BPF_OBJ_NAME_LEN + 1] = "";
	_cleanup_close_ int fd = -1;
	int r;

	policy_program_text(a, which, sizeof(which));
	if (outdated(x, a)) {
		r = attached_remove(x->cgroup, a);
		if (r == 0)
			say_done(x->change, HIERARCHY_V2,
				 "%s was removed: its original has been attached anew", which);
		return r;
	}
	memcpy(name, a->said.name, sizeof(a->said.name));
	r = attached_original(a, &fd);
	if (r == -ENOENT)
		r = attached_load(a->insns + a->rules, a->n - a->rules, NULL, 0, name, &fd, x->why);
	if (r == 0)
		r = attached_replace(x->cgroup, a, fd);
	if (r == 0)
		say_done(x->change, HIERARCHY_V2, "%s was exchanged by the original", which);
	return r;
}

/* All programs of ours give way to what they stand for. */
static int undo_all(struct exchange *x)
{
	int r = is_complete(x);

	for (unsigned i = 0; r == 0 && i < x->attached.n; i++)
		if (!x->attached.list[i].inherited && x->attached.list[i].rules > 0)
			r = undo_one(x, &x->attached.list[i]);
	return r;
}

/* Again if somebody else was faster. */
static int exchange(struct exchange *x, int (*act)(struct exchange *x))
{
	int r = -ENOENT;

	for (unsigned i = 0; i < TRIES && r == -ENOENT; i++) {
		x->why->text[0] = 0;
		r = attached_read(x->cgroup, x->path, &x->attached);
		if (r == 0)
			r = act(x);
		attached_done(&x->attached);
	}
	if (r == -ENOENT)
		devcgroup_because(
			x->why,
			"the BPF program of cgroup %s cannot be exchanged: it is held by a BPF link of "
			"its owner, or is exchanged by others all the time",
			x->path);
	return r < 0 && r != -ENOTSUP ? bpf_refused(x->path, r, x->why) : r;
}

/* ---- version 1 ---- */

static int v1_refused(const struct place *place, int r, struct devcgroup_why *why)
{
	const char *path = place->at[HIERARCHY_V1].path;
	char text[REMEDY];

	if (r == -EPERM && is_administrator())
		devcgroup_because(
			why,
			"cgroup %s may not have more devices than the one above it, which denies them: "
			"allow that cgroup first; %s",
			path, instead(place, text, sizeof(text)));
	else if (r == -EPERM || r == -EACCES)
		devcgroup_because(
			why,
			"the rules of cgroup %s, and what gpusonde noted with it, are neither shown to "
			"this user nor can be changed: run as root (CAP_SYS_ADMIN)",
			path);
	else if (r == -EROFS)
		devcgroup_because(why, "the cgroup file system is mounted read-only here: mount the host's "
				       "read-write, and name it with --cgroup-root");
	else
		devcgroup_because(why, "devices.allow of cgroup %s: %s", path, strerror(-r));
	return r;
}

/* Written down before it is applied: what is undone then was perhaps not done, which harms nothing. */
static int add_rule(int cgroup, const struct wanted_device *device, unsigned access)
{
	char added[ADDED_BYTES] = "", rule[RULE_BYTES];
	int r = rules_added(cgroup, added, sizeof(added));
	size_t n = strlen(added);

	if (r < 0 && r != -ENODATA)
		return r;
	rule_write(device->major, device->minor, access, rule, sizeof(rule));
	if (n + strlen(rule) + 2 > sizeof(added))
		return -ENOSPC;
	snprintf(added + n, sizeof(added) - n, "%s\n", rule);
	r = rules_set_added(cgroup, added);
	if (r < 0)
		return r;
	r = rule_apply(cgroup, "devices.allow", rule);
	if (r < 0) {
		added[n] = 0;
		rules_set_added(cgroup, added);
	}
	return r;
}

static int allow_v1(const struct place *place, const struct wanted_devices *wanted, struct change *change,
		    struct devcgroup_why *why)
{
	int cgroup = place->at[HIERARCHY_V1].fd;
	_cleanup_free_ char *list = malloc(RULES_BYTES);
	unsigned added = 0;
	int r = list ? rules_read(cgroup, list, RULES_BYTES) : -ENOMEM;

	for (unsigned i = 0; r == 0 && i < wanted->n; i++) {
		const struct wanted_device *d = &wanted->list[i];
		unsigned missing = ACCESS_OPEN & ~rules_of_device(list, d->major, d->minor);

		if (rules_allow_all(list) || rules_allow(list, d->major, d->minor, ACCESS_OPEN))
			continue;
		r = add_rule(cgroup, d, missing);
		added += r == 0;
	}
	if (added > 0)
		say_done(change, HIERARCHY_V1, "devices.allow of %s was given rules for %u devices",
			 place->at[HIERARCHY_V1].path, added);
	return r < 0 ? v1_refused(place, r, why) : 0;
}

static int undo_v1(const struct place *place, struct change *change, struct devcgroup_why *why)
{
	int cgroup = place->at[HIERARCHY_V1].fd;
	char added[ADDED_BYTES], *rest = added;
	int r = rules_added(cgroup, added, sizeof(added));

	/* The kernel says that there is none also to a process that may not see it: xattr(7). */
	if (r == -ENODATA && !is_administrator())
		return v1_refused(place, -EPERM, why);
	if (r == -ENODATA || r == -EOPNOTSUPP)
		return 0;
	for (char *line; r == 0 && (line = strsep(&rest, "\n"));)
		if (*line)
			r = rule_apply(cgroup, "devices.deny", line);
	if (r == 0)
		r = rules_set_added(cgroup, "");
	if (r < 0)
		return v1_refused(place, r, why);
	say_done(change, HIERARCHY_V1,
		 "the rules that gpusonde had added to devices.allow of %s were taken away",
		 place->at[HIERARCHY_V1].path);
	return 0;
}

/* ---- both ---- */

static void add_note(struct change *change, const char *fmt, ...) _printf_(2, 3);
static void add_note(struct change *change, const char *fmt, ...)
{
	size_t n = strlen(change->note);
	va_list args;

	if (n > 0)
		n += (size_t)snprintf(change->note + n, sizeof(change->note) - n, "; ");
	va_start(args, fmt);
	if (n < sizeof(change->note))
		vsnprintf(change->note + n, sizeof(change->note) - n, fmt, args);
	va_end(args);
}

static void say_unsure(struct change *change, const struct access *access)
{
	if (!change->unsure)
		add_note(change,
			 "nothing is known to deny the devices, but whether they may be opened is not, "
			 "either: %s; try it there (nvidia-smi); \"c 195:0 rw\", written to devices.allow, "
			 "takes the exception for that away",
			 access->why);
	change->unsure = true;
}

/* Whether there is something to do. */
static bool withholds(const struct policy *policy, const struct wanted_devices *wanted, struct access *access,
		      struct change *change)
{
	if (!policy_withholds_wanted(policy, wanted, access))
		return false;
	if (access->unshown)
		say_unsure(change, access);
	return !access->unshown;
}

static int still_withheld(const struct place *place, const struct wanted_devices *wanted,
			  struct change *change, struct devcgroup_why *why)
{
	_cleanup_(policy_freep) struct policy *policy = NULL;
	struct access access;
	int r = policy_read(place, &policy, why);

	if (r < 0 || !withholds(policy, wanted, &access, change))
		return r;
	devcgroup_because(why, "it is still not allowed: %s", access.why);
	return -ENOTSUP;
}

/* Some of it is withheld. */
static int change_policies(const struct place *place, const struct wanted_devices *wanted,
			   struct change *change, struct devcgroup_why *why)
{
	const struct cgroup_at *v2 = &place->at[HIERARCHY_V2];
	_cleanup_free_ struct exchange *x = calloc(1, sizeof(*x));
	int r = 0;

	if (!x) {
		devcgroup_because(why, "out of memory");
		return -ENOMEM;
	}
	*x = (struct exchange){ .place = place,
				.cgroup = v2->fd,
				.path = v2->path,
				.wanted = wanted,
				.change = change,
				.why = why };
	if (v2->fd >= 0)
		r = exchange(x, exchange_one);
	if (r == 0 && place->at[HIERARCHY_V1].fd >= 0)
		r = allow_v1(place, wanted, change, why);
	return r < 0 ? r : still_withheld(place, wanted, change, why);
}

int devcgroup_allow(const struct place *place, const struct wanted_devices *wanted, struct change *ret_change,
		    struct devcgroup_why *why)
{
	_cleanup_(policy_freep) struct policy *policy = NULL;
	struct access access;
	int r = policy_read(place, &policy, why);

	memset(ret_change, 0, sizeof(*ret_change));
	if (wanted->unproven > 0)
		snprintf(ret_change->note, sizeof(ret_change->note),
			 "%u nodes of its /dev are left out, since its processes may have made them: if they "
			 "were given to them, name them (--devices)",
			 wanted->unproven);
	if (r < 0 || !withholds(policy, wanted, &access, ret_change))
		return r;
	return change_policies(place, wanted, ret_change, why);
}

int devcgroup_allow_given(const struct devcgroup_host *host, const struct place *place,
			  const struct drivers *drivers, struct nodes *nodes, struct change *ret_change,
			  struct devcgroup_why *why)
{
	_cleanup_(policy_freep) struct policy *policy = NULL;
	_cleanup_free_ struct wanted_devices *wanted = malloc(sizeof(*wanted));
	struct access access;
	int r = wanted ? policy_read(place, &policy, why) : -ENOMEM;

	memset(ret_change, 0, sizeof(*ret_change));
	if (!wanted)
		devcgroup_because(why, "out of memory");
	if (r < 0)
		return r;
	wanted_all(drivers, wanted);
	if (!withholds(policy, wanted, &access, ret_change))
		return 0;
	r = wanted_given(host, place, drivers, nodes, wanted, why);
	return r < 0 ? r : devcgroup_allow(place, wanted, ret_change, why);
}

int devcgroup_undo(const struct place *place, struct change *ret_change, struct devcgroup_why *why)
{
	const struct cgroup_at *v2 = &place->at[HIERARCHY_V2];
	_cleanup_free_ struct exchange *x = calloc(1, sizeof(*x));
	int r = 0;

	memset(ret_change, 0, sizeof(*ret_change));
	if (!x) {
		devcgroup_because(why, "out of memory");
		return -ENOMEM;
	}
	*x = (struct exchange){
		.place = place, .cgroup = v2->fd, .path = v2->path, .change = ret_change, .why = why
	};
	if (v2->fd >= 0)
		r = exchange(x, undo_all);
	if (r == 0 && place->at[HIERARCHY_V1].fd >= 0)
		r = undo_v1(place, ret_change, why);
	return r;
}
