// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>

#include "base/clock.h"
#include "base/fd.h"
#include "proc/proc.h"
#include "proc/capabilities.h"
#include "trace/engine_private.h"

/* How often expected files are looked for: drivers are replaced while the agent runs. */
#define EXPECT_INTERVAL_NS (60 * NSEC_PER_SEC)

/* ---- files ---- */

static int file_add(struct trace_engine *engine, struct target_file *file)
{
	if (engine->files_n == engine->files_cap) {
		uint32_t cap = engine->files_cap ? 2 * engine->files_cap : 8;
		void *grown = realloc(engine->files, cap * sizeof(struct target_file *));

		if (!grown)
			return -ENOMEM;
		engine->files = grown;
		engine->files_cap = cap;
	}
	engine->files[engine->files_n++] = file;
	return 0;
}

/* Once for each file, even if it is probed several times. */
static void report_unprobed(struct trace_engine *engine, const struct target_file *file,
			    const struct file_probes *made)
{
	const uint64_t id[] = { file->dev, file->ino };
	uint64_t key = hash_bytes(id, sizeof(id));
	uint32_t attached = files_attached(made), reported;

	if (made->refused == 0 || hashmap_get(&engine->reported_files, key, &reported))
		return;
	/* A file that cannot be stored is not reported, since it would be reported each time. */
	if (engine->reported_files.count >= REPORTED_FILES_MAX ||
	    hashmap_put(&engine->reported_files, key, made->refused) < 0) {
		uint64_t n = ++engine->unreported_files;

		if ((n & (n - 1)) == 0)
			engine_notice(
				engine, LOG_WARNING,
				"more than %u files have entry points without a probe: further ones are "
				"not named, %llu so far",
				engine->reported_files.count, (unsigned long long)n);
		return;
	}
	if (attached == 0)
		engine_notice(
			engine, LOG_WARNING,
			"%s: none of its %u entry points can be probed without single-stepping or harm, "
			"its calls are not "
			"traced: gpusonde probes %s shows why; a newer gpusonde may know this library",
			file->path, made->refused, file->path);
	else
		engine_notice(
			engine, LOG_WARNING,
			"%s: %u of %u entry points have no probe, calls of them are not traced: gpusonde "
			"probes %s "
			"shows why; a newer gpusonde may know them",
			file->path, made->refused, attached + made->refused, file->path);
}

/* What the user's probes did not get, of those functions of a file that they match. */
static void report_user(struct trace_engine *engine, const struct target_file *file,
			const struct file_probes *made)
{
	const uint64_t id[] = { file->dev, file->ino, 1 };
	uint64_t key = hash_bytes(id, sizeof(id));
	uint32_t reported;

	if (made->user.refused + made->user.no_returns + made->user.more == 0 ||
	    hashmap_get(&engine->reported_files, key, &reported) ||
	    engine->reported_files.count >= REPORTED_FILES_MAX ||
	    hashmap_put(&engine->reported_files, key, made->user.matched) < 0)
		return;
	if (made->user.refused > 0)
		engine_notice(engine, LOG_WARNING,
			      "%s: %u of %u functions that your probes match have no probe: gpusonde "
			      "probes %s "
			      "with your --probe shows why",
			      file->path, made->user.refused, made->user.matched, file->path);
	if (made->user.no_returns > 0)
		engine_notice(engine, LOG_WARNING,
			      "%s: %u of %u functions that your probes match are only counted: they are "
			      "C++ or "
			      "Rust, which may throw, or their return cannot be probed safely here",
			      file->path, made->user.no_returns, made->user.matched);
	if (made->user.more > 0)
		engine_notice(engine, LOG_WARNING,
			      "%s: %u more functions that your probes match are not probed: there is no "
			      "room for "
			      "them; narrow the patterns",
			      file->path, made->user.more);
}

static int on_file(struct target_file *file, const struct site_list *sites, void *userdata)
{
	struct trace_engine *engine = userdata;
	_cleanup_free_ struct site_list *read = NULL;
	struct file_probes *made;
	struct site_query query = engine->query;
	struct files_wanted wanted = { .patterns = !file->no_patterns, .of_users = file->of_users };
	int r = 0;

	if (!file->no_user)
		wanted.users = library_of_path(file->path, strlen(file->path)) & library_user_bits();
	query.users = wanted.users;
	if (!sites)
		r = site_list_read(file->fd, &query, &read);
	if (r == 0)
		r = files_attach(&engine->probing, file->fd, sites ? sites : read, &wanted, &made);

	if (r == -ENOENT || r == -ENOEXEC)
		return -ENOENT;
	if (r < 0) {
		/*
		 * May succeed for the next process, for example if this one ran out of memory or descriptors.
		 */
		engine_notice(engine, LOG_WARNING, "%s cannot be probed, what calls it is not traced: %s",
			      file->path, strerror(-r));
		return r;
	}
	report_unprobed(engine, file, made);
	report_user(engine, file, made);
	r = file_add(engine, file);
	if (r < 0) {
		files_free(made);
		return r;
	}
	made->attached_boot_ns = clock_boot_ns();
	made->attached_ns = (uint64_t)clock_mono_ns();
	file->data = made;
	return 0;
}

static void on_file_gone(struct target_file *file, void *userdata)
{
	struct trace_engine *engine = userdata;
	struct file_probes *gone = file->data;

	trace_engine_drain(engine);
	for (uint32_t i = 0; i < engine->files_n; i++)
		if (engine->files[i] == file)
			engine->files[i--] = engine->files[--engine->files_n];
	for (uint32_t m = 0; m < engine->mappers_n; m++) {
		struct mapper *mapper = &engine->mappers[m];
		uint8_t had = mapper->files_n;

		for (uint8_t i = 0; i < mapper->files_n; i++)
			if (mapper->files[i] == gone)
				mapper->files[i--] = mapper->files[--mapper->files_n];
		engine->probed_n -= had > 0 && mapper->files_n == 0;
	}
	file->data = NULL;
	files_free_later(gone);
}

/* ---- processes that map probed files ---- */

struct mapper *engine_mapper(const struct trace_engine *engine, uint32_t tgid)
{
	uint32_t i;

	return hashmap_get(&engine->by_tgid, tgid, &i) ? &engine->mappers[i] : NULL;
}

static struct mapper *mapper_get(struct trace_engine *engine, uint32_t tgid)
{
	struct mapper *mapper = engine_mapper(engine, tgid);

	if (mapper)
		return mapper;
	if (engine->mappers_n == engine->mappers_cap) {
		uint32_t cap = engine->mappers_cap ? 2 * engine->mappers_cap : 16;
		void *grown = realloc(engine->mappers, cap * sizeof(*engine->mappers));

		if (!grown)
			return NULL;
		engine->mappers = grown;
		engine->mappers_cap = cap;
	}
	if (hashmap_put(&engine->by_tgid, tgid, engine->mappers_n) < 0)
		return NULL;
	mapper = &engine->mappers[engine->mappers_n++];
	*mapper = (struct mapper){ .tgid = tgid };
	return mapper;
}

static void mapper_remove(struct trace_engine *engine, uint32_t tgid)
{
	struct mapper *mapper = engine_mapper(engine, tgid), *last;

	if (!mapper)
		return;
	engine->probed_n -= mapper->files_n > 0;
	hashmap_del(&engine->by_tgid, tgid);
	last = &engine->mappers[--engine->mappers_n];
	if (last == mapper)
		return;
	*mapper = *last;
	hashmap_put(&engine->by_tgid, mapper->tgid, (uint32_t)(mapper - engine->mappers));
}

int64_t engine_started_boot_ns(uint32_t tgid)
{
	struct process_id id;

	return proc_process_id("/proc", tgid, &id) < 0 ? 0 : process_boot_ns(id.start_ticks);
}

/*
 * Whether the process mapped the file before it was probed, so that calls may have been missed. A record has
 * the time of the mapping; a mapping found in /proc may be old.
 */
static enum late lateness(struct trace_engine *engine, uint32_t tgid, const struct file_probes *file,
			  uint64_t since_ns)
{
	struct target_stats stats;

	if (engine->offering)
		return LATE_NOT;
	targets_stats(engine->targets, &stats);
	if (!stats.looked)
		return since_ns < file->attached_ns ? LATE_MAYBE : LATE_NOT;
	return engine_started_boot_ns(tgid) > file->attached_boot_ns ? LATE_NOT : LATE_SURELY;
}

static void add_file(struct trace_engine *engine, struct mapper *mapper, struct file_probes *file)
{
	for (uint8_t i = 0; i < mapper->files_n; i++)
		if (mapper->files[i] == file)
			return;
	engine->probed_n += mapper->files_n == 0;
	if (mapper->files_n < MAPPED_FILES_MAX)
		mapper->files[mapper->files_n++] = file;
	else
		mapper->more = true;
}

static void on_mapping(pid_t pid, struct target_file *file, uint64_t since_ns, void *userdata)
{
	struct trace_engine *engine = userdata;
	struct mapper *mapper = mapper_get(engine, (uint32_t)pid);
	struct sums_process *process;
	bool none_before, none_of_its;

	if (!mapper || !file->data)
		return;
	none_before = engine->probed_n == 0;
	none_of_its = mapper->files_n == 0;
	add_file(engine, mapper, file->data);
	if (none_before) {
		int r = engine_events_map(engine);

		if (r < 0)
			engine_notice(
				engine, LOG_ERR,
				"the buffer of events (trace.buffer) cannot be mapped: %s; memory and busy "
				"time are not traced",
				strerror(-r));
		engine_events_arm(engine);
	}
	if (!((struct file_probes *)file->data)->apart)
		mapper->late =
			MAX(mapper->late, (uint8_t)lateness(engine, mapper->tgid, file->data, since_ns));
	if (none_of_its && engine->ops.mapped)
		engine->ops.mapped(engine, pid, engine->userdata);
	process = sums_find(&engine->sums, mapper->tgid);
	if (process)
		process->incomplete |= engine_incomplete(engine, process);
}

static void on_any_mapping(pid_t pid, void *userdata)
{
	struct trace_engine *engine = userdata;

	if (engine->ops.remapped)
		engine->ops.remapped(pid, engine->userdata);
}

static void on_unread(pid_t pid, const char *path, enum target_unread why, const char *type, void *userdata)
{
	static const char *const reasons[TARGET_UNREADS] = {
		[TARGET_UNTRUSTED] = "a user could withhold its pages, and so stop the machine's "
				     "fork(): trace.trust names file systems, paths and users that "
				     "are trusted nevertheless",
		[TARGET_BEYOND_SHARE] = "its user has more such files than a share",
		[TARGET_BARRED] = "reading what this user's processes map hung or crashed lately",
	};
	struct trace_engine *engine = userdata;
	struct mapper *mapper = mapper_get(engine, (uint32_t)pid);

	if (mapper)
		mapper->unread |=
			why == TARGET_UNTRUSTED ? TRACE_INCOMPLETE_UNTRUSTED : TRACE_INCOMPLETE_SITES;
	if (engine->reported_unread & (1U << why))
		return;
	engine->reported_unread |= 1U << why;
	engine_notice(engine, LOG_NOTICE,
		      "%s%s%s, which process %d maps, is not probed, and what calls it not traced: %s; "
		      "said once",
		      path, *type ? " on " : "", type, (int)pid, reasons[why]);
}

static void on_process_gone(pid_t pid, _unused_ bool exec, void *userdata)
{
	struct trace_engine *engine = userdata;
	struct sums_process *process;

	trace_engine_drain(engine);
	process = sums_find(&engine->sums, (uint32_t)pid);
	if (process) {
		process->incomplete |= engine_incomplete(engine, process);
		/*
		 * Ends it if the kernel side has ended it, for example because its event was lost. Otherwise
		 * the record is late, and this is already the process after the exec.
		 */
		sums_check_gone(&engine->sums, process);
	}
	mapper_remove(engine, (uint32_t)pid);
}

/*
 * No call of CUDA works before cuInit, so none was missed if that was the first call seen. Kernels do not
 * count: they are registered before cuInit, and also when a library is loaded much later.
 */
static bool is_late(const struct mapper *mapper, const struct sums_process *process)
{
	if (mapper->late != LATE_MAYBE)
		return mapper->late == LATE_SURELY;
	for (uint16_t i = 0; i < process->calls_n; i++) {
		const struct probe *probe = probe_at(process->calls[i].call);
		enum trace_op op = probe->spec.op;

		if (op != TRACE_OP_FUNCTION_REGISTER && !probe->user)
			return op != TRACE_OP_INIT;
	}
	return false;
}

unsigned engine_incomplete(const struct trace_engine *engine, const struct sums_process *process)
{
	const struct mapper *mapper = engine_mapper(engine, process->tgid);
	unsigned bits = engine->config.return_probes ? 0 : TRACE_INCOMPLETE_NO_RETURNS;

	if (!mapper)
		return bits;
	bits |= mapper->unread;
	if (mapper->more)
		bits |= TRACE_INCOMPLETE_SITES;
	if (is_late(mapper, process))
		bits |= TRACE_INCOMPLETE_LATE;
	for (uint8_t i = 0; i < mapper->files_n; i++) {
		if (mapper->files[i]->refused > 0 || mapper->files[i]->left_to_driver)
			bits |= TRACE_INCOMPLETE_SITES;
		if (mapper->files[i]->no_returns > 0)
			bits |= TRACE_INCOMPLETE_NO_RETURNS;
		if (engine->config.no_launch_returns ||
		    mapper->files[i]->groups[PROBE_GROUP_LAUNCH].reduced.taken)
			bits |= TRACE_INCOMPLETE_LAUNCH_RETURNS;
		if (files_groups_given_up(mapper->files[i]) & ~(1U << PROBE_GROUP_OPERATORS))
			bits |= TRACE_INCOMPLETE_GIVEN_UP;
		if (files_groups_given_up(mapper->files[i]) >> PROBE_GROUP_OPERATORS & 1 ||
		    mapper->files[i]->patterns.refused + mapper->files[i]->patterns.more > 0)
			bits |= TRACE_INCOMPLETE_OPERATORS;
	}
	return bits;
}

/* ---- missing permissions ---- */

/* Reports each lack once. */
static void report_lacks(struct trace_engine *engine, unsigned needs)
{
	struct capability_lack lacks[CAPABILITY_LACKS_MAX];
	unsigned n = capability_lacks(needs & ~engine->reported_needs, lacks);

	engine->reported_needs |= needs;
	for (unsigned i = 0; i < n; i++)
		engine_notice(engine, LOG_NOTICE, "%s: %s; %s", lacks[i].cause, lacks[i].lost,
			      lacks[i].remedy);
}

static void on_refused(pid_t pid, const char *path, bool deleted, int error, void *userdata)
{
	struct trace_engine *engine = userdata;
	unsigned need = deleted ? CAPABILITY_FOR(DELETED) : CAPABILITY_FOR(CLOSED);
	struct capability_lack lacks[CAPABILITY_LACKS_MAX];

	if (capability_lacks(need, lacks) > 0) {
		report_lacks(engine, need);
	} else if (!engine->refusal_reported && (error == -EACCES || error == -EPERM)) {
		engine->refusal_reported = true;
		engine_notice(
			engine, LOG_NOTICE,
			"%s, which process %d maps, cannot be opened, so what calls it is not traced: %s",
			path, (int)pid, strerror(-error));
	}
}

static bool is_of_others(pid_t pid)
{
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	return stat(path, &st) == 0 && st.st_uid != geteuid();
}

static void report_missing(struct trace_engine *engine)
{
	const struct trace_engine_config *config = &engine->config;
	struct target_stats stats;

	if (config->held)
		return;
	if (!config->pid && !proc_sees_all())
		engine_notice(engine, LOG_WARNING, "%s", TRACE_SEES_OWN_ONLY);
	if (!config->pid || is_of_others(config->pid))
		report_lacks(engine, CAPABILITY_FOR(OTHERS) | CAPABILITY_FOR(CLOSED));
	targets_stats(engine->targets, &stats);
	if (!stats.by_records)
		engine_notice(engine, LOG_NOTICE, "%s", stats.why_no_records);
}

static unsigned roles_wanted(const bool libraries[PROBE_LIBRARIES])
{
	unsigned roles = library_user_bits();

	for (unsigned i = 0; i < PROBE_LIBRARIES; i++)
		if (libraries[i])
			roles |= LIBRARY_BIT(i) | (probe_libraries[i].anywhere ? TARGET_ROLE_ANY : 0);
	return roles;
}

int engine_targets_start(struct trace_engine *engine)
{
	static const struct target_ops ops = {
		.file = on_file,
		.file_gone = on_file_gone,
		.process = on_mapping,
		.mapping = on_any_mapping,
		.process_gone = on_process_gone,
		.unread = on_unread,
		.refused = on_refused,
	};
	const struct readers_config reading = {
		.program = engine->config.reader,
		.trust = engine->config.trust ? engine->config.trust : "",
		.roles = roles_wanted(engine->query.libraries),
		.query = &engine->query,
	};
	const struct target_config config = {
		.roles = roles_wanted(engine->query.libraries),
		.pid = engine->config.pid,
		.children = engine->config.follow,
		.proc_root = "/proc",
		/* What a command traces is its user's. */
		.reading = engine->config.pid ? NULL : &reading,
	};
	int r = targets_new(engine->event, &config, &ops, engine, &engine->targets);

	if (r < 0)
		return r;
	report_missing(engine);
	engine_expect(engine);
	return targets_scan(engine->targets);
}

void engine_expect(struct trace_engine *engine)
{
	int64_t now = clock_mono_ns();

	if (!engine->config.expected ||
	    (engine->expected_ns && now - engine->expected_ns < EXPECT_INTERVAL_NS))
		return;
	engine->expected_ns = now;
	for (const char *const *path = engine->config.expected; *path; path++)
		targets_expect(engine->targets, *path);
}
