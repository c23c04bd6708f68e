// SPDX-License-Identifier: Apache-2.0
#include "proc/job_ad.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/macro.h"
#include "proc/job.h"

static const char *const attributes[] = { "ClusterId", "ProcId", "Owner", "JobBatchName", "Cmd" };

static void skip_space_at_end(struct cursor *c)
{
	while (!cursor_eof(c) && isspace((unsigned char)c->end[-1]))
		c->end--;
}

/* A text in quotes, with \" and \\ in it; false: it is none, or something comes behind. */
static bool take_quoted(struct cursor c, char value[static PROC_JOB_VALUE_MAX])
{
	size_t n = 0;

	if (!cursor_literal(&c, "\""))
		return false;
	while (!cursor_eof(&c) && *c.p != '"') {
		if (*c.p == '\\' && c.end - c.p > 1)
			c.p++;
		if (n + 1 < PROC_JOB_VALUE_MAX)
			value[n++] = *c.p;
		c.p++;
	}
	value[n] = '\0';
	return cursor_literal(&c, "\"") && cursor_eof(&c) && !memchr(value, 0, n);
}

static bool take_number(struct cursor c, char value[static PROC_JOB_VALUE_MAX])
{
	size_t n = cursor_left(&c);

	if (n == 0 || n >= PROC_JOB_VALUE_MAX)
		return false;
	for (const char *p = c.p; p < c.end; p++)
		if (!isdigit((unsigned char)*p))
			return false;
	memcpy(value, c.p, n);
	value[n] = '\0';
	return true;
}

static void take_line(struct cursor line, job_ad_fn *found, void *userdata)
{
	char value[PROC_JOB_VALUE_MAX];
	struct cursor name;

	if (cursor_until(&line, '=', &name) < 0)
		return;
	cursor_skip_space(&name);
	skip_space_at_end(&name);
	cursor_skip_space(&line);
	skip_space_at_end(&line);
	for (size_t i = 0; i < ARRAY_SIZE(attributes); i++) {
		const char *known = attributes[i];

		if (cursor_left(&name) == strlen(known) && strncasecmp(name.p, known, strlen(known)) == 0 &&
		    (take_quoted(line, value) || take_number(line, value)))
			found(cursor_over(known, strlen(known)), value, userdata);
	}
}

void job_ad_read(const char *text, size_t n, job_ad_fn *found, void *userdata)
{
	struct cursor c = cursor_over(text, n), line;

	while (!cursor_eof(&c)) {
		if (cursor_until(&c, '\n', &line) < 0) {
			line = c;
			c.p = c.end;
		}
		take_line(line, found, userdata);
	}
}
