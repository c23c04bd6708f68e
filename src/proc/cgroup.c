// SPDX-License-Identifier: Apache-2.0
/*
 * Finds the workload of a process in its cgroup path. A path is parsed component by component from the root,
 * and the deepest recognised component is used, since nested ones are more specific:
 *
 *   container  .../cri-containerd-<64 hex>.scope, docker-, crio-, libpod-, nerdctl-, or /<64 hex>;
 *              ECS's <32 hex>-<number>; LXC's /lxc/<name>, /lxc.payload.<name>
 *   pod        ...-pod<uid, _ for ->.slice, or /pod<uid>; stored in addition to its container
 *   job        see cgroup_job.c; stored in addition to a container in it
 *   unit       anything.service, anything.scope, else user-<uid>.slice, if it is in none of the above
 *
 * No pattern is anchored at the root: seen from another cgroup namespace a path begins with /../.., and under
 * kind or Docker in Docker with the outer container's. A container's monitor (conmon) is not the container.
 *
 * Below user@<uid>.service the user chooses all names. Nothing there is a pod's or a job's, only the names of
 * rootless engines are containers', and each identity begins with "user@<uid>.service/", so that none is one
 * of the system's. Below a unit its own service chooses names, so no further unit is looked for there.
 */
#include "proc/proc.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/cursor.h"
#include "base/macro.h"
#include "base/text.h"
#include "proc/cgroup_job.h"

enum { CONTAINER_ID = 64, ECS_ID = 32, POD_UID_MIN = 32, POD_UID_MAX = 36, COMPONENTS_MAX = 64 };

/* What the components so far were; zeroed at first. */
struct path {
	struct job_path job;
	struct cursor manager; /* "user@<uid>.service", if we are below one */
	uint32_t user; /* as in struct proc_cgroup */
	bool below_lxc;
	bool in_unit;
	bool closed; /* below the manager of a container's or a guest's user: nothing is believed */
};

/* What was found in a path, and at which component. */
struct path_found {
	struct proc_cgroup cgroup;
	unsigned depth;
	bool of_manager; /* below a user's service manager */
};

static size_t hex_run(const struct cursor *c)
{
	size_t n = 0;

	while (n < cursor_left(c) && isxdigit((unsigned char)c->p[n]) && !isupper((unsigned char)c->p[n]))
		n++;
	return n;
}

static bool starts_with(struct cursor c, const char *prefix)
{
	return cursor_literal(&c, prefix);
}

/* Removes a suffix; false, without a change, if it is missing. */
static bool strip_suffix(struct cursor *c, const char *suffix)
{
	size_t n = strlen(suffix);

	if (cursor_left(c) < n || memcmp(c->end - n, suffix, n) != 0)
		return false;
	c->end -= n;
	return true;
}

/* What does not fit is left out. */
static void append(struct proc_cgroup *cgroup, struct cursor text)
{
	size_t n = strlen(cgroup->id), more = MIN(cursor_left(&text), sizeof(cgroup->id) - 1 - n);

	memcpy(cgroup->id + n, text.p, more);
	cgroup->id[n + more] = '\0';
}

static void set(struct proc_cgroup *cgroup, enum proc_cgroup_kind kind, struct cursor id)
{
	cgroup->kind = kind;
	cgroup->id[0] = '\0';
	append(cgroup, id);
	utf8_sanitize(cgroup->id);
}

/* Its identity is the manager's and this name. */
static void set_users_own(struct proc_cgroup *cgroup, enum proc_cgroup_kind kind, struct cursor manager,
			  struct cursor name)
{
	cgroup->kind = kind;
	cgroup->id[0] = '\0';
	append(cgroup, manager);
	append(cgroup, cursor_over("/", 1));
	append(cgroup, name);
	utf8_sanitize(cgroup->id);
}

/* pod<uid> of cgroupfs, or the last "-pod<uid>" of a slice; the uid with dashes. */
static bool take_pod(struct cursor c, struct proc_cgroup *cgroup)
{
	char uid[POD_UID_MAX + 1];
	size_t n = 0;

	if (strip_suffix(&c, ".slice")) {
		const char *at = NULL;

		for (const char *p = c.p; p + 4 < c.end; p++)
			if (memcmp(p, "-pod", 4) == 0)
				at = p;
		if (!at)
			return false;
		c.p = at + 1;
	}
	if (!cursor_literal(&c, "pod") || cursor_left(&c) < POD_UID_MIN || cursor_left(&c) > POD_UID_MAX)
		return false;
	for (const char *p = c.p; p < c.end; p++) {
		if (!isxdigit((unsigned char)*p) && *p != '_' && *p != '-')
			return false;
		uid[n++] = *p == '_' ? '-' : *p;
	}
	uid[n] = '\0';
	memcpy(cgroup->pod_uid, uid, n + 1);
	set(cgroup, PROC_CGROUP_POD, cursor_over(uid, n));
	return true;
}

/*
 * <64 hex>, prefix-<64 hex>.scope, x.slice:prefix:<64 hex> (a misconfigured runtime); also <32 hex>-<digits>.
 */
static bool take_container(struct cursor c, struct proc_cgroup *cgroup)
{
	struct cursor id, slice;
	size_t hex;

	strip_suffix(&c, ".scope");
	hex = hex_run(&c);
	if (hex == ECS_ID && cursor_left(&c) > hex + 1 && c.p[hex] == '-') {
		for (const char *p = c.p + hex + 1; p < c.end; p++)
			if (!isdigit((unsigned char)*p))
				return false;
		set(cgroup, PROC_CGROUP_CONTAINER, c);
		return true;
	}
	if (cursor_left(&c) < CONTAINER_ID)
		return false;
	id = (struct cursor){ .p = c.end - CONTAINER_ID, .end = c.end };
	if (hex_run(&id) != CONTAINER_ID || (id.p > c.p && id.p[-1] != '-' && id.p[-1] != ':'))
		return false;
	if (starts_with(c, "crio-conmon-") || starts_with(c, "libpod-conmon-"))
		return false;
	if (cursor_until(&c, ':', &slice) == 0)
		take_pod(slice, cgroup);
	set(cgroup, PROC_CGROUP_CONTAINER, id);
	return true;
}

static bool take_lxc(struct cursor c, bool below_lxc, struct proc_cgroup *cgroup)
{
	if (!below_lxc && !cursor_literal(&c, "lxc.payload."))
		return false;
	if (cursor_eof(&c))
		return false;
	set(cgroup, PROC_CGROUP_CONTAINER, c);
	return true;
}

static bool take_job(struct cursor c, struct job_path *path, struct proc_cgroup *cgroup)
{
	if (!job_path_take(path, c, &cgroup->job))
		return false;
	snprintf(cgroup->id, sizeof(cgroup->id), "%s", cgroup->job.id);
	cgroup->kind = PROC_CGROUP_JOB;
	return true;
}

/* init.scope contains the service manager itself, of the system or of a user. */
static bool take_unit(struct cursor c, struct proc_cgroup *cgroup)
{
	struct cursor name = c;

	if (!strip_suffix(&c, ".service") && !strip_suffix(&c, ".scope"))
		return false;
	if (cursor_eof(&c) || cursor_equals(&name, "init.scope"))
		return false;
	set(cgroup, PROC_CGROUP_UNIT, name);
	return true;
}

/* "<before><uid><after>" */
static bool names_user(struct cursor c, const char *before, const char *after, uint32_t *ret_user)
{
	uint64_t user;

	if (!cursor_literal(&c, before) || !strip_suffix(&c, after) || cursor_u64(&c, &user) < 0 ||
	    !cursor_eof(&c) || user >= UINT32_MAX)
		return false;
	*ret_user = (uint32_t)user;
	return true;
}

/* Of a process that is in no unit below it: one that a user's session left behind. */
static bool take_user_slice(struct path *path, struct cursor c, struct proc_cgroup *cgroup)
{
	if (!names_user(c, "user-", ".slice", &path->user))
		return false;
	set(cgroup, PROC_CGROUP_UNIT, c);
	return true;
}

static bool take_specific(struct path *path, struct cursor c, struct proc_cgroup *cgroup)
{
	return take_job(c, &path->job, cgroup) || take_pod(c, cgroup) || take_container(c, cgroup) ||
	       take_lxc(c, path->below_lxc, cgroup);
}

/* A container that a user's own engine calls so. */
static bool take_rootless(const struct path *path, struct cursor c, struct proc_cgroup *cgroup)
{
	static const char *const engines[] = { "libpod-", "docker-", "nerdctl-" };
	struct proc_cgroup own = { 0 };
	bool known = false;

	for (size_t i = 0; i < ARRAY_SIZE(engines); i++)
		known |= starts_with(c, engines[i]);
	if (!(known && take_container(c, &own)) && !take_lxc(c, false, &own))
		return false;
	set_users_own(cgroup, PROC_CGROUP_CONTAINER, path->manager, cursor_over(own.id, strlen(own.id)));
	return true;
}

static bool take_users_own(struct path *path, struct cursor c, struct proc_cgroup *cgroup)
{
	struct proc_cgroup unit;

	if (take_rootless(path, c, cgroup))
		return true;
	if (path->in_unit || cgroup->kind != PROC_CGROUP_UNIT || !take_unit(c, &unit))
		return false;
	path->in_unit = true;
	set_users_own(cgroup, PROC_CGROUP_UNIT, path->manager, c);
	return true;
}

/* Of two kinds that are found for a process the higher one is used; a user's container is only claimed. */
static unsigned rank_of(enum proc_cgroup_kind kind, bool of_manager)
{
	static const unsigned char rank[] = {
		[PROC_CGROUP_NONE] = 0, [PROC_CGROUP_UNIT] = 1,      [PROC_CGROUP_POD] = 3,
		[PROC_CGROUP_JOB] = 4,  [PROC_CGROUP_CONTAINER] = 4,
	};

	return of_manager && kind == PROC_CGROUP_CONTAINER ? 2 : rank[kind];
}

static bool take_manager(struct path *path, struct cursor c, struct proc_cgroup *cgroup)
{
	path->manager = c;
	set(cgroup, PROC_CGROUP_UNIT, c);
	return true;
}

static bool take_component(struct path *path, struct cursor c, struct proc_cgroup *cgroup)
{
	bool may_be_unit = !path->in_unit && rank_of(cgroup->kind, false) <= rank_of(PROC_CGROUP_UNIT, false);
	uint32_t user;

	if (path->manager.p)
		return take_users_own(path, c, cgroup);
	if (names_user(c, "user@", ".service", &user)) {
		path->closed |= !may_be_unit;
		path->user = path->closed ? path->user : user;
		return !path->closed && take_manager(path, c, cgroup);
	}
	if (path->closed)
		return false;
	if (take_specific(path, c, cgroup))
		return true;
	if (!may_be_unit)
		return false;
	path->in_unit = take_unit(c, cgroup);
	return path->in_unit || take_user_slice(path, c, cgroup);
}

static struct path_found parse_path(struct cursor text)
{
	struct path path = { 0 };
	struct path_found found = { 0 };

	strip_suffix(&text, " (deleted)");
	for (unsigned n = 0; n < COMPONENTS_MAX && !cursor_eof(&text); n++) {
		struct cursor c = text;

		if (cursor_until(&text, '/', &c) < 0)
			text.p = text.end;
		if (cursor_eof(&c))
			continue;
		if (take_component(&path, c, &found.cgroup))
			found.depth = n;
		job_path_enter(&path.job, c);
		path.below_lxc = cursor_equals(&c, "lxc");
	}
	found.cgroup.user = path.user;
	found.of_manager = path.manager.p != NULL;
	return found;
}

/* Whether a line tells more than the best one so far: of two that tell the same kind, the deeper one. */
static bool is_better(const struct path_found *a, const struct path_found *best)
{
	unsigned rank = rank_of(a->cgroup.kind, a->of_manager);
	unsigned best_rank = rank_of(best->cgroup.kind, best->of_manager);

	return rank > best_rank || (rank == best_rank && a->depth > best->depth);
}

void proc_cgroup_parse(const char *text, size_t length, struct proc_cgroup *ret_cgroup)
{
	/* The kernel writes no NUL; ignore everything after one. */
	struct cursor c = cursor_over(text, strnlen(text, length)), line, field;
	struct path_found best = { 0 }, found;
	struct proc_job job = { 0 };

	while (!cursor_eof(&c)) {
		line = c;
		if (cursor_until(&c, '\n', &line) < 0)
			c.p = c.end;
		/* "hierarchy:controllers:path"; neither of the first two has a colon. */
		if (cursor_until(&line, ':', &field) < 0 || cursor_until(&line, ':', &field) < 0)
			continue;
		found = parse_path(line);
		if (found.cgroup.job.manager != PROC_JOB_NONE && job.manager == PROC_JOB_NONE)
			job = found.cgroup.job;
		if (is_better(&found, &best))
			best = found;
	}
	/* v1: a job may limit a controller that its container does not, and the other way round. */
	if (best.cgroup.job.manager == PROC_JOB_NONE)
		best.cgroup.job = job;
	*ret_cgroup = best.cgroup;
}
