// SPDX-License-Identifier: Apache-2.0
#include "reader/roles.h"

#include <string.h>

#include "cubin/name.h"
#include "cupti_socket/serve.h"
#include "inference/find.h"
#include "nccl_socket/serve.h"
#include "python/finder.h"
#include "symbolize/serve.h"
#include "trace/reader_files.h"
#include "trace/reader_sites.h"
#include "unwind/reader.h"

enum { MIB = 1 << 20 };

static void readable(const char *symbol, char *buf, size_t size)
{
	kernel_name_demangle(symbol, buf, size);
}

static int unwind_serve(int channel)
{
	return unwind_reader_serve(channel, readable);
}

/* Memory: four times what the largest of NVIDIA's libraries takes, see docs/benchmarks.md. */
const struct reader_role reader_roles[] = {
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
	{ "nccl",
	  { .name = "gpusonde-nccl", .serves = true, .memory_bytes = UINT64_C(64) * MIB },
	  nccl_serve },
	{ "cupti",
	  { .name = "gpusonde-cupti", .serves = true, .memory_bytes = UINT64_C(64) * MIB },
	  cupti_serve },
	{ "python",
	  { .name = "gpusonde-python",
	    .capabilities = FINDER_CAPABILITIES,
	    .opens = true,
	    .memory_bytes = UINT64_C(256) * MIB },
	  python_finder_serve },
	{ "unwind",
	  { .name = "gpusonde-unwind",
	    .capabilities = UNWIND_READER_CAPABILITIES,
	    .opens = true,
	    .memory_bytes = UINT64_C(512) * MIB },
	  unwind_serve },
	{ "servers",
	  { .name = "gpusonde-server",
	    .capabilities = SERVERS_FIND_CAPABILITIES,
	    .opens = true,
	    .memory_bytes = UINT64_C(64) * MIB },
	  servers_find_serve },
	{ 0 },
};

const struct reader_role *reader_role_find(const char *name)
{
	for (const struct reader_role *role = reader_roles; role->name; role++)
		if (strcmp(role->name, name) == 0)
			return role;
	return NULL;
}
