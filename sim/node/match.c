// SPDX-License-Identifier: Apache-2.0
#include "sim/node/match.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"

enum { MAX_PATTERNS = 16, MAX_PIDS = 128, REFRESH_MS = 500 };

struct matched {
	char pattern[32];
	uint32_t pids[MAX_PIDS];
	uint32_t count;
};

static struct matched matches[MAX_PATTERNS];
static uint32_t match_count;
static int64_t next_refresh_ns;

static void note(const char *pid)
{
	char path[64], comm[64];
	size_t length;

	snprintf(path, sizeof(path), "/proc/%.20s/comm", pid);
	if (read_file(path, comm, sizeof(comm), &length) < 0)
		return;
	comm[strcspn(comm, "\n")] = '\0';
	for (uint32_t i = 0; i < match_count; i++) {
		if (matches[i].count < MAX_PIDS && fnmatch(matches[i].pattern, comm, 0) == 0)
			matches[i].pids[matches[i].count++] = (uint32_t)strtoul(pid, NULL, 10);
	}
}

static int by_pid(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The system call itself: opendir() would allocate in every refresh. */
static void refresh(void)
{
	_Alignas(8) char buffer[4096];
	_cleanup_close_ int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	long length;

	for (uint32_t i = 0; i < match_count; i++)
		matches[i].count = 0;
	if (proc < 0)
		return;
	while ((length = syscall(SYS_getdents64, proc, buffer, sizeof(buffer))) > 0) {
		for (long at = 0; at < length;) {
			const struct dirent64 *entry = (const void *)(buffer + at);

			if (isdigit((unsigned char)entry->d_name[0]))
				note(entry->d_name);
			at += entry->d_reclen;
		}
	}
	for (uint32_t i = 0; i < match_count; i++)
		qsort(matches[i].pids, matches[i].count, sizeof(matches[i].pids[0]), by_pid);
}

static struct matched *find(const char *pattern)
{
	struct matched *matched;

	for (uint32_t i = 0; i < match_count; i++) {
		if (STRV_EQ(matches[i].pattern, pattern))
			return &matches[i];
	}
	if (match_count == MAX_PATTERNS)
		return NULL;
	matched = &matches[match_count++];
	snprintf(matched->pattern, sizeof(matched->pattern), "%s", pattern);
	next_refresh_ns = 0;
	return matched;
}

uint32_t match_pid(const char *pattern, uint32_t index)
{
	const struct matched *matched = find(pattern);
	int64_t now = clock_mono_ns();

	if (!matched)
		return 0;
	if (now >= next_refresh_ns) {
		refresh();
		next_refresh_ns = now + REFRESH_MS * NSEC_PER_MSEC;
	}
	return index < matched->count ? matched->pids[index] : 0;
}

uint32_t match_self(void)
{
	return (uint32_t)getpid();
}

uint32_t match_namespaced(uint32_t pid)
{
	char path[64], text[4096], *at, *end;
	uint32_t last = pid;
	size_t length;

	snprintf(path, sizeof(path), "/proc/%u/status", pid);
	if (read_file(path, text, sizeof(text), &length) < 0 || !(at = strstr(text, "\nNStgid:")))
		return pid;
	at += strlen("\nNStgid:");
	for (;; at = end) {
		unsigned long number;

		while (*at == ' ' || *at == '\t')
			at++;
		number = strtoul(at, &end, 10);
		if (end == at)
			return last;
		last = (uint32_t)number;
	}
}
