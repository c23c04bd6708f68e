// SPDX-License-Identifier: Apache-2.0
/*
 * gpusonde-reader: reads files, names and memory that users choose, in place of the agent, which starts it
 * (src/helper). One program with a role for each kind of work, since the processes of all roles share its
 * pages.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "helper/confine.h"
#include "helper/spawn.h"
#include "symbolize/serve.h"
#include "trace/reader_files.h"
#include "trace/reader_sites.h"

struct role {
	const char *name;
	struct confinement confinement;
	int (*serve)(int channel);
};

enum { MIB = 1 << 20 };

/* Memory: four times what the largest of NVIDIA's libraries takes, see docs/benchmarks.md. */
static const struct role roles[] = {
	{ "files",
	  { .name = "gpusonde-files",
	    .capabilities = READER_FILES_CAPABILITIES,
	    .opens = true,
	    .memory_bytes = UINT64_C(64) * MIB },
	  reader_files_serve },
	{ "sites", { .name = "gpusonde-sites", .memory_bytes = UINT64_C(256) * MIB }, reader_sites_serve },
	{ "symbols",
	  { .name = "gpusonde-symbol",
	    .capabilities = SYMBOLS_CAPABILITIES,
	    .opens = true,
	    .reads_memory = true,
	    .shares_memory = true,
	    .threads = true,
	    .changes_rights = true,
	    .memory_bytes = UINT64_C(512) * MIB },
	  symbols_serve },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc == 3 && i < ARRAY_SIZE(roles); i++) {
		if (strcmp(argv[1], roles[i].name) != 0)
			continue;
		if (confine(&roles[i].confinement, atoi(argv[2])) < 0)
			return EXIT_FAILURE;
		return roles[i].serve(HELPER_SOCKET);
	}
	fprintf(stderr, "gpusonde-reader is started by gpusonde: run gpusonde agent instead\n");
	return EXIT_FAILURE;
}
