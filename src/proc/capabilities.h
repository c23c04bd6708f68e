// SPDX-License-Identifier: Apache-2.0
/*
 * The capabilities of this process and what it cannot do without them: one table (capabilities.def) of
 * capabilities and their purposes. A caller that was refused something, or is about to need it, names the
 * need and gets sentences for the user. Only properties of this process are read: capabilities, user
 * namespace, filters.
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
		3, /* a level of perf_event_paranoid that only Debian has, where CAP_PERFMON does not help */
};

/* Something that is missing: "CAUSE: LOST; REMEDY". */
struct capability_lack {
	char cause[128]; /* "CAP_BPF and CAP_PERFMON are missing" */
	const char *lost;
	char remedy[1200]; /* for unit and container, or for a command's file */
};

/*
 * To be called first in a command that a user runs and that has @needs at most. Remedies are then root, or
 * file capabilities (all that are missing for @needs, since setcap replaces the set), and not settings of a
 * unit or container.
 */
void capability_of_command(unsigned needs);

/*
 * What is missing for @needs, a mask of CAPABILITY_FOR(). 0: nothing. In a user namespace other than the
 * initial one, capabilities do not count for the kernel's own objects, and else only within the namespace:
 * this is reported as one lack.
 */
unsigned capability_lacks(unsigned needs, struct capability_lack ret_lacks[static CAPABILITY_LACKS_MAX]);
/* The same as one text: sentences separated by "; ", each with its remedy. Empty: nothing is missing. */
void capability_text(unsigned needs, char *buf, size_t size);
/* How to grant everything that is missing for @needs; empty if nothing is. */
void capability_remedy(unsigned needs, char *buf, size_t size);
void capability_lack_text(const struct capability_lack *lack, char *buf, size_t size);
/* " CAP_BPF CAP_PERFMON": the capabilities of the table that this process effectively has. */
void capability_held(struct strbuf *out);
/*
 * Possible causes of a refusal with @error although all capabilities are present: a filter, lockdown, a
 * limit; with the remedy. Never empty.
 */
void capability_refused(int error, char *buf, size_t size);
/* The same for a refused access to another process's files in /proc. */
void capability_refused_process(char *buf, size_t size);
/* Whether kernel lockdown (confidentiality) prevents all tracing. */
bool capability_locked_down(void);
/* perf_event_paranoid, 0 if it is negative; -ENOENT: a kernel without perf events. */
int capability_perf_level(void);
/* docs/capabilities.md */
void capability_document(struct strbuf *out);
