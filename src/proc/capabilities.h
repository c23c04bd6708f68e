// SPDX-License-Identifier: Apache-2.0
/*
 * What this process may do, and what it loses without: one table (rights.def) of capabilities and what each
 * is needed for. A caller that was refused something, or is about to ask, names the need and gets the
 * sentences. Nothing is asked of the kernel but what the process is: capabilities, user namespace, filters.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"

enum capability_need {
#define CAPABILITY_NEED(id_, when_) CAPABILITY_##id_,
#include "proc/capabilities.def"
#undef CAPABILITY_NEED
	CAPABILITY_NEEDS
};

#define CAPABILITY_FOR(need_) (1U << CAPABILITY_##need_)

enum {
	CAPABILITY_LACKS_MAX = 8,
	CAPABILITY_PERF_STRICT =
		3, /* a level of perf_event_paranoid of Debian's own, where CAP_PERFMON does not help */
};

/* Something that is missing: "CAUSE: LOST; REMEDY". */
struct capability_lack {
	char cause[128]; /* "CAP_BPF and CAP_PERFMON are missing" */
	const char *lost;
	char remedy[640]; /* how to give it: unit, container, file */
};

/*
 * Before anything is asked: this is a command that a user runs, for @needs at most, and no unit or container
 * of which to say how it is given capabilities. Remedies are root then, or capabilities of the file: of all
 * that are missing for @needs, since a file's are set at once.
 */
void capability_of_command(unsigned needs);

/*
 * What is missing for @needs, a mask of CAPABILITY_FOR(). 0: nothing. In a user namespace of our own
 * capabilities do not count for what is the kernel's, and for the rest only within: that is one lack.
 */
unsigned capability_lacks(unsigned needs, struct capability_lack ret_lacks[static CAPABILITY_LACKS_MAX]);
/* The same as one text: sentences with "; " between them, each with its remedy. Empty: nothing is missing. */
void capability_text(unsigned needs, char *buf, size_t size);
/* How to give all that is missing for @needs; empty where nothing is. */
void capability_remedy(unsigned needs, char *buf, size_t size);
void capability_lack_text(const struct capability_lack *lack, char *buf, size_t size);
/* " CAP_BPF CAP_PERFMON": what of the table this process has and counts for anything. */
void capability_held(struct strbuf *out);
/*
 * What may be behind a refusal with @error though all capabilities are there: a filter, lockdown, a limit;
 * with its remedy. Never empty.
 */
void capability_refused(int error, char *buf, size_t size);
/* The same for what is refused of another process: its files in /proc. */
void capability_refused_process(char *buf, size_t size);
/* Whether the kernel is locked down so far that nobody may look into it. */
bool capability_locked_down(void);
/* perf_event_paranoid, 0 where that is negative; -ENOENT: a kernel without perf events. */
int capability_perf_level(void);
/* docs/capabilities.md */
void capability_document(struct strbuf *out);
