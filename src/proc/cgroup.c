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

/* Of a process's lines (v1 has one for each controller) the one with the highest rank is used. */
static const unsigned char rank[] = {
	[PROC_CGROUP_NONE] = 0, [PROC_CGROUP_UNIT] = 1,      [PROC_CGROUP_POD] = 2,
	[PROC_CGROUP_JOB] = 3,  [PROC_CGROUP_CONTAINER] = 3,
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

static void set(struct proc_cgroup *cgroup, enum proc_cgroup_kind kind, struct cursor id)
{
	cgroup->kind = kind;
	snprintf(cgroup->id, sizeof(cgroup->id), "%.*s", (int)MIN(cursor_left(&id), sizeof(cgroup->id) - 1),
		 id.p);
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

/* Of a process that is in no unit below it: one that a user's session left behind. */
static bool take_user_slice(struct cursor c, struct proc_cgroup *cgroup)
{
	struct cursor name = c;

	if (!cursor_literal(&c, "user-") || !strip_suffix(&c, ".slice") || cursor_eof(&c))
		return false;
	for (const char *p = c.p; p < c.end; p++)
		if (!isdigit((unsigned char)*p))
			return false;
	set(cgroup, PROC_CGROUP_UNIT, name);
	return true;
}

static bool take_specific(struct cursor c, struct job_path *job, bool below_lxc, struct proc_cgroup *cgroup)
{
	return take_job(c, job, cgroup) || take_pod(c, cgroup) || take_container(c, cgroup) ||
	       take_lxc(c, below_lxc, cgroup);
}

/* *ret_depth: at which component the workload was found. */
static void parse_path(struct cursor path, struct proc_cgroup *ret_cgroup, unsigned *ret_depth)
{
	struct job_path job = { 0 };
	bool below_lxc = false;
	struct proc_cgroup cgroup = { 0 };
	unsigned depth = 0;

	strip_suffix(&path, " (deleted)");
	for (unsigned n = 0; n < COMPONENTS_MAX && !cursor_eof(&path); n++) {
		struct cursor c = path;

		if (cursor_until(&path, '/', &c) < 0)
			path.p = path.end;
		if (cursor_eof(&c))
			continue;
		if (take_specific(c, &job, below_lxc, &cgroup))
			depth = n;
		else if (rank[cgroup.kind] <= rank[PROC_CGROUP_UNIT] &&
			 /* a unit within a container is ignored */
			 (take_unit(c, &cgroup) || take_user_slice(c, &cgroup)))
			depth = n;
		job_path_enter(&job, c);
		below_lxc = cursor_equals(&c, "lxc");
	}
	*ret_cgroup = cgroup;
	*ret_depth = depth;
}

/* Whether a line tells more than the best one so far: of two that tell the same kind, the deeper one. */
static bool is_better(const struct proc_cgroup *a, unsigned depth, const struct proc_cgroup *best,
		      unsigned best_depth)
{
	return rank[a->kind] > rank[best->kind] || (rank[a->kind] == rank[best->kind] && depth > best_depth);
}

void proc_cgroup_parse(const char *text, size_t length, struct proc_cgroup *ret_cgroup)
{
	/* The kernel writes no NUL; ignore everything after one. */
	struct cursor c = cursor_over(text, strnlen(text, length)), line, field;
	struct proc_cgroup best = { 0 }, found;
	struct proc_job job = { 0 };
	unsigned depth, best_depth = 0;

	while (!cursor_eof(&c)) {
		line = c;
		if (cursor_until(&c, '\n', &line) < 0)
			c.p = c.end;
		/* "hierarchy:controllers:path"; neither of the first two has a colon. */
		if (cursor_until(&line, ':', &field) < 0 || cursor_until(&line, ':', &field) < 0)
			continue;
		parse_path(line, &found, &depth);
		if (found.job.manager != PROC_JOB_NONE && job.manager == PROC_JOB_NONE)
			job = found.job;
		if (is_better(&found, depth, &best, best_depth)) {
			best = found;
			best_depth = depth;
		}
	}
	/* v1: a job may limit a controller that its container does not, and the other way round. */
	if (best.job.manager == PROC_JOB_NONE)
		best.job = job;
	*ret_cgroup = best;
}
