// SPDX-License-Identifier: Apache-2.0
#include "trace/kernel_sites.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "trace/kernel_sites_filter.h"
#include "trace/kernel_sites_specimens.h"

enum {
	ROUNDS = 5,
	HITS = 60, /* in each round; where a single step costs 20 us, a trial takes 6 ms */
	TRIES = 3, /* hits before the maps are read: a site is optimised after a hit */
	ANSWER_TIMEOUT_MS = 5000, /* long enough for an overloaded machine */
	RETRIES = 3,
	RETRY_US = 30000,
};

/* What the parent asks a child. */
enum question {
	ASK_ENTRY = 'e', /* hit the specimen; report what the maps show and the cost of a hit */
	ASK_RETURN = 'r', /* report the cost of a hit with both probes */
};

struct answer {
	bool stepped; /* the maps have [uprobes] */
	bool optimised; /* the maps have [uprobes-trampoline] */
	bool before; /* the maps had one of them before the first hit */
	uint32_t cost_ns; /* the lowest average of a round */
};

struct site_trial {
	const struct specimen *specimen;
	struct attach_site site;
	pid_t pid;
	int fd; /* socket to the child; -1: no child */
	struct attachment *entry; /* if it is attached alone */
	bool attached;
};

/* ---- the child: takes no lock, since it is forked from a multi-threaded process ---- */

static void maps_read(bool *ret_stepped, bool *ret_optimised)
{
	/*
	 * The last KEEP bytes of a block are searched again with the next one, since a name may be split
	 * between them.
	 */
	enum { KEEP = 32 };
	char buf[4096 + KEEP + 1];
	_cleanup_close_ int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	size_t kept = 0;
	ssize_t n;

	while (fd >= 0 && (n = read(fd, buf + kept, sizeof(buf) - 1 - kept)) > 0) {
		size_t length = kept + (size_t)n;

		buf[length] = '\0';
		*ret_stepped |= strstr(buf, "[uprobes]") != NULL;
		*ret_optimised |= strstr(buf, "[uprobes-trampoline]") != NULL;
		kept = MIN(length, (size_t)KEEP);
		memmove(buf, buf + length - kept, kept);
	}
}

static uint32_t cost(void (*function)(void))
{
	uint32_t best = UINT32_MAX;

	for (int round = 0; round < ROUNDS; round++) {
		struct timespec begin, end;
		int64_t ns;

		clock_gettime(CLOCK_MONOTONIC, &begin);
		for (int i = 0; i < HITS; i++)
			function();
		clock_gettime(CLOCK_MONOTONIC, &end);
		ns = (end.tv_sec - begin.tv_sec) * NSEC_PER_SEC + end.tv_nsec - begin.tv_nsec;
		best = MIN(best, (uint32_t)(ns / HITS));
	}
	return best;
}

static void child(const struct specimen *specimen, int fd)
{
	char question;

	while (read(fd, &question, 1) == 1) {
		struct answer answer = { 0 };

		if (question == ASK_ENTRY) {
			maps_read(&answer.before, &answer.before);
			for (int i = 0; i < TRIES; i++)
				specimen->function();
			maps_read(&answer.stepped, &answer.optimised);
		}
		answer.cost_ns = cost(specimen->function);
		if (write(fd, &answer, sizeof(answer)) != sizeof(answer))
			break;
	}
	_exit(0);
}

/* ---- the parent ---- */

static int locate(const void *code, struct attach_site *ret_site)
{
	struct attach_site site = { .code_n = 0 };
	uint64_t address = (uint64_t)(uintptr_t)code, start, end, offset;
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	int r = -ENOENT;

	if (!maps)
		return -errno;
	/* The kernel reports the file offset, which is right for any layout by the linker. */
	while (r < 0 && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64, &start, &end, &offset) != 3 ||
		    address < start || address >= end)
			continue;
		site.offset = address - start + offset;
		r = 0;
	}
	fclose(maps);
	if (r == 0)
		*ret_site = site;
	return r;
}

static int spawn(struct site_trial *trial)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	trial->pid = fork();
	if (trial->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(pair[0]);
		child(trial->specimen, pair[1]);
	}
	close(pair[1]);
	if (trial->pid < 0) {
		close(pair[0]);
		return -errno;
	}
	trial->fd = pair[0];
	return 0;
}

static int ask(struct site_trial *trial, enum question question, struct answer *ret_answer)
{
	struct pollfd poll_fd = { .fd = trial->fd, .events = POLLIN };
	struct answer answer;
	char byte = (char)question;

	if (send(trial->fd, &byte, 1, MSG_NOSIGNAL) != 1 || poll(&poll_fd, 1, ANSWER_TIMEOUT_MS) != 1 ||
	    recv(trial->fd, &answer, sizeof(answer), MSG_WAITALL) != sizeof(answer))
		return -EIO;
	*ret_answer = answer;
	return 0;
}

static void trial_finish(struct site_trial *trial)
{
	if (trial->fd >= 0) {
		close(trial->fd);
		kill(trial->pid, SIGKILL);
		while (waitpid(trial->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	attachment_free(trial->entry);
}

/* Most kernels refuse 10-byte nops, and then all probes attached in the same operation. */
static bool is_often_refused(const struct site_trial *trial)
{
	return trial->specimen->kind == SITE_KIND_NOP10;
}

/*
 * Attaches all at once where the kernel accepts that, since detaching takes as long for one as for many; else
 * singly.
 */
static void attach_entries(struct attach_backend *backend, int file, struct site_trial *trials, unsigned n,
			   struct attachment **ret_together)
{
	struct attach_site sites[SITE_KINDS];
	size_t together = 0;
	bool alone;

	for (unsigned i = 0; i < n; i++)
		if (!is_often_refused(&trials[i]))
			sites[together++] = trials[i].site;
	alone = attach_empty(backend, file, 0, false, sites, together, ret_together) < 0;
	for (unsigned i = 0; i < n; i++) {
		if (alone || is_often_refused(&trials[i]))
			trials[i].attached = attach_empty(backend, file, 0, false, &trials[i].site, 1,
							  &trials[i].entry) == 0;
		else
			trials[i].attached = true;
	}
}

static void note_cost(uint32_t *lowest, uint32_t ns)
{
	if (*lowest == 0 || ns < *lowest)
		*lowest = ns;
}

static void try_entries(struct site_trial *trials, unsigned n, struct site_rules *rules)
{
	uint32_t measured[SITE_CLASSES] = { 0 };

	for (unsigned i = 0; i < n; i++) {
		enum site_class *class = &rules->by_kind[trials[i].specimen->kind];
		struct answer answer;

		if (!trials[i].attached) {
			*class = SITE_REFUSED;
			continue;
		}
		if (ask(&trials[i], ASK_ENTRY, &answer) < 0 || answer.before) {
			trials[i].attached = false;
			continue;
		}
		*class = answer.optimised ? SITE_OPTIMISED :
			 answer.stepped   ? SITE_SINGLE_STEP :
					    SITE_EMULATED;
		note_cost(&measured[*class], answer.cost_ns);
	}
	for (int class = 0; class < SITE_CLASSES; class ++)
		if (measured[class])
			rules->entry_ns[class] = measured[class];
	rules->nop_rewritten = rules->by_kind[SITE_KIND_NOP5] == SITE_OPTIMISED ||
			       rules->by_kind[SITE_KIND_NOP10] == SITE_OPTIMISED;
}

/* An optimised probe is a system call. No other probe at a function's entry is. */
static void try_optimised(struct site_trial *trials, unsigned n, struct site_rules *rules)
{
	void (*functions[SITE_KINDS])(void);
	unsigned functions_n = 0;

	for (unsigned i = 0; i < n; i++)
		if (trials[i].attached && rules->by_kind[trials[i].specimen->kind] == SITE_OPTIMISED)
			functions[functions_n++] = trials[i].specimen->function;
	if (functions_n == 0 || kernel_sites_try_filters(functions, functions_n) == FILTER_HARMLESS)
		return;
	for (unsigned i = 0; i < n; i++)
		if (rules->by_kind[trials[i].specimen->kind] == SITE_OPTIMISED) {
			rules->by_kind[trials[i].specimen->kind] = SITE_REFUSED;
			trials[i].attached = false;
		}
}

static enum site_returns try_returns_filtered(struct site_trial *const of_class[SITE_CLASSES])
{
	void (*functions[SITE_CLASSES])(void);
	unsigned n = 0;

	for (int class = 0; class < SITE_CLASSES; class ++)
		if (of_class[class])
			functions[n++] = of_class[class]->specimen->function;
	switch (kernel_sites_try_filters(functions, n)) {
	case FILTER_HARMLESS:
		return SITE_RETURNS_SAFE;
	case FILTER_HARMS:
		return SITE_RETURNS_KILL;
	default:
		return SITE_RETURNS_UNTRIED;
	}
}

/* Tries one kind of each class only: a single step is expensive. */
static void try_returns(struct attach_backend *backend, int file, struct site_trial *trials, unsigned n,
			struct site_rules *rules)
{
	_cleanup_(attachment_freep) struct attachment *returns = NULL;
	struct attach_site sites[SITE_CLASSES];
	struct site_trial *of_class[SITE_CLASSES] = { NULL };
	size_t sites_n = 0;

	rules->returns = SITE_RETURNS_UNTRIED;
	for (unsigned i = 0; i < n; i++) {
		enum site_class class = rules->by_kind[trials[i].specimen->kind];

		if (!trials[i].attached || of_class[class])
			continue;
		of_class[class] = &trials[i];
		sites[sites_n++] = trials[i].site;
	}
	if (sites_n == 0 || attach_empty(backend, file, 0, true, sites, sites_n, &returns) < 0)
		return;
	for (int class = 0; class < SITE_CLASSES; class ++) {
		struct answer answer;

		if (of_class[class] && ask(of_class[class], ASK_RETURN, &answer) == 0)
			rules->return_ns[class] = answer.cost_ns;
	}
	rules->returns = try_returns_filtered(of_class);
}

static uint16_t machine(void)
{
#if defined(__aarch64__)
	return EM_AARCH64;
#else
	return EM_X86_64;
#endif
}

static int probe_once(struct attach_backend *backend, struct site_rules *ret_rules)
{
	_cleanup_close_ int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	_cleanup_(attachment_freep) struct attachment *together = NULL;
	struct site_trial trials[SITE_KINDS];
	struct site_rules rules;
	unsigned n = 0;
	int r = 0;

	if (file < 0)
		return -errno;
	site_rules_default(machine(), &rules);
	for (; n < specimens_n && r == 0; n++) {
		trials[n] = (struct site_trial){ .specimen = &specimens[n], .fd = -1 };
		r = locate(specimens[n].site, &trials[n].site);
		if (r == 0)
			r = spawn(&trials[n]);
	}
	if (r == 0) {
		attach_entries(backend, file, trials, n, &together);
		try_entries(trials, n, &rules);
		try_optimised(trials, n, &rules);
		try_returns(backend, file, trials, n, &rules);
	}
	for (unsigned i = 0; i < n; i++)
		trial_finish(&trials[i]);
	if (r == 0)
		*ret_rules = rules;
	return r;
}

/*
 * Another gpusonde that starts at the same time probes the same specimens of the same file, and its return
 * probes affect the maps of this process's children. If a kind that kernels normally do not single-step seems
 * to be single-stepped, the caller tries again.
 */
static bool is_disturbed(const struct site_rules *rules)
{
	struct site_rules usual;

	site_rules_default(machine(), &usual);
	for (int kind = 0; kind < SITE_KINDS; kind++)
		if (rules->by_kind[kind] == SITE_SINGLE_STEP &&
		    (usual.by_kind[kind] == SITE_EMULATED || usual.by_kind[kind] == SITE_OPTIMISED))
			return true;
	return false;
}

int kernel_sites_probe(struct attach_backend *backend, struct site_rules *ret_rules)
{
	int r = probe_once(backend, ret_rules);

	for (int i = 0;
	     i < RETRIES && r == 0 && (is_disturbed(ret_rules) || ret_rules->returns == SITE_RETURNS_UNTRIED);
	     i++) {
		usleep(RETRY_US);
		r = probe_once(backend, ret_rules);
	}
	return r;
}

const char *kernel_sites_no_returns(const struct site_rules *rules)
{
	static const char *const why[] = {
		[SITE_RETURNS_KILL] =
			"this kernel ends programs under a seccomp filter, as most containers have, when a "
			"function with a return probe returns; so none is used, and results, durations and "
			"returned addresses of calls are not known; Linux 6.14 and updated versions of 6.12 "
			"do not have this defect",
		[SITE_RETURNS_UNTRIED] =
			"whether return probes are harmless to programs under a seccomp filter could not be "
			"tried; so none is used, and results, durations and returned addresses of calls are "
			"not known; starting gpusonde again tries it again",
	};

	return why[rules->returns];
}
