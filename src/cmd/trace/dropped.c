// SPDX-License-Identifier: Apache-2.0
#include "cmd/trace/dropped.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/fd.h"
#include "base/process_id.h"
#include "cmd/trace/trace.h"

static int own_stat(struct process_stat *ret_stat)
{
	char text[2048];
	size_t length;
	int r = read_file("/proc/self/stat", text, sizeof(text), &length);

	return r < 0 ? r : process_stat_parse(text, length, ret_stat);
}

/*
 * In secure-execution mode (ld.so(8)), as with file capabilities, the loader removes variables such as
 * LD_PRELOAD from the environment, so that the command does not get them either. The original environment is
 * still in memory where the kernel put it; /proc/self/environ may not be readable.
 */
void trace_report_dropped(const struct invocation *inv)
{
	struct process_stat stat;

	if (inv->operands_n == 0 || !getauxval(AT_SECURE) || own_stat(&stat) < 0 || stat.env_start == 0)
		return;
	for (const char *at = (const char *)(uintptr_t)stat.env_start,
			*limit = (const char *)(uintptr_t)stat.env_end;
	     at < limit; at += strnlen(at, (size_t)(limit - at)) + 1) {
		struct strbuf text;
		char name[64];

		snprintf(name, sizeof(name), "%.*s", (int)strcspn(at, "="), at);
		if (strncmp(name, "LD_", strlen("LD_")) != 0 || getenv(name))
			continue;
		strbuf_init(&text, 0);
		strbuf_addf(&text,
			    "%s is not passed to the command: the loader removes it, since gpusonde has file "
			    "capabilities; gpusonde trace -- env '%s' %s passes it",
			    name, at, inv->operands[0]);
		trace_message(text.data);
		strbuf_done(&text);
	}
}
