// SPDX-License-Identifier: Apache-2.0
/*
 * Files that helpers open and read (trace/readers.h), and what waits for them: a mapping that was reported is
 * handled when its file has been read. Who asks for too much, or for what does not answer, is refused
 * (trace/users.h).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "proc/proc.h"
#include "proc/user.h"
#include "trace/resident.h"
#include "trace/target_private.h"

enum {
	PENDING_MAX = 512, /* files */
	WAITERS_MAX = 1024, /* mappings of one file; further ones are found by the next scan */
};
/* An untrusted file, or one beyond its user's share, is judged again after so long. */
#define JUDGED_NS (60 * NSEC_PER_SEC)
/* A file that is not a target is asked for again after so long at the earliest. */
#define ASKED_NS NSEC_PER_SEC

struct waiter {
	struct target_mapping mapping; /* without its path */
	struct process_id process;
};

/*
 * Attaching to users' files takes at most this share of the time: the kernel waits for an RCU grace period
 * for each site while others fork.
 */
enum { ATTACH_SHARE = 10 };

struct pending_file {
	struct pending_file *next;
	uint64_t dev, ino, user;
	bool expected;
	struct waiter *waiters;
	uint32_t waiters_n, waiters_cap;
	/* of a user's file that was read, and is not attached yet */
	bool read;
	struct reader_file file;
	struct reader_result result;
	struct site_list *sites;
	char *path;
};

/* ---- who asks ---- */

int target_user_of(struct targets *targets, pid_t pid, uint64_t *ret_user, uint32_t *ret_uid)
{
	return proc_answers_for(targets->config.proc_root, (uint32_t)pid, ret_user, ret_uid);
}

/* ---- what waits ---- */

static struct pending_file *pending_find(const struct targets *targets, uint64_t dev, uint64_t ino)
{
	struct pending_file *pending = targets->pending;

	while (pending && (pending->expected || pending->dev != dev || pending->ino != ino))
		pending = pending->next;
	return pending;
}

static void pending_unlink(struct targets *targets, struct pending_file *pending)
{
	for (struct pending_file **p = &targets->pending; *p; p = &(*p)->next)
		if (*p == pending) {
			*p = pending->next;
			targets->pending_n--;
			return;
		}
}

static void pending_free(struct pending_file *pending)
{
	if (pending->read)
		closep(&pending->result.fd);
	free(pending->sites);
	free(pending->path);
	free(pending->waiters);
	free(pending);
}

static int add_waiter(struct targets *targets, struct pending_file *pending,
		      const struct target_mapping *mapping)
{
	struct waiter *waiter;

	for (uint32_t i = 0; i < pending->waiters_n; i++)
		if (pending->waiters[i].mapping.pid == mapping->pid) {
			pending->waiters[i].mapping.time_ns =
				MAX(pending->waiters[i].mapping.time_ns, mapping->time_ns);
			return -EINPROGRESS;
		}
	if (pending->waiters_n == pending->waiters_cap) {
		uint32_t cap = pending->waiters_cap ? 2 * pending->waiters_cap : 4;
		void *grown =
			cap > WAITERS_MAX ? NULL : realloc(pending->waiters, cap * sizeof(*pending->waiters));

		if (!grown) {
			targets->stats.overflow++;
			targets_scan_again(targets);
			return -ENOMEM;
		}
		pending->waiters = grown;
		pending->waiters_cap = cap;
	}
	waiter = &pending->waiters[pending->waiters_n++];
	*waiter = (struct waiter){ .mapping = *mapping, .process.pid = (uint32_t)mapping->pid };
	waiter->mapping.path = NULL;
	proc_process_id(targets->config.proc_root, (uint32_t)mapping->pid, &waiter->process);
	return -EINPROGRESS;
}

void target_ask_forget(struct targets *targets, pid_t pid, uint64_t time_ns)
{
	for (struct pending_file *p = targets->pending; p; p = p->next)
		for (uint32_t i = p->waiters_n; i-- > 0;)
			if (p->waiters[i].mapping.pid == pid && p->waiters[i].mapping.time_ns <= time_ns)
				p->waiters[i] = p->waiters[--p->waiters_n];
}

void target_ask_fork(struct targets *targets, pid_t parent, pid_t child, uint64_t time_ns)
{
	for (struct pending_file *p = targets->pending; p; p = p->next)
		for (uint32_t i = 0; i < p->waiters_n; i++)
			if (p->waiters[i].mapping.pid == parent) {
				struct target_mapping inherited = p->waiters[i].mapping;

				inherited.pid = child;
				inherited.time_ns = time_ns;
				add_waiter(targets, p, &inherited);
				break;
			}
}

/* ---- asking ---- */

static int ask(struct targets *targets, const struct reader_file *file, const struct pending_file *like)
{
	struct pending_file *pending = NULL;
	int r;

	if (targets->pending_n < PENDING_MAX)
		pending = malloc(sizeof(*pending));
	if (pending) {
		struct reader_file asked = *file;

		*pending = *like;
		pending->next = targets->pending;
		targets->pending = pending;
		targets->pending_n++;
		asked.data = pending;
		r = readers_open(targets->readers, &asked);
		if (r == 0)
			return 0;
		pending_unlink(targets, pending);
		pending_free(pending);
	}
	/* Found again by a scan. */
	targets->stats.overflow++;
	targets_scan_again(targets);
	return -EAGAIN;
}

/* No user has more files waiting than there is room for all others'. */
static bool has_place(const struct targets *targets, const struct pending_file *wanted)
{
	uint32_t n = 0;

	for (const struct pending_file *p = targets->pending; p; p = p->next)
		n += p->user == wanted->user;
	return n < PENDING_MAX - targets->pending_n;
}

/* Its user may open the next file in a second. Of too many processes the others are not looked at again. */
static void look_again(struct targets *targets, pid_t pid)
{
	for (uint32_t i = 0; i < targets->again_n; i++)
		if (targets->again[i] == pid)
			return;
	if (targets->again_n == ARRAY_SIZE(targets->again))
		return;
	if (targets->again_n == 0) {
		sd_event_source_set_time(targets->looking,
					 (uint64_t)(clock_mono_ns() / NSEC_PER_USEC) + 1000000);
		sd_event_source_set_enabled(targets->looking, SD_EVENT_ONESHOT);
	}
	targets->again[targets->again_n++] = pid;
}

static int on_looking(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata)
{
	struct targets *targets = userdata;
	uint32_t n = targets->again_n;

	targets->again_n = 0;
	for (uint32_t i = 0; i < n; i++)
		targets_look(targets, targets->again[i]);
	return 0;
}

static enum user_verdict may_ask(struct targets *targets, const struct pending_file *pending)
{
	/* Root's own processes, outside of containers, are nobody's attack. */
	if (!pending->user)
		return USER_MAY;
	if (readers_stuck_for(targets->readers, pending->user))
		return USER_BARRED;
	if (!has_place(targets, pending))
		return USER_BEYOND_SHARE;
	return users_may_open(&targets->users, pending->user, clock_mono_ns());
}

int target_ask_file(struct targets *targets, const struct target_mapping *mapping)
{
	struct pending_file *known = pending_find(targets, mapping->dev, mapping->ino);
	struct pending_file pending = { .dev = mapping->dev, .ino = mapping->ino };
	struct reader_file file = { .pid = mapping->pid,
				    .start = mapping->start,
				    .end = mapping->end,
				    .dev = mapping->dev,
				    .ino = mapping->ino,
				    .path = mapping->path,
				    .path_n = mapping->path_n };
	enum user_verdict verdict;
	char path[256];
	int r;

	if (known)
		return add_waiter(targets, known, mapping);
	r = target_user_of(targets, mapping->pid, &pending.user, &file.user);
	if (r < 0)
		return r;
	file.asker = pending.user;
	verdict = may_ask(targets, &pending);
	if (verdict != USER_MAY) {
		if (verdict == USER_BEYOND_SHARE)
			look_again(targets, mapping->pid);
		snprintf(path, sizeof(path), "%.*s", (int)MIN(mapping->path_n, sizeof(path) - 1),
			 mapping->path);
		target_process_unread(targets, mapping->pid, path,
				      verdict == USER_BARRED ? TARGET_BARRED : TARGET_BEYOND_SHARE, "",
				      mapping->time_ns);
		return -EDQUOT;
	}
	r = ask(targets, &file, &pending);
	return r < 0 ? r : add_waiter(targets, targets->pending, mapping);
}

bool target_ask_remembered(struct targets *targets, const struct target *target,
			   const struct target_mapping *mapping)
{
	uint64_t user;
	uint32_t uid;
	char path[256];

	if (!target->refused || target_user_of(targets, mapping->pid, &user, &uid) < 0)
		return true;
	if (user != target->refused_user)
		return false;
	snprintf(path, sizeof(path), "%.*s", (int)MIN(mapping->path_n, sizeof(path) - 1), mapping->path);
	target_process_unread(targets, mapping->pid, path, target->why, target->refused_type,
			      mapping->time_ns);
	return true;
}

int target_ask_expected(struct targets *targets, const char *path)
{
	const struct pending_file pending = { .expected = true };
	const struct reader_file file = { .path = path, .path_n = strlen(path) };

	return ask(targets, &file, &pending);
}

int target_ask_look(struct targets *targets, pid_t pid)
{
	uint64_t user;
	uint32_t uid;
	/* Who answers for it, now: it may end while the helper looks, and its PID be another one's. */
	int r = target_user_of(targets, pid, &user, &uid);

	if (r < 0)
		return r;
	if (user && (users_barred(&targets->users, user, clock_mono_ns()) ||
		     readers_stuck_for(targets->readers, user)))
		return -EDQUOT;
	return readers_look(targets->readers, pid, user);
}

/* ---- answers ---- */

static void on_looked(const struct reader_file *file, enum reader_outcome outcome, int error,
		      const void *message, size_t n, void *userdata)
{
	struct targets *targets = userdata;

	if (outcome == READER_LOST && file->asker)
		users_strike(&targets->users, file->asker, clock_mono_ns());
	else if (outcome == READER_UNAVAILABLE)
		targets_scan_again(targets);
	targets_looked(targets, file->pid, error, message, n);
}

/* Sites by whose table they count in. */
struct chosen {
	uint32_t table, user, patterns;
};

static struct chosen chosen_sites(const struct site_list *sites)
{
	struct chosen n = { 0 };

	for (uint32_t i = 0; sites && i < sites->n; i++) {
		uint8_t flags = sites->at[i].flags;

		if (flags & SITE_ENTRY_CHOSEN)
			++*(flags & SITE_ENTRY_USER    ? &n.user :
			    flags & SITE_ENTRY_PATTERN ? &n.patterns :
							 &n.table);
	}
	return n;
}

/*
 * Counts the sites of a file that users can write to. If those of the user's probes, or that patterns find,
 * have no room in its user's share, they are left out: they take nothing from CUDA's.
 */
static enum user_verdict count_sites(struct targets *targets, uint64_t user, const struct site_list *sites,
				     struct counted_sites *ret_counted, struct target_file *like)
{
	const struct chosen n = chosen_sites(sites);
	enum user_verdict verdict;

	if (n.table + n.user + n.patterns == 0)
		return USER_MAY;
	verdict = users_attach(&targets->users, user, n.table + n.user);
	like->no_user = verdict != USER_MAY && n.user > 0;
	if (like->no_user && n.table + n.patterns > 0)
		verdict = users_attach(&targets->users, user, n.table);
	if (verdict != USER_MAY)
		return like->no_user && n.table + n.patterns == 0 ? USER_MAY : verdict;
	*ret_counted = (struct counted_sites){ .any = true, .sites = n.table + (like->no_user ? 0 : n.user) };
	like->no_patterns =
		n.patterns > 0 && users_attach_operators(&targets->users, user, n.patterns) != USER_MAY;
	if (!like->no_patterns)
		ret_counted->operators = n.patterns;
	return USER_MAY;
}

/* Marks its user's. Others that have mapped it meanwhile are looked at again, and ask for themselves. */
static void say_unread(struct targets *targets, const struct pending_file *pending, const char *path,
		       enum target_unread why, const char *type)
{
	for (uint32_t i = 0; i < pending->waiters_n; i++) {
		const struct target_mapping *mapping = &pending->waiters[i].mapping;
		uint64_t user;
		uint32_t uid;

		if (target_user_of(targets, mapping->pid, &user, &uid) == 0 && user != pending->user)
			targets_look(targets, mapping->pid);
		else
			target_process_unread(targets, mapping->pid, path, why, type, mapping->time_ns);
	}
}

/* For its user alone. Without what is known of the file, so that another's is taken as it is read then. */
static void refuse_for_user(struct targets *targets, const struct pending_file *pending,
			    const struct target_mapping *mapping, enum target_unread why, const char *type,
			    uint64_t again_ns)
{
	const struct stat st = { 0 };

	if (target_file_refuse(targets, mapping, &st, clock_mono_ns() + (int64_t)again_ns) == 0)
		target_file_refuse_for(targets, mapping, pending->user, why, type);
}

/* The file was read: it becomes a target, or is remembered as none. *ret_target NULL: none. */
static int take_file(struct targets *targets, struct pending_file *pending,
		     const struct target_mapping *mapping, struct reader_result *result,
		     struct target **ret_target)
{
	const struct stat st = { .st_ctim = result->changed, .st_size = (off_t)result->size };
	struct target *target = target_file_current(targets, mapping->dev, mapping->ino);
	/* Root of a container is trusted with its files no more than a user, and counts for itself alone. */
	struct target_file like = { .of_users = result->by_users || pending->user >> 32 };
	struct counted_sites counted = { 0 };
	unsigned roles = 0;
	int r;

	*ret_target = target;
	if (target && target->file.fd >= 0)
		return 0;
	if (target && target_file_unchanged(target, mapping, &st) && !target_file_is_more(target, mapping)) {
		target->again_ns = MAX(target->again_ns, clock_mono_ns() + (int64_t)ASKED_NS);
		return -ENOENT;
	}
	if (target) {
		roles = target->roles;
		target_file_remove(targets, target);
	}
	*ret_target = NULL;
	if (result->remote && !sites_resident(result->fd, result->size, result->sites)) {
		refuse_for_user(targets, pending, mapping, TARGET_UNTRUSTED, result->type, ASKED_NS);
		return -EREMOTEIO;
	}
	if (like.of_users &&
	    count_sites(targets, pending->user, result->sites, &counted, &like) != USER_MAY) {
		refuse_for_user(targets, pending, mapping, TARGET_BEYOND_SHARE, "", JUDGED_NS);
		return -EDQUOT;
	}
	r = target_file_offer(targets, mapping, &st, TAKE_FD(result->fd), &like, result->sites, &target);
	if (r == 0)
		target->roles |= roles;
	if (r < 0 || target->file.fd < 0) {
		target_file_uncount(targets, pending->user, &counted);
		if (r == 0)
			target->again_ns = MAX(target->again_ns, clock_mono_ns() + (int64_t)ASKED_NS);
		return r < 0 ? r : -ENOENT;
	}
	target->counted = counted;
	target->user = pending->user;
	*ret_target = target;
	return 0;
}

static void answer_waiters(struct targets *targets, const struct pending_file *pending, const char *path)
{
	for (uint32_t i = 0; i < pending->waiters_n; i++) {
		struct target_mapping mapping = pending->waiters[i].mapping;
		struct process_id now;

		if (proc_process_id(targets->config.proc_root, (uint32_t)mapping.pid, &now) < 0 ||
		    !process_id_equal(now, pending->waiters[i].process))
			continue;
		mapping.path = path;
		mapping.path_n = strlen(path);
		targets_mapped(targets, &mapping);
	}
}

static void take_expected(struct targets *targets, struct pending_file *pending, const char *path,
			  struct reader_result *result)
{
	const struct target_mapping mapping = {
		.path = path, .path_n = strlen(path), .dev = result->dev, .ino = result->ino
	};
	struct target *target = NULL;

	if (result->error == 0 && result->allowed &&
	    take_file(targets, pending, &mapping, result, &target) == 0)
		target->expected = true;
	/* What the helper lacks says nothing of the file, which stays attached. */
	if (target || (result->outcome == READER_ANSWERED &&
		       (result->error == 0 || result->error == -ENOENT || result->error == -ENOTDIR)))
		target_file_unexpect(targets, path, target);
}

/* Not read because of what its user did, or where it lies. */
static void take_failure(struct targets *targets, const struct pending_file *pending,
			 const struct target_mapping *mapping, const char *path,
			 const struct reader_result *result)
{
	const struct stat st = { 0 };

	if (result->outcome == READER_LOST || result->outcome == READER_BARRED) {
		if (pending->user && result->outcome == READER_LOST)
			users_strike(&targets->users, pending->user, clock_mono_ns());
		say_unread(targets, pending, path, TARGET_BARRED, result->type);
		return;
	}
	if (result->outcome == READER_UNAVAILABLE) {
		/* Found again by a scan. */
		targets->stats.overflow++;
		targets_scan_again(targets);
		return;
	}
	switch (result->error) {
	case 0:
		refuse_for_user(targets, pending, mapping, TARGET_UNTRUSTED, result->type, JUDGED_NS);
		say_unread(targets, pending, path, TARGET_UNTRUSTED, result->type);
		break;
	case -ENOEXEC:
	case -E2BIG:
		target_file_refuse(targets, mapping, &st, clock_mono_ns() + (int64_t)JUDGED_NS);
		targets->stats.files_refused += result->error == -E2BIG;
		break;
	default:
		target_file_refused(targets, mapping, result->error);
		break;
	}
}

static void take_opened_file(struct targets *targets, struct pending_file *pending,
			     const struct reader_file *file, struct reader_result *result)
{
	struct target_mapping mapping = { .pid = file->pid,
					  .start = file->start,
					  .end = file->end,
					  .dev = file->dev,
					  .ino = file->ino,
					  .path = file->path,
					  .path_n = file->path_n };
	struct target *target;
	int r = take_file(targets, pending, &mapping, result, &target);

	if (r == 0)
		answer_waiters(targets, pending, file->path);
	else if (r == -EDQUOT)
		say_unread(targets, pending, file->path, TARGET_BEYOND_SHARE, "");
	else if (r == -EREMOTEIO)
		say_unread(targets, pending, file->path, TARGET_UNTRUSTED, result->type);
}

static void arm_attaching(struct targets *targets)
{
	sd_event_source_set_time(targets->attaching, (uint64_t)(targets->attach_ns / NSEC_PER_USEC));
	sd_event_source_set_enabled(targets->attaching, SD_EVENT_ONESHOT);
}

/* Attaches to a user's file, and sets when the next one may be attached. */
static void attach_users(struct targets *targets, struct pending_file *pending,
			 const struct reader_file *file, struct reader_result *result)
{
	int64_t begun_ns = clock_mono_ns();

	users_serve(&targets->users, pending->user);
	take_opened_file(targets, pending, file, result);
	targets->attach_ns = clock_mono_ns() + (clock_mono_ns() - begun_ns) * (ATTACH_SHARE - 1);
}

/* Keeps what was read until it may be attached. */
static int defer(struct targets *targets, struct pending_file *pending, const struct reader_file *file,
		 struct reader_result *result)
{
	pending->sites = malloc(site_list_size(result->sites));
	if (!pending->sites)
		return -ENOMEM;
	memcpy(pending->sites, result->sites, site_list_size(result->sites));
	pending->path = strndup(file->path, file->path_n);
	if (!pending->path)
		return -ENOMEM;
	pending->file = *file;
	pending->file.path = pending->path;
	pending->result = *result;
	pending->result.sites = pending->sites;
	result->fd = -1;
	pending->read = true;
	arm_attaching(targets);
	return 0;
}

/*
 * The one that has waited longest of the user who was served least recently: new ones are put first. Those
 * for which nobody waits any more come before all.
 */
static struct pending_file *next_read(const struct targets *targets)
{
	struct pending_file *found = NULL;

	for (struct pending_file *p = targets->pending; p; p = p->next) {
		if (p->read && !p->waiters_n)
			return p;
		if (p->read && (!found || users_turn(&targets->users, p->user) <=
						  users_turn(&targets->users, found->user)))
			found = p;
	}
	return found;
}

static int on_attaching(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata)
{
	struct targets *targets = userdata;
	struct pending_file *pending = next_read(targets);

	if (!pending)
		return 0;
	pending_unlink(targets, pending);
	/* Nobody waits any more: its processes have ended. */
	if (pending->waiters_n)
		attach_users(targets, pending, &pending->file, &pending->result);
	pending_free(pending);
	if (next_read(targets))
		arm_attaching(targets);
	return 0;
}

static void on_opened(const struct reader_file *file, struct reader_result *result, void *userdata)
{
	struct targets *targets = userdata;
	struct pending_file *pending = file->data;
	const struct target_mapping mapping = { .pid = file->pid,
						.dev = file->dev,
						.ino = file->ino,
						.path = file->path,
						.path_n = file->path_n };

	if (result->error == 0 && result->allowed && result->by_users && !pending->expected) {
		if ((clock_mono_ns() < targets->attach_ns || next_read(targets)) &&
		    defer(targets, pending, file, result) == 0)
			return;
		pending_unlink(targets, pending);
		attach_users(targets, pending, file, result);
		pending_free(pending);
		return;
	}
	pending_unlink(targets, pending);
	if (pending->expected)
		take_expected(targets, pending, file->path, result);
	else if (result->error < 0 || !result->allowed)
		take_failure(targets, pending, &mapping, file->path, result);
	else
		take_opened_file(targets, pending, file, result);
	pending_free(pending);
}

int target_ask_init(struct targets *targets)
{
	static const struct readers_ops ops = { .looked = on_looked, .opened = on_opened };

	int r = sd_event_add_time(targets->event, &targets->attaching, CLOCK_MONOTONIC, 0, 1000, on_attaching,
				  targets);

	if (r >= 0)
		r = sd_event_source_set_enabled(targets->attaching, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_add_time(targets->event, &targets->looking, CLOCK_MONOTONIC, 0, 1000, on_looking,
				      targets);
	if (r >= 0)
		r = sd_event_source_set_enabled(targets->looking, SD_EVENT_OFF);
	return r < 0 ? r :
		       readers_new(targets->event, targets->config.reading, &ops, targets, &targets->readers);
}

void target_ask_done(struct targets *targets)
{
	struct pending_file *pending;

	sd_event_source_disable_unref(targets->attaching);
	sd_event_source_disable_unref(targets->looking);
	readers_free(TAKE_PTR(targets->readers));
	while ((pending = targets->pending)) {
		targets->pending = pending->next;
		pending_free(pending);
	}
}
