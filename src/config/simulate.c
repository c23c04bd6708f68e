// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "config.h"
#include "config/options.h"

#define LIBRARY "libnvidia-ml.so.1"
#define VARIABLE "GPUSONDE_SIM_SCENARIO"

static const char suffix[] = ".yaml";

/* As built, and as installed, below any DESTDIR. */
static bool find_library(char ret_path[static PATH_MAX])
{
	static const char *const folders[] = { "sim", GPUSONDE_SIM_DIR };
	char folder[PATH_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(folders) && program_folder(folder) == 0; i++)
		if (snprintf(ret_path, PATH_MAX, "%s/%s/" LIBRARY, folder, folders[i]) < PATH_MAX &&
		    access(ret_path, R_OK) == 0)
			return true;
	return false;
}

/* The folder with the scenarios: as built, and as installed, below any DESTDIR. */
static void find_scenarios(char ret_path[static PATH_MAX])
{
	static const char *const folders[] = { "sim/scenarios", GPUSONDE_SIM_SCENARIOS };
	char folder[PATH_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(folders) && program_folder(folder) == 0; i++)
		if (snprintf(ret_path, PATH_MAX, "%s/%s", folder, folders[i]) < PATH_MAX &&
		    access(ret_path, R_OK) == 0)
			return;
	snprintf(ret_path, PATH_MAX, GPUSONDE_DATADIR "/scenarios");
}

static int is_scenario(const struct dirent *entry)
{
	size_t n = strlen(entry->d_name);

	return n >= sizeof(suffix) && STRV_EQ(entry->d_name + n - strlen(suffix), suffix);
}

static void complain(const char *scenario, const char *folder, struct strbuf *errors)
{
	struct dirent **entries = NULL;
	int n = scandir(folder, &entries, is_scenario, alphasort);

	strbuf_addf(errors,
		    "--simulate: there is no scenario \"%.80s\": write the path of a scenario's file, with "
		    "a slash in it, or one of",
		    scenario);
	for (int i = 0; i < n; i++) {
		strbuf_addf(errors, "%s %.*s", i > 0 ? "," : "",
			    (int)(strlen(entries[i]->d_name) - strlen(suffix)), entries[i]->d_name);
		free(entries[i]);
	}
	strbuf_adds(errors, "\n");
	free(entries);
}

/* A name with a slash in it is a path. */
static bool find_scenario(const char *scenario, const char *folder, char ret_path[static PATH_MAX])
{
	int n = strchr(scenario, '/') ? snprintf(ret_path, PATH_MAX, "%s", scenario) :
					snprintf(ret_path, PATH_MAX, "%s/%s%s", folder, scenario, suffix);

	return n < PATH_MAX && access(ret_path, R_OK) == 0;
}

int options_simulate(struct options *options, const char *scenario, struct strbuf *errors)
{
	const struct option *option = &option_table[OPT_nvml_library];
	char library[PATH_MAX], folder[PATH_MAX], path[PATH_MAX];
	const char *named = getenv(VARIABLE);

	if (!*scenario)
		scenario = named && *named ? named : "node-8xh100";
	if (options->v[OPT_nvml_library].origin == ORIGIN_FLAG) {
		strbuf_addf(errors, "--simulate and %s name two drivers: leave one out\n",
			    options->v[OPT_nvml_library].where);
		return 0;
	}
	if (!find_library(library)) {
		strbuf_adds(errors,
			    "--simulate: the simulated driver is not installed: run \"make install\", or "
			    "name its library with --nvml-library\n");
		return 0;
	}
	find_scenarios(folder);
	if (!find_scenario(scenario, folder, path)) {
		complain(scenario, folder, errors);
		return 0;
	}
	if (setenv(VARIABLE, path, 1) < 0)
		return -ENOMEM;
	return options_set(options, option, library, ORIGIN_FLAG, "--simulate", errors);
}
