// SPDX-License-Identifier: Apache-2.0
#include "cmd/show_select.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>

#include "base/strbuf.h"
#include "base/text.h"

typedef const char *word_fn(unsigned value);

static const char *by_word(unsigned value)
{
	return group_by_name(value);
}

/* The value from @first on that is called @text; else false, with an error that lists all. */
static bool parse_word(const char *flag, const char *text, word_fn *word, unsigned first, unsigned *ret_value)
{
	struct strbuf all;
	const char *name;

	for (unsigned i = first; (name = word(i)); i++)
		if (STRV_EQ(name, text)) {
			*ret_value = i;
			return true;
		}
	strbuf_init(&all, 0);
	for (unsigned i = first; (name = word(i)); i++)
		strbuf_addf(&all, "%s%s", i == first ? "" : word(i + 1) ? ", " : " or ", name);
	fprintf(stderr, "gpusonde ps: %s cannot be \"%.80s\": it must be %s\n", flag, text, all.data);
	strbuf_done(&all);
	return false;
}

static bool parse_user(const char *text, uint32_t *ret_uid)
{
	const struct passwd *entry = getpwnam(text);
	uint64_t number;

	if (entry) {
		*ret_uid = entry->pw_uid;
		return true;
	}
	if (parse_u64(text, &number) == 0 && number < UINT32_MAX) {
		*ret_uid = (uint32_t)number;
		return true;
	}
	fprintf(stderr,
		"gpusonde ps: --user cannot be \"%.80s\": this machine knows no user of that name; a number "
		"is taken, too\n",
		text);
	return false;
}

bool show_select_parse(const struct invocation *inv, struct show_select *ret_select)
{
	struct show_select select = { .processes = { .pod = inv->flag[FLAG_POD],
						     .container = inv->flag[FLAG_CONTAINER],
						     .job = inv->flag[FLAG_JOB],
						     .gpu = inv->flag[FLAG_GPU],
						     .uid = UINT32_MAX } };
	const char *by = inv->flag[FLAG_BY], *user = inv->flag[FLAG_USER];
	unsigned word;

	select.some = user || select.processes.pod || select.processes.container || select.processes.job ||
		      select.processes.gpu;
	select.any = select.some || by;
	if (by) {
		if (!parse_word("--by", by, by_word, GROUP_NONE + 1, &word))
			return false;
		select.by = word;
	}
	if (by && inv->flag[FLAG_ROWS_SORT]) {
		fprintf(stderr, "gpusonde ps: --sort is of processes, and --by adds them up: those with most "
				"memory come first; leave --sort out\n");
		return false;
	}
	if (inv->flag[FLAG_LAST] && by) {
		fprintf(stderr, "gpusonde ps: --last is of each process, and --by of the newest interval; "
				"leave one of them out\n");
		return false;
	}
	if (user && !parse_user(user, &select.processes.uid))
		return false;
	*ret_select = select;
	return true;
}
