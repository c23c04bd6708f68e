// SPDX-License-Identifier: Apache-2.0
#include "proc/cgroup_job.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "base/text.h"

static bool starts_with(struct cursor c, const char *prefix)
{
	return cursor_literal(&c, prefix);
}

static bool ends_with(struct cursor c, const char *suffix)
{
	size_t n = strlen(suffix);

	return cursor_left(&c) >= n && memcmp(c.end - n, suffix, n) == 0;
}

static bool has_only(struct cursor c, const char *more)
{
	for (const char *p = c.p; p < c.end; p++)
		if (!isalnum((unsigned char)*p) && (!*p || !strchr(more, *p)))
			return false;
	return !cursor_eof(&c);
}

static bool is_number(struct cursor c)
{
	uint64_t number;

	return cursor_u64(&c, &number) == 0 && cursor_eof(&c);
}

static void copy_text(char *to, size_t size, struct cursor c)
{
	snprintf(to, size, "%.*s", (int)MIN(cursor_left(&c), size - 1), c.p);
	utf8_sanitize(to);
}

static bool set_job(struct job_path *path, struct proc_job *job, enum proc_job_manager manager,
		    struct cursor id)
{
	*job = (struct proc_job){ .manager = manager };
	copy_text(job->id, sizeof(job->id), id);
	path->in_job = true;
	return true;
}

static bool take_slurm(struct job_path *path, struct cursor c, struct proc_job *job)
{
	if (path->in_job && cursor_literal(&c, "step_")) {
		copy_text(job->step, sizeof(job->step), c);
		return false;
	}
	return cursor_literal(&c, "job_") && is_number(c) && set_job(path, job, PROC_JOB_SLURM, c);
}

/* The execute folder is configured, and may itself contain "slot": the last one counts. */
static bool take_htcondor(struct job_path *path, struct cursor c, struct proc_job *job)
{
	static const char slot[] = "_slot";
	struct cursor found = { 0 };

	if (!starts_with(c, "condor_"))
		return false;
	for (const char *p = c.p; p + sizeof(slot) <= c.end; p++)
		if (memcmp(p, slot, sizeof(slot) - 1) == 0 && isdigit((unsigned char)p[sizeof(slot) - 1]))
			found = (struct cursor){ .p = p + 1, .end = c.end };
	return found.p && set_job(path, job, PROC_JOB_HTCONDOR, found);
}

static bool take_lsf(struct job_path *path, struct cursor c, struct proc_job *job)
{
	struct cursor id;

	if (!cursor_literal(&c, "job."))
		return false;
	if (cursor_until(&c, '.', &id) < 0)
		id = c;
	return isdigit((unsigned char)(cursor_eof(&id) ? 0 : *id.p)) && has_only(id, "[]") &&
	       set_job(path, job, PROC_JOB_LSF, id);
}

static int hex_digit(char c)
{
	return isdigit((unsigned char)c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* systemd-escape's \x2d. Returns the length, cut to @size. */
static size_t unescape(struct cursor c, char *to, size_t size)
{
	size_t n = 0;

	while (c.p < c.end && n < size) {
		if (c.end - c.p >= 4 && c.p[0] == '\\' && c.p[1] == 'x' && hex_digit(c.p[2]) >= 0 &&
		    hex_digit(c.p[3]) >= 0) {
			to[n++] = (char)(hex_digit(c.p[2]) << 4 | hex_digit(c.p[3]));
			c.p += 4;
		} else {
			to[n++] = *c.p++;
		}
	}
	return n;
}

/* 42.server, 42[3].server */
static bool is_pbs_id(struct cursor c)
{
	return !cursor_eof(&c) && isdigit((unsigned char)*c.p) && has_only(c, ".-_[]");
}

static bool take_pbs(struct job_path *path, struct cursor c, struct proc_job *job)
{
	char text[sizeof(job->id)];
	struct cursor id = c;

	if (cursor_literal(&c, "pbspro-") && ends_with(c, ".slice")) {
		c.end -= strlen(".slice");
		id = cursor_over(text, unescape(c, text, sizeof(text)));
	}
	return is_pbs_id(id) && set_job(path, job, PROC_JOB_PBS, id);
}

bool job_path_take(struct job_path *path, struct cursor component, struct proc_job *job)
{
	if (take_htcondor(path, component, job))
		return true;
	switch (path->below) {
	case PROC_JOB_SLURM:
		return take_slurm(path, component, job);
	case PROC_JOB_LSF:
		return take_lsf(path, component, job);
	case PROC_JOB_PBS:
		return !path->in_job && take_pbs(path, component, job);
	default:
		return false;
	}
}

static enum proc_job_manager manager_of(struct cursor c)
{
	static const struct {
		const char *name;
		enum proc_job_manager manager;
	} names[] = {
		{ "slurm", PROC_JOB_SLURM },      { "lsf", PROC_JOB_LSF },
		{ "lsf.slice", PROC_JOB_LSF },    { "pbs_jobs.service", PROC_JOB_PBS },
		{ "pbspro", PROC_JOB_PBS },       { "pbspro.service", PROC_JOB_PBS },
		{ "pbspro.slice", PROC_JOB_PBS }, { "torque", PROC_JOB_PBS },
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (cursor_equals(&c, names[i].name))
			return names[i].manager;
	return starts_with(c, "slurm_") || ends_with(c, "slurmstepd.scope") ? PROC_JOB_SLURM : PROC_JOB_NONE;
}

void job_path_enter(struct job_path *path, struct cursor component)
{
	enum proc_job_manager manager = manager_of(component);

	if (manager != PROC_JOB_NONE) {
		path->below = manager;
		path->in_job = false;
	}
}
