// SPDX-License-Identifier: Apache-2.0
/*
 * gpusonde dcgm-exporter: the agent with the DCGM exporter's command line, so that its DaemonSet or unit
 * needs another program and nothing else. Each flag becomes the environment variable that stands for it;
 * flags of gpusonde agent are passed on to it.
 */
#include "cmd/cmd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/macro.h"

#define COLLECTORS "DCGM_EXPORTER_COLLECTORS"
#define LISTEN "DCGM_EXPORTER_LISTEN"
/* Where the exporter's image and package have it. */
#define COLLECTORS_DEFAULT "/etc/dcgm-exporter/default-counters.csv"
#define LISTEN_DEFAULT ":9400"
/* As the exporter is. */
#define OPEN "GPUSONDE_WEB_OPEN"

static const struct exporter_flag {
	const char *name, *alias;
	bool has_value;
	const char *variable;
} flags[] = {
#define FLAG(name_, alias_, value_, variable_) { name_, alias_, value_, variable_ },
#include "cmd/exporter_flags.def"
#undef FLAG
};

static bool is_word(const char *word, size_t n, const char *name)
{
	return name && strlen(name) == n && memcmp(word, name, n) == 0;
}

/* The flag that an argument names, with one dash or two; NULL: it is none of the exporter's. */
static const struct exporter_flag *find_flag(const char *argument, const char **ret_value)
{
	const char *word = argument + strspn(argument, "-");
	size_t n = strcspn(word, "=");

	if (word == argument || word > argument + 2)
		return NULL;
	*ret_value = word[n] ? word + n + 1 : NULL;
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
		if (is_word(word, n, flags[i].name) || is_word(word, n, flags[i].alias))
			return &flags[i];
	return NULL;
}

static int set_variable(const char *name, const char *value)
{
	if (setenv(name, value, 1) == 0)
		return 0;
	fprintf(stderr, "gpusonde dcgm-exporter: %s cannot be set: no memory\n", name);
	return EXIT_FAILURE;
}

/* A number of the arguments used in *@i; the exit status if it cannot go on. */
static int take_flag(const struct exporter_flag *flag, const char *value, struct invocation *inv, int *i)
{
	if (!value && flag->has_value) {
		if (*i + 1 >= inv->argc) {
			fprintf(stderr, "gpusonde dcgm-exporter: %s needs a value\n", inv->argv[*i]);
			return EXIT_USAGE;
		}
		value = inv->argv[++*i];
	}
	return set_variable(flag->variable, value ? value : "true");
}

int exporter_translate(struct invocation *inv)
{
	int kept = 0, status = EXIT_SUCCESS;

	for (int i = 0; i < inv->argc && status == EXIT_SUCCESS; i++) {
		const char *value;
		const struct exporter_flag *flag = find_flag(inv->argv[i], &value);

		if (flag)
			status = take_flag(flag, value, inv, &i);
		else
			inv->argv[kept++] = inv->argv[i];
	}
	inv->argc = kept;
	if (status == EXIT_SUCCESS && !getenv(LISTEN))
		status = set_variable(LISTEN, LISTEN_DEFAULT);
	if (status == EXIT_SUCCESS && !getenv(OPEN))
		status = set_variable(OPEN, "true");
	if (status == EXIT_SUCCESS && !getenv(COLLECTORS) && access(COLLECTORS_DEFAULT, R_OK) == 0)
		status = set_variable(COLLECTORS, COLLECTORS_DEFAULT);
	return status;
}
